package expose

import (
	"math"
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
		want     string
	}{
		{"all", []outcome{good(onHost(snapshotOf("s", board()), "node-a", whole))}, `
# HELP kpulse_host_cpus Logical CPUs of the machine that are online.
# TYPE kpulse_host_cpus gauge
kpulse_host_cpus{hostname="node-a"} 96
# HELP kpulse_host_cpu_utilization_ratio Fraction of the machine's CPU time that was neither idle nor waiting for I/O, since a reading at least a second earlier.
# TYPE kpulse_host_cpu_utilization_ratio gauge
kpulse_host_cpu_utilization_ratio{hostname="node-a"} 0.25
# HELP kpulse_host_memory_total_bytes Memory of the machine.
# TYPE kpulse_host_memory_total_bytes gauge
kpulse_host_memory_total_bytes{hostname="node-a"} 2199023255552
# HELP kpulse_host_memory_available_bytes Memory that new work on the machine can use without swapping.
# TYPE kpulse_host_memory_available_bytes gauge
kpulse_host_memory_available_bytes{hostname="node-a"} 1099511627776
`},
		{"no device", []outcome{good(onHost(snapshotOf("s"), "a\"b", &canonical.Host{CPUs: 1, CPUUtilization: none, MemoryTotal: none, MemoryAvailable: none}))}, `
# HELP kpulse_host_cpus Logical CPUs of the machine that are online.
# TYPE kpulse_host_cpus gauge
kpulse_host_cpus{hostname="a\"b"} 1
`},
		{"elsewhere", []outcome{good(onHost(snapshotOf("s", board()), "node-a", nil))}, "\n"},
		{"not read", []outcome{good(onHost(snapshotOf("s"), "node-a", &canonical.Host{CPUs: none, CPUUtilization: none, MemoryTotal: none, MemoryAvailable: none}))}, "\n"},
		{"one machine twice", []outcome{
			failed("gone"),
			good(onHost(snapshotOf("a", board()), "node-a", &canonical.Host{CPUs: 8, CPUUtilization: none, MemoryTotal: none, MemoryAvailable: none})),
			good(onHost(snapshotOf("b"), "node-a", whole)),
			good(onHost(snapshotOf("c"), "node-c", &canonical.Host{CPUs: 4, CPUUtilization: 0, MemoryTotal: none, MemoryAvailable: none})),
		}, `
# HELP kpulse_host_cpus Logical CPUs of the machine that are online.
# TYPE kpulse_host_cpus gauge
kpulse_host_cpus{hostname="node-a"} 8
kpulse_host_cpus{hostname="node-c"} 4
# HELP kpulse_host_cpu_utilization_ratio Fraction of the machine's CPU time that was neither idle nor waiting for I/O, since a reading at least a second earlier.
# TYPE kpulse_host_cpu_utilization_ratio gauge
kpulse_host_cpu_utilization_ratio{hostname="node-c"} 0
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := render(c.readings...)
			parse(t, body)
			got := "\n"
			for line := range strings.Lines(string(body)) {
				if strings.Contains(line, "kpulse_host_") {
					got += line
				}
			}
			if got != c.want {
				t.Errorf("got:%swant:%s", got, c.want)
			}
		})
	}
}
