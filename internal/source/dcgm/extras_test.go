//go:build linux

package dcgm

import (
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// lean requests the profiling fields of every GPU, extended those of a GPU with all.
const (
	lean     = "-e 1001,1004,1005,1009,1010,1002,1003,1006,1011,1012"
	extended = "-e 1001,1004,1005,1009,1010,1002,1003,1006,1007,1008,1011,1012,1013,1014,1015,1016"
	// inRounds requests those of an A100, which lacks 1015 and 1016.
	inRounds = "-e 1001,1004,1005,1009,1010,1002,1003,1006,1007,1008,1011,1012,1013,1014"
)

// a100s returns boards that count their profiling fields in turn.
func a100s(n int) []dcgmtest.GPU {
	boards := dcgmtest.Boards(n)
	for i := range boards {
		boards[i].Name = "NVIDIA A100-SXM4-80GB"
	}
	return boards
}

// Multiplexed fields are requested if chosen, and if the boards count them, at once or in turn.
func TestExtras(t *testing.T) {
	for _, c := range []struct {
		name     string
		boards   []dcgmtest.GPU
		failures []dcgmtest.Failure
		fields   string
		want     string
	}{
		{"Hopper", dcgmtest.Boards(2), nil, "all", extended},
		{"Hopper in instances", []dcgmtest.GPU{dcgmtest.Boards(1)[0].Cut(2)}, nil, "all", extended + " -i i:0,i:1"},
		{"before Hopper", a100s(2), nil, "all", inRounds},
		{"no list", dcgmtest.Boards(2), []dcgmtest.Failure{{Kind: dcgmtest.ListRefused, Command: "profile", Code: -33}}, "all", lean},
		{"Hopper, core", dcgmtest.Boards(2), nil, "core", lean},
		{"before Hopper, core", a100s(2), nil, "core", lean},
		{"ids", a100s(2), nil, "1016,1002,155,1007", "-e 1002,1007"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fields, err := ParseFields(c.fields)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, dcgmtest.Scenario{GPUs: c.boards, Failures: c.failures}, func(o *Options) { o.Fields = fields })
			w.untilWhole()
			for _, s := range w.starts("1002,") {
				if args := strings.Join(s.Args, " "); !strings.Contains(args+" ", c.want+" ") {
					t.Errorf("dcgmi %s, want %s", args, c.want)
				}
			}
			if w.stream(profiling).Restarts != 0 {
				t.Error("started again")
			}
			w.until("all fields", func(b *raw.Batch, _ error) bool { return has(b, "FP32A") == strings.Contains(c.want, "1007") })
		})
	}
}

// If the host engine refuses fields that it lists, all others are read, and a later
// start requests these again.
func TestExtrasRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dcgmtest.Scenario{Failures: []dcgmtest.Failure{{Kind: dcgmtest.WatchRefused, Field: 1007, Code: -38}}})
	w.until("the other fields", func(b *raw.Batch, err error) bool {
		if err != nil {
			t.Error(err)
		}
		return has(b, "SMACT") && !has(b, "FP32A")
	})
	if s := w.stream(profiling); s.Restarts != 0 || s.Failure != nil {
		t.Errorf("%+v", s)
	}
	w.set(dcgmtest.Failure{Kind: dcgmtest.HostEngineDies})
	w.until("an end", func(*raw.Batch, error) bool { return w.stream(profiling).Failure != nil })
	w.set()
	w.until("all fields", func(b *raw.Batch, _ error) bool { return has(b, "FP32A") })
}

// TestFieldsOfOneStream: if all chosen fields belong to one stream, the other is
// neither started nor awaited, and failures are reported.
func TestFieldsOfOneStream(t *testing.T) {
	for _, c := range []struct {
		fields, has, hasNot, stream string
	}{
		{"155,150", "POWER", "SMACT", "device"},
		{"1002,1004", "SMACT", "POWER", "profiling"},
	} {
		t.Run(c.stream, func(t *testing.T) {
			t.Parallel()
			fields, err := ParseFields(c.fields)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, dcgmtest.Scenario{}, func(o *Options) { o.Fields = fields })
			w.until("a reading", func(b *raw.Batch, err error) bool { return err == nil && has(b, c.has) && !has(b, c.hasNot) })
			totals := w.Streams(nil)
			if len(totals) != 1 || totals[0].Stream != c.stream || totals[0].Failure != nil {
				t.Errorf("streams %+v", totals)
			}
			if n := len(w.starts("dmon")); n != 1 {
				t.Errorf("%d times dmon", n)
			}
			w.set(dcgmtest.Failure{Kind: dcgmtest.HostEngineDies})
			w.until("an end", func(_ *raw.Batch, err error) bool { return err != nil })
		})
	}
}
