//go:build linux

package dcgmi

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

// Every value of every reading is what the fake says it printed, at one sample of
// the child for each stream.
func TestReadingsAreTrue(t *testing.T) {
	for _, version := range []string{"3.3.9", "4.2.0", "4.4.2", "4.6.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, dcgmitest.Scenario{Version: version, GPUs: dcgmitest.Boards(4)})
			sample := [2]int{-1, -1}
			checked := 0
			for range 25 {
				w.untilWhole()
				for _, entity := range []string{"GPU 0", "GPU 1", "GPU 2", "GPU 3"} {
					checked += checkReading(t, &w.last, entity, version, &sample)
				}
			}
			if checked < 25*4*20 {
				t.Errorf("%d values were read and checked", checked)
			}
		})
	}
}

// checkReading compares what b says of entity with the truth, and returns how much
// there was to compare. sample is the last one seen of each stream.
func checkReading(t *testing.T, b *raw.Batch, entity, version string, sample *[2]int) (checked int) {
	t.Helper()
	block := `{gpu="` + entity[4:] + `",entity="` + entity + `"}`
	read := func(column string) (float64, bool) {
		for _, s := range b.Samples {
			if b.Dict.Block(s.Labels) == block && b.Dict.Family(s.Family).Name == column {
				return s.Value, true
			}
		}
		return 0, false
	}
	for stream, clue := range []field{device: {155, "POWER"}, profiling: {1002, "SMACT"}} {
		v, ok := read(clue.column)
		if !ok {
			t.Errorf("%s has no %s", entity, clue.column)
			continue
		}
		n := max(sample[stream], 0)
		for limit := n + 10000; n < limit && dcgmitest.Value(7, entity, clue.id, n) != v; n++ {
		}
		sample[stream] = max(sample[stream], n)
		for _, f := range [][]field{device: deviceFields, profiling: profilingFields}[stream] {
			got, ok := read(f.column)
			if !ok {
				continue
			}
			checked++
			want := dcgmitest.Value(7, entity, f.id, n)
			if math.IsNaN(want) && version < "4.4.2" {
				want = 0 // so dmon wrote that there was no sample yet
			}
			if got != want {
				t.Errorf("%s: %s reads %v at sample %d, want %v", entity, f.column, got, n, want)
			}
		}
	}
	return checked
}

func TestArguments(t *testing.T) {
	w := newWorld(t, dcgmitest.Scenario{}, func(o *Options) {
		o.Host = "node7:5555"
		o.Period = 50 * time.Millisecond
		o.Entities = func(context.Context) (string, error) { return "0,1", nil }
	})
	w.untilWhole()
	for _, want := range []string{
		"dmon -c 0 -d 50 -e 100,101,112,140,150,158,155,156,160,164,202,203,204,206,207,230,240,241,242,243,250,251,252,253,310,311,312,313,393,394,395,396,409,419,429,439,449,1523 -i 0,1 --host node7:5555",
		"dmon -c 0 -d 50 -e 1001,1002,1003,1004,1005,1006,1009,1010,1011,1012 -i 0,1 --host node7:5555",
	} {
		if len(w.starts(want)) != 1 {
			t.Errorf("no dcgmi %s among %v", want, w.starts(""))
		}
	}
	if w.Name() != "dcgmi@node7:5555" || w.Caps().Local || w.Caps().Period != 50*time.Millisecond || w.Caps().Kind != source.Streamed {
		t.Errorf("%s %+v", w.Name(), w.Caps())
	}
}

func TestGarbageIsCountedAndPassedOver(t *testing.T) {
	w := newWorld(t, dcgmitest.Scenario{Failures: []dcgmitest.Failure{
		{Kind: dcgmitest.Garbage, After: 1, Text: "\x00\xff GPU? what\nGPU 0 is lost\n"},
		{Kind: dcgmitest.GluedRows, After: 4, Until: 5},
	}, Pace: dcgmitest.Pace{Chunk: 7, JitterMS: 3}})
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
	w := newWorld(t, dcgmitest.Scenario{GPUs: dcgmitest.Boards(8)})
	gpus := func(b *raw.Batch) string {
		present := ""
		for g := range 8 {
			if slices.ContainsFunc(b.Samples, func(s raw.Sample) bool {
				return strings.Contains(b.Dict.Block(s.Labels), `entity="GPU `+strconv.Itoa(g)+`"`)
			}) {
				present += strconv.Itoa(g)
			}
		}
		return present
	}
	w.until("all GPUs", func(b *raw.Batch, _ error) bool { return gpus(b) == "01234567" })
	w.set(dcgmitest.Failure{Kind: dcgmitest.GPULost, GPU: 2}, dcgmitest.Failure{Kind: dcgmitest.GPULost, GPU: 7})
	w.until("six GPUs", func(b *raw.Batch, _ error) bool { return gpus(b) == "013456" })
	for range 10 {
		w.untilWhole()
		if got := gpus(&w.last); got != "013456" {
			t.Errorf("GPUs %s", got)
		}
	}
}

// A re-cut of MIG instances shows to dmon only when it is started anew.
func TestRestartAfterARecut(t *testing.T) {
	var mu sync.Mutex
	cut := "0/*"
	gpus := dcgmitest.Boards(1)
	gpus[0].Instances = []dcgmitest.Instance{{ID: 1, Entity: 0}, {ID: 2, Entity: 1}}
	w := newWorld(t, dcgmitest.Scenario{GPUs: gpus}, func(o *Options) {
		o.Entities = func(context.Context) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			return cut, nil
		}
	})
	instances := func(want ...string) func(b *raw.Batch, _ error) bool {
		return func(b *raw.Batch, _ error) bool {
			got := map[string]bool{}
			for _, s := range b.Samples {
				_, rest, _ := strings.Cut(b.Dict.Block(s.Labels), `entity="`)
				entity, _, _ := strings.Cut(rest, `"`)
				got[entity] = true
			}
			return len(got) == len(want) && !slices.ContainsFunc(want, func(e string) bool { return !got[e] })
		}
	}
	w.until("two instances", instances("GPU-I 0", "GPU-I 1"))
	gpus[0].Instances = []dcgmitest.Instance{{ID: 9, Entity: 2}}
	w.set()
	mu.Lock()
	cut = "0,0/*"
	mu.Unlock()
	w.Restart("MIG instances have changed")
	w.until("one instance and its board", instances("GPU 0", "GPU-I 2"))
	eventually(t, "both restarts", func() bool { return w.stream(device).Restarts == 1 && w.stream(profiling).Restarts == 1 })
	if n := w.log.count("MIG instances have changed"); n != 1 || w.log.count("WARN") != 0 {
		t.Errorf("logged %d times", n)
	}
}

func TestStalledConsumer(t *testing.T) {
	w := newWorld(t, dcgmitest.Scenario{})
	w.untilWhole()
	eventually(t, "evictions", func() bool { return w.stream(device).Evicted > 20 && w.stream(profiling).Evicted > 20 })
	before := time.Now()
	readings := 0
	w.until("a fresh reading", func(b *raw.Batch, err error) bool {
		readings++
		return err == nil && b.At.After(before)
	})
	if readings > ringSize+1 {
		t.Errorf("%d readings lay about", readings)
	}
	w.untilWhole()
	if w.stream(device).Restarts != 0 {
		t.Error("the child was made to suffer")
	}
}
