//go:build linux

package dcgm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/selection"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// Every value of every reading is the true value of the fake, at one sample of
// the child per stream.
func TestReadingsAreTrue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(4)})
	var samples [4][2]int // of each board: on a busy machine a sample may come in two parts
	checked := 0
	for range 25 {
		w.untilWhole()
		for i := range samples {
			checked += checkReading(t, &w.last, fmt.Sprintf("GPU %d", i), &samples[i])
		}
	}
	if checked < 25*4*20 {
		t.Errorf("%d values were read and checked", checked)
	}
}

// checkReading compares the values of entity in b with the true ones, and returns
// how many it compared. sample is the last one seen of each stream.
func checkReading(t *testing.T, b *raw.Batch, entity string, sample *[2]int) (checked int) {
	t.Helper()
	said := map[string]float64{}
	for _, s := range b.Samples {
		if label(b, s, "gpu") == entity[4:] {
			said[columnOf(b, s)] = s.Value
		}
	}
	// Ratios have three decimals and repeat within a thousand samples; these fields do not.
	for stream, clue := range map[Stream]Field{DeviceStream: {ID: 155, Column: "POWER"}, ProfilingStream: {ID: 1009, Column: "PCITX"}} {
		v, ok := said[clue.Column]
		if !ok {
			t.Errorf("%s has no %s", entity, clue.Column)
			continue
		}
		n := max(sample[stream], 0)
		for limit := n + 10000; n < limit && dcgmtest.Value(7, entity, clue.ID, n) != v; n++ {
		}
		sample[stream] = max(sample[stream], n)
		for _, f := range Fields {
			got, ok := said[f.Column]
			if !ok || f.Stream != stream {
				continue
			}
			checked++
			want := dcgmtest.Value(7, entity, f.ID, n)
			if got != want {
				t.Errorf("%s: %s reads %v at sample %d, want %v", entity, f.Column, got, n, want)
			}
		}
	}
	return checked
}

func TestArguments(t *testing.T) {
	w := newWorld(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(3)}, func(o *Options) {
		o.Host = "node7:5555"
		o.Period = 50 * time.Millisecond
		o.Choose = selection.Request{GPUs: "1-2,GPU-a1b2c3d4-0001"}.Select
	})
	w.untilWhole()
	for _, want := range []string{
		"dmon -c 0 -d 50 -e 100,101,140,150,155,156,202,203,204,206,207,230,251,252,253,393,394,395,449,112,158,160,163,164,235,236,237,238," +
			"240,241,242,243,244,245,246,247,250,310,311,312,313,390,391,392,396,409,419,429,439,1523,153,170,171,173,174,175,285,346,385,386,387,388,389," +
			"1204,1205,1206,1207,1208,1209,1210,1211,1212,1213,1214,1219,1400,1507 -i 1,2 --host node7:5555",
		"dmon -c 0 -d 50 -e 1001,1004,1005,1009,1010,1002,1003,1006,1007,1008,1011,1012,1013,1014,1015,1016 -i 1,2 --host node7:5555",
	} {
		if len(w.starts(want)) != 1 {
			t.Errorf("no dcgmi %s among %v", want, w.starts(""))
		}
	}
	for _, option := range []string{"-l", "-c"} {
		if len(w.discoveries(option+" --host node7:5555")) != 1 {
			t.Errorf("no discovery %s among %v", option, w.ran("discovery", ""))
		}
	}
	if got := devices(&w.last, "POWER", false); got != "1 2" {
		t.Errorf("GPUs %s", got)
	}
	if w.Name() != "dcgmi@node7:5555" || w.Caps().Local || w.Caps().Period != 50*time.Millisecond || w.Caps().Kind != source.Streamed {
		t.Errorf("%s %+v", w.Name(), w.Caps())
	}
}

func TestGarbageIsCountedAndPassedOver(t *testing.T) {
	w := newWorld(t, dcgmtest.Scenario{Failures: []dcgmtest.Failure{
		{Kind: dcgmtest.Garbage, After: 1, Text: "\x00\xff GPU? what\nGPU 0 is lost\n"},
	}})
	skipped := 0
	for range 20 {
		w.untilWhole()
		skipped += w.last.Skipped
	}
	if skipped < 20 {
		t.Errorf("%d lines skipped", skipped)
	}
	if f := w.Streams(nil); f[0].Restarts+f[1].Restarts != 0 {
		t.Errorf("%+v", f)
	}
}

func TestLostGPUs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(8)})
	w.until("all GPUs", func(b *raw.Batch, _ error) bool { return devices(b, "POWER", false) == "0 1 2 3 4 5 6 7" })
	w.set(dcgmtest.Failure{Kind: dcgmtest.GPULost, GPU: 2}, dcgmtest.Failure{Kind: dcgmtest.GPULost, GPU: 7})
	const left = "0 1 3 4 5 6"
	// Both streams must detect it, and bridge two rows each.
	w.until("six GPUs", func(b *raw.Batch, _ error) bool {
		return devices(b, "POWER", false) == left && devices(b, "SMACT", false) == left
	})
	for range 10 {
		w.untilWhole()
		if power, active := devices(&w.last, "POWER", false), devices(&w.last, "SMACT", false); power != left || active != left {
			t.Errorf("GPUs %s and %s", power, active)
		}
	}
}

// A GPU that was lost before the start is named, as far as it is known, and the others
// are read, even if dmon does not start with all. A GPU that is back is read again.
func TestGPUsThatWereLostBefore(t *testing.T) {
	t.Parallel()
	s := dcgmtest.Scenario{GPUs: dcgmtest.Boards(4)}
	s.GPUs[2].Lost = true
	w := newWorld(t, s)
	check := func(uuid string) {
		t.Helper()
		w.untilWhole()
		named := devices(&w.last, Lost, true)
		if got := devices(&w.last, "POWER", false); got != "0 1 3" || named != "2="+uuid || isSilent(&w.last) {
			t.Errorf("GPUs %s, lost %s, silent %t", got, named, isSilent(&w.last))
		}
	}
	check("")
	if w.log.count("WARN") != 0 {
		t.Error("a warning was logged")
	}
	w.scenario.GPUs = dcgmtest.Boards(4)
	w.set()
	w.resurvey(t.Context())
	w.until("all GPUs", func(b *raw.Batch, _ error) bool { return devices(b, "SMACT", false) == "0 1 2 3" })
	if has(&w.last, Lost) {
		t.Error("one is still lost")
	}
	// Now its UUID is known.
	w.scenario.GPUs = slices.Clone(s.GPUs)
	w.set()
	w.renew()
	w.until("three", func(b *raw.Batch, _ error) bool { return devices(b, "SMACT", false) == "0 1 3" })
	check(dcgmtest.Boards(4)[2].UUID)
}

// isSilent reports whether a board is named that nobody calls lost.
func isSilent(b *raw.Batch) bool {
	return slices.ContainsFunc(b.Samples, func(s raw.Sample) bool { return label(b, s, "silent") == "true" })
}

// A GPU whose rows are always blank is named, unless no vital field is requested, but not called lost.
func TestLostByItsRow(t *testing.T) {
	for _, tt := range []struct {
		fields []int
		want   string
	}{{nil, "1"}, {[]int{150, 230}, "1"}, {[]int{230, 1002}, ""}} {
		w := newWorld(t, dcgmtest.Scenario{
			Readings: []dcgmtest.Reading{{Entity: "GPU 0", Field: 230, Value: 43}},
			Failures: []dcgmtest.Failure{{Kind: dcgmtest.GPULost, GPU: 1}},
		}, func(o *Options) { o.Fields = tt.fields })
		w.until("a reading of the devices", func(b *raw.Batch, _ error) bool { return has(b, "XIDER") })
		if got := devices(&w.last, Lost, false); got != tt.want || isSilent(&w.last) != (tt.want != "") {
			t.Errorf("%v: lost %q, silent %t, want %q", tt.fields, got, isSilent(&w.last), tt.want)
		}
	}
}

// If one GPU of a selection is lost, the others are still read; at the start,
// Check reports it.
func TestSelectionThatIsLostInPart(t *testing.T) {
	w := newWorld(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(4)}, func(o *Options) { o.Choose = selection.Request{GPUs: "0-2"}.Select })
	if err := w.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	// In both streams: if one is not back yet, the next failure would be mistaken for
	// the last one.
	of := func(gpus string) func(*raw.Batch, error) bool {
		return func(b *raw.Batch, _ error) bool {
			return devices(b, "SMACT", false) == gpus && devices(b, "POWER", false) == gpus
		}
	}
	w.until("three GPUs", of("0 1 2"))
	whole := w.scenario.GPUs
	lose := func(gpus ...dcgmtest.GPU) {
		w.scenario.GPUs = gpus
		w.set(dcgmtest.Failure{Kind: dcgmtest.HostEngineDies}, dcgmtest.Failure{Kind: dcgmtest.HostEngineDown})
		w.untilFailure()
		w.set()
	}
	lose(whole[0], whole[2], whole[3])
	w.until("two GPUs", of("0 2"))
	if n := w.log.count("WARN", "--gpus=0-2: there is no GPU 1; this node has 0,2,3", "discovery -l"); n != 1 {
		t.Errorf("told %d times", n)
	}
	const words = "--gpus=0-2: there is no GPU 0; this node has 3"
	lose(whole[3])
	w.until("none", func(b *raw.Batch, err error) bool {
		if got := devices(b, "POWER", false); strings.Contains(got, "3") {
			t.Errorf("GPUs %s", got)
		}
		return err != nil && strings.Contains(err.Error(), words)
	})
	w.scenario.GPUs = whole
	w.set()
	w.until("three GPUs again", of("0 1 2"))

	late := newWorld(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(2)}, func(o *Options) { o.Choose = selection.Request{GPUs: "0-2"}.Select })
	e, ok := errors.AsType[*source.Error](late.Check(t.Context()))
	if !ok || !strings.Contains(e.Cause, "there is no GPU 2; this node has 0,1") {
		t.Errorf("%v", e)
	}
	late.until("what is there", func(b *raw.Batch, _ error) bool { return devices(b, "SMACT", false) == "0 1" })
}

// A child does not inherit CUDA_VISIBLE_DEVICES, about which DCGM prints warnings.
func TestChildrenDoNotInheritCUDA(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "1")
	w := newWorld(t, dcgmtest.Scenario{}, func(o *Options) {
		wrap(t, o, `[ -z "${CUDA_VISIBLE_DEVICES+set}" ] || echo 'CUDA_VISIBLE_DEVICES is set'; [ "$HOME" ] || echo 'there is no HOME'`)
	})
	w.untilWhole()
	if w.last.Skipped > 0 {
		t.Errorf("%d lines are skipped: %+v", w.last.Skipped, w.Streams(nil))
	}
}

// wrap makes the source run a shell script, which then runs the dcgmi of o with the
// arguments that the script leaves.
func wrap(t *testing.T, o *Options, script string) {
	t.Helper()
	real := o.Path
	o.Path = filepath.Join(t.TempDir(), "dcgmi")
	if err := os.WriteFile(o.Path, []byte("#!/bin/sh\n"+script+"\nexec "+real+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}
