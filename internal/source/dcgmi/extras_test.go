//go:build linux

package dcgmi

import (
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

// lean are the profiling fields of every GPU, and extended those of one that counts all
// at once.
const (
	lean     = "-e 1001,1004,1005,1009,1010,1002,1003,1006,1011,1012"
	extended = "-e 1001,1004,1005,1009,1010,1002,1003,1006,1007,1008,1011,1012,1013,1014,1015,1016"
)

// a100s are boards whose profiling fields take turns.
func a100s(n int) []dcgmitest.GPU {
	boards := dcgmitest.Boards(n)
	for i := range boards {
		boards[i].Name = "NVIDIA A100-SXM4-80GB"
	}
	return boards
}

// The fields that would take turns are asked for only where all chosen boards count
// them at once.
func TestExtras(t *testing.T) {
	mixed := append(dcgmitest.Boards(1), a100s(2)[1])
	for _, c := range []struct {
		name     string
		boards   []dcgmitest.GPU
		failures []dcgmitest.Failure
		want     string
	}{
		{"Hopper", dcgmitest.Boards(2), nil, extended},
		{"Hopper in instances", []dcgmitest.GPU{dcgmitest.Boards(1)[0].Cut(2)}, nil, extended + " -i i:0,i:1"},
		{"before Hopper", a100s(2), nil, lean},
		{"both", mixed, nil, lean},
		{"no list", dcgmitest.Boards(2), []dcgmitest.Failure{{Kind: dcgmitest.ListRefused, Command: "profile", Code: -33}}, lean},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, dcgmitest.Scenario{GPUs: c.boards, Failures: c.failures})
			w.untilWhole()
			for _, s := range w.starts("1001,") {
				if args := strings.Join(s.Args, " "); !strings.HasSuffix(args, c.want) {
					t.Errorf("dcgmi %s, want %s", args, c.want)
				}
			}
			if w.stream(profiling).Restarts != 0 {
				t.Error("started again")
			}
			w.until("all fields", func(b *raw.Batch, _ error) bool { return has(b, "FP32A") == strings.HasPrefix(c.want, extended) })
		})
	}
}

// What the host engine lists, it may refuse: then all else is read, and a later start
// asks again.
func TestExtrasRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dcgmitest.Scenario{Failures: []dcgmitest.Failure{{Kind: dcgmitest.WatchRefused, Field: 1007, Code: -38}}})
	w.until("the other fields", func(b *raw.Batch, err error) bool {
		if err != nil {
			t.Error(err)
		}
		return has(b, "SMACT") && !has(b, "FP32A")
	})
	if s := w.stream(profiling); s.Restarts != 0 || s.Failure != nil || w.log.count("WARN") != 0 || w.log.count("refuses some profiling fields") != 1 {
		t.Errorf("%+v", s)
	}
	w.set(dcgmitest.Failure{Kind: dcgmitest.HostEngineDies})
	w.until("an end", func(*raw.Batch, error) bool { return w.stream(profiling).Failure != nil })
	w.set()
	w.until("all fields", func(b *raw.Batch, _ error) bool { return has(b, "FP32A") })
}
