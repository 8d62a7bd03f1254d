//go:build cgo && linux

package nvml

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// At the shortest period a pair of samples spans two periods: NVML requires more
// than 100 ms.
func TestGPMAtTheShortestPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		m.boards[0].gpm, m.boards[0].metrics = true, counted
		r := newReader(t, m, func(o *Options) { o.Period = MinPeriod })
		defer r.Close()
		for i := range 10 {
			all := r.read()
			if _, ok := all["0 DCGM_FI_PROF_SM_ACTIVE"]; !ok {
				t.Errorf("reading %d: no SM activity", i)
			}
		}
	})
}

// If the first calls to a board take long, its first sample is taken long after the round began.
func TestGPMAfterSlowFirstCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		b := m.boards[0]
		b.gpm, b.metrics = true, counted
		b.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return {
			time.Sleep(500 * time.Millisecond)
			return nvml.SUCCESS
		}
		r := newReader(t, m, nil)
		defer r.Close()
		for range 3 {
			check(t, r.read(), "0", steady, linkTraffic, counts, traffic)
		}
	})
}

// A sample may be of any moment of its call. This board does not count its memory's activity, which
// would show that the next sample has the same counters.
func TestGPMOfASlowSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		b := m.boards[0]
		b.gpm, b.metrics = true, maps.Clone(counted)
		delete(b.metrics, nvml.GPM_METRIC_DRAM_BW_UTIL)
		r := newReader(t, m, func(o *Options) { o.Period = MinPeriod })
		defer r.Close()
		absent := 0
		for i := range 10 {
			if i == 4 {
				b.mu.Lock()
				b.delay = 180 * time.Millisecond
				b.mu.Unlock()
			}
			switch sm, ok := r.read()["0 DCGM_FI_PROF_SM_ACTIVE"]; {
			case !ok:
				absent++
			case sm != "0.421235":
				t.Errorf("reading %d: SM %s", i, sm)
			}
		}
		if absent > 1 {
			t.Errorf("%d readings without SM activity", absent)
		}
	})
}

// A pair of the same counters says nothing: 0 is no activity.
func TestEmptyPairIsNoActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		b := m.boards[0]
		b.gpm, b.metrics = true, counted
		r := newReader(t, m, nil)
		defer r.Close()
		r.read()
		b.mu.Lock()
		b.counted = time.Now().Add(time.Hour) // the driver gives these counters for an hour
		b.mu.Unlock()
		for range 2 { // with new counters, and with those before them
			check(t, r.read(), "0", steady, linkTraffic, counts, traffic)
		}
		check(t, r.read(), "0", steady, linkTraffic)
	})
}

// Neither zeros alone nor a NaN alone make an empty pair.
func TestIdleIsNoEmptyPair(t *testing.T) {
	with := func(all map[nvml.GpmMetricId]float64, id nvml.GpmMetricId, value float64) map[nvml.GpmMetricId]float64 {
		all = maps.Clone(all)
		all[id] = value
		return all
	}
	idle := map[nvml.GpmMetricId]float64{}
	for id := range counted {
		idle[id] = 0
	}
	for name, test := range map[string]struct {
		metrics  map[nvml.GpmMetricId]float64
		sm, dram string
	}{
		"idle":                       {idle, "0.000000", "0.000000"},
		"busy, memory unread":        {with(counted, nvml.GPM_METRIC_DRAM_BW_UTIL, math.NaN()), "0.421235", ""},
		"a hair busy, memory unread": {with(with(idle, nvml.GPM_METRIC_SM_UTIL, .01), nvml.GPM_METRIC_DRAM_BW_UTIL, math.NaN()), "0.0001", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(1)
			m.boards[0].gpm, m.boards[0].metrics = true, test.metrics
			r := newReader(t, m, nil)
			defer r.Close()
			all := r.read()
			if sm, dram := all["0 DCGM_FI_PROF_SM_ACTIVE"], all["0 DCGM_FI_PROF_DRAM_ACTIVE"]; sm != test.sm || dram != test.dram {
				t.Errorf("%s: SM %q, DRAM %q", name, sm, dram)
			}
		})
	}
}

// TestGPMCalls: which calls a reading makes, and which pair of samples it takes: the latest that are
// at least 105 ms and less than 5 periods apart.
func TestGPMCalls(t *testing.T) {
	const alloc, sampled, averaged = "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet"
	const ms = time.Millisecond
	type step struct {
		after  time.Duration
		call   string // that fails, with the answer
		answer nvml.Return
		calls  []string
		span   time.Duration // of the pair, 0 for none
	}
	for name, steps := range map[string][]step{
		"pairs": {
			{0, "", 0, []string{alloc, sampled}, 0},
			{105 * ms, "", 0, []string{alloc, sampled, averaged}, 105 * ms},
			{104 * ms, "", 0, []string{alloc, sampled, averaged}, 209 * ms},
			{105 * ms, "", 0, []string{sampled, averaged}, 105 * ms},
			{5 * time.Second, "", 0, []string{sampled}, 0},
			{5*time.Second - ms, "", 0, []string{sampled, averaged}, 5*time.Second - ms},
		},
		"errors that pass": {
			{0, "", 0, []string{alloc, sampled}, 0},
			{200 * ms, "", 0, []string{alloc, sampled, averaged}, 200 * ms},
			{200 * ms, averaged, nvml.ERROR_UNKNOWN, []string{alloc, sampled, averaged}, 0},
			{200 * ms, sampled, nvml.ERROR_UNKNOWN, []string{sampled}, 0},
			{200 * ms, "", 0, []string{sampled, averaged}, 400 * ms},
			{200 * ms, averaged, nvml.ERROR_NOT_SUPPORTED, []string{sampled, averaged}, 0},
			{200 * ms, "", 0, []string{sampled, averaged}, 200 * ms},
		},
		"no buffers": {
			{0, alloc, nvml.ERROR_NOT_SUPPORTED, []string{alloc}, 0},
			{time.Second, "", 0, nil, 0},
		},
		"no samples": {
			{0, sampled, nvml.ERROR_NOT_SUPPORTED, []string{alloc, sampled}, 0},
			{time.Second, "", 0, nil, 0},
		},
		"no averages": {
			{0, "", 0, []string{alloc, sampled}, 0},
			{time.Second, averaged, nvml.ERROR_NOT_SUPPORTED, []string{alloc, sampled, averaged}, 0},
			{time.Second, "", 0, nil, 0},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(1)
			b := m.boards[0]
			b.metrics = counted
			m.GpmSampleAllocFunc = func() (nvml.GpmSample, nvml.Return) {
				if answer := b.meets(alloc); answer != nvml.SUCCESS {
					return nil, answer
				}
				return m.newSample(), nvml.SUCCESS
			}
			m.GpmMetricsGetFunc = func(get *nvml.GpmMetricsGetType) nvml.Return {
				answer := metricsBetween(get)
				get.Metrics[0].Value = float64(get.Sample2.(*sample).at.Sub(get.Sample1.(*sample).at) / ms)
				return answer
			}
			g := (&worker{gpu: &gpu{lib: &library{Interface: m}, device: b}}).newGPM(wholeBoard)
			for i, step := range steps {
				time.Sleep(step.after)
				b.say(step.call, step.answer)
				if step.call == "" {
					clear(b.says)
				}
				var calls []string
				row := newRow()
				answer := g.ask(func(call string) { calls = append(calls, call) }, time.Second, row)
				span := time.Duration(math.Round(row[columns("GRACT")[0]]*100)) * ms
				if math.IsNaN(row[columns("GRACT")[0]]) {
					span = 0
				}
				if !slices.Equal(calls, step.calls) || span != step.span || answer != step.answer {
					t.Errorf("%s: step %d: calls %q, a pair over %s, answer %d", name, i, calls, span, answer)
				}
			}
			g.free()
			if g.free(); m.allocated != 0 {
				t.Errorf("%s: %d samples are left", name, m.allocated)
			}
		})
	}
}

// A board that refuses every metric is not sampled again, and has the readings that stand in.
func TestGPMWithoutMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		m.boards[0].gpm = true
		r := newReader(t, m, nil)
		defer r.Close()
		for range 3 {
			r.read()
		}
		check(t, r.read(), "0", steady, linkTraffic, standIn)
		if n := m.boards[0].asked(gpmSampleCall); n != 2 {
			t.Errorf("%d samples", n)
		}
		if r.Streams(nil)[profiling].Failure == nil || strings.Contains(r.Version(), "GPM") {
			t.Errorf("the profiling stream works: %s", r.Version())
		}
	})
}

// A denied sample of an instance is logged under its own call.
func TestGPMOfADeniedInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		b := m.boards[0]
		b.gpm, b.metrics = true, counted
		b.addInstance(7, "1g.10gb").mig = counted
		b.say("nvmlGpmMigSampleGet", nvml.ERROR_NO_PERMISSION)
		r := newReader(t, m, nil)
		defer r.Close()
		if r.read(); r.log.count("the driver denies a reading", "call=nvmlGpmMigSampleGet") != 1 {
			t.Error(r.log.text.String())
		}
	})
}

func TestGPMSupport(t *testing.T) {
	tests := []struct {
		name             string
		query, sample    nvml.Return
		supported, gives bool
		samples          int // requested in three readings and before the first
	}{
		{"yes", nvml.SUCCESS, nvml.SUCCESS, true, true, 4},
		{"no", nvml.SUCCESS, nvml.SUCCESS, false, false, 0},
		{"refused", nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NOT_SUPPORTED, true, false, 1},
		{"an error that passes", nvml.ERROR_UNKNOWN, nvml.SUCCESS, false, true, 4},
		{"no samples", nvml.SUCCESS, nvml.ERROR_NOT_SUPPORTED, true, false, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(1)
				b := m.boards[0]
				b.gpm, b.metrics = tt.supported, counted
				b.say(gpmSupportCall, tt.query)
				b.say(gpmSampleCall, tt.sample)
				r := newReader(t, m, nil)
				r.read()
				r.read()
				want := []map[string]string{steady, linkTraffic, standIn}
				if tt.gives {
					want = []map[string]string{steady, linkTraffic, counts, traffic}
				}
				check(t, r.read(), "0", want...)
				if n := b.asked(gpmSampleCall); n != tt.samples {
					t.Errorf("%d samples", n)
				}
				if n := b.asked(gpmSupportCall); n != 1 {
					t.Errorf("support was asked for %d times", n)
				}
				if err := r.Close(); err != nil || m.allocated != 0 {
					t.Errorf("close: %v, %d samples left", err, m.allocated)
				}
			})
		})
	}
}
