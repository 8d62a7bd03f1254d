package expose

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// onHost puts a snapshot's source on a machine.
func onHost(s *canonical.Snapshot, hostname string, h *canonical.Host) *canonical.Snapshot {
	s.Frame.Topology.Hostname, s.Host = hostname, h
	return s
}

func TestHostSeries(t *testing.T) {
	whole := &canonical.Host{CPUs: 96, CPUUtilization: 0.25, MemoryTotal: 2199023255552, MemoryAvailable: 1099511627776}
	none := math.NaN()
	for _, c := range []struct {
		name     string
		readings []outcome
		want     []string
	}{
		{"all", []outcome{good(onHost(snapshotOf("s", board()), "node-a", whole))}, []string{
			`cpus{hostname="node-a"} 96`, `cpu_utilization_ratio{hostname="node-a"} 0.25`,
			`memory_total_bytes{hostname="node-a"} 2199023255552`, `memory_available_bytes{hostname="node-a"} 1099511627776`,
		}},
		{"no device", []outcome{good(onHost(snapshotOf("s"), "a\"b", &canonical.Host{CPUs: 1, CPUUtilization: none, MemoryTotal: none, MemoryAvailable: none}))},
			[]string{`cpus{hostname="a\"b"} 1`}},
		{"elsewhere", []outcome{good(onHost(snapshotOf("s", board()), "node-a", nil))}, nil},
		{"not read", []outcome{good(onHost(snapshotOf("s"), "node-a", &canonical.Host{CPUs: none, CPUUtilization: none, MemoryTotal: none, MemoryAvailable: none}))}, nil},
		{"one machine twice", []outcome{
			failed("gone"),
			good(onHost(snapshotOf("a", board()), "node-a", &canonical.Host{CPUs: 8, CPUUtilization: none, MemoryTotal: none, MemoryAvailable: none})),
			good(onHost(snapshotOf("b"), "node-a", whole)),
			good(onHost(snapshotOf("c"), "node-c", &canonical.Host{CPUs: 4, CPUUtilization: 0, MemoryTotal: none, MemoryAvailable: none})),
		}, []string{`cpus{hostname="node-a"} 8`, `cpus{hostname="node-c"} 4`, `cpu_utilization_ratio{hostname="node-c"} 0`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := render(c.readings...)
			parse(t, body)
			var got []string
			for line := range strings.Lines(string(body)) {
				if series, is := strings.CutPrefix(line, "kpulse_host_"); is {
					got = append(got, strings.TrimSpace(series))
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
