package fleet

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// TestAlertsWaitAndHold: `for` and keep_firing_for work as Prometheus documents.
func TestAlertsWaitAndHold(t *testing.T) {
	began := time.Unix(6000, 0)
	for _, c := range []struct {
		wait, hold string
		results    string // for each minute: x is a result, . is none
		want       string // p is pending, f firing, . neither
		since      float64
	}{
		{"0s", "0s", ".xx.x", ".ff.f", 6240},
		{"2m", "0s", "xxxx..", "ppff..", 0},
		{"2m", "0s", "xx.xxx", "pp.ppf", 6180},
		{"1m", "2m", "xx.x...x", "pfffff.p", 6420}, // ends two minutes after the last result, and starts again
		{"5m", "2m", "xx..", "pp..", 0},
	} {
		wait, err := model.ParseDuration(c.wait)
		if err != nil {
			t.Fatal(err)
		}
		hold, err := model.ParseDuration(c.hold)
		if err != nil {
			t.Fatal(err)
		}
		r := &rule{Rule: rulefmt.Rule{Alert: "A", For: wait, KeepFiringFor: hold, Labels: map[string]string{"severity": "warning"}}, active: map[uint64]*active{}}
		var got strings.Builder
		since := 0.0
		for i, result := range c.results {
			var vector promql.Vector
			if result == 'x' {
				vector = promql.Vector{{Metric: labels.FromStrings("__name__", "m", "gpu", "3"), F: float64(i)}}
			}
			state := "."
			since = 0
			for _, s := range r.follow(vector, began.Add(time.Duration(i)*time.Minute)) {
				if s.Metric.Get("gpu") != "3" || s.Metric.Get("severity") != "warning" || s.Metric.Get("alertname") != "A" {
					t.Errorf("%v", s.Metric)
				}
				if s.Metric.Get("__name__") == "ALERTS" {
					state = s.Metric.Get("alertstate")[:1]
				} else {
					since = s.F
				}
			}
			got.WriteString(state)
		}
		if got.String() != c.want || since != c.since {
			t.Errorf("for %s, keep_firing_for %s: %s is %s since %v, want %s since %v", c.wait, c.hold, c.results, got.String(), since, c.want, c.since)
		}
	}
}

// TestStoreGivesWhatItTook: the store returns the samples appended to it, over several chunks.
func TestStoreGivesWhatItTook(t *testing.T) {
	s := newStore()
	m := s.series(labels.FromStrings("__name__", "m"))
	if s.series(labels.FromStrings("__name__", "m")) != m {
		t.Error("the same labels are two series")
	}
	for i := range int64(1000) {
		m.append(1000*i, math.Sqrt(float64(i)))
	}
	for _, c := range []struct{ from, to, first, n int64 }{{0, 999_000, 0, 1000}, {500_000, 999_000, 480_000, 520}, {600_500, 600_700, 600_000, 120}} {
		it, n := m.in(c.from, c.to).Iterator(nil), int64(0)
		for it.Next() == chunkenc.ValFloat {
			if at, v := it.At(); at != c.first+1000*n || v != math.Sqrt(float64(at/1000)) {
				t.Fatalf("sample %d is %v at %d", n, v, at)
			}
			n++
		}
		if n != c.n {
			t.Errorf("from %d to %d there are %d samples, want those of the chunks, %d", c.from, c.to, n, c.n)
		}
	}
}

// TestHistory: counters keep their slope, gauges have values that they had, and a series
// that was not always present has no history.
func TestHistory(t *testing.T) {
	began := time.Unix(1_000_000_000, 0)
	h := history{from: began.Add(-48 * time.Hour), to: began, like: [2]time.Time{began.Add(10 * time.Minute), began.Add(50 * time.Minute)}}
	of := func(name string, from, to int, value func(minute int) float64) *series {
		m := &series{labels: labels.FromStrings("__name__", name)}
		for minute := from; minute < to; minute++ {
			m.append(began.Add(time.Duration(minute)*time.Minute).UnixMilli(), value(minute))
		}
		return m
	}
	for _, m := range []*series{of("late", 20, 60, func(int) float64 { return 1 }), of("ended", 0, 40, func(int) float64 { return 1 }), of("ALERTS", 0, 60, func(int) float64 { return 1 })} {
		if list := h.before(m); list != nil {
			t.Errorf("%s has a history", m.labels)
		}
	}
	for name, value := range map[string]func(int) float64{"energy_total": func(minute int) float64 { return 600 * float64(minute) }, "gauge": func(minute int) float64 { return float64(minute % 7) }} {
		past := &series{chunks: h.before(of(name, 0, 60, value))}
		it, last, n := past.in(math.MinInt64, math.MaxInt64).Iterator(nil), time.Time{}, 0
		for ; it.Next() == chunkenc.ValFloat; n++ {
			at, v := it.At()
			now := time.UnixMilli(at)
			step := newStep
			if began.Sub(now) >= recent {
				step = oldStep
			}
			if n > 0 && now.Sub(last) != step {
				t.Fatalf("%s: %s after %s", name, now, last)
			}
			last = now
			if name == "gauge" && (v < 0 || v > 6 || v != math.Trunc(v)) {
				t.Errorf("%s has %v", name, v)
			}
			if want := 10 * now.Sub(h.from).Seconds(); name == "energy_total" && math.Abs(v-want) > 1e-6*want {
				t.Errorf("%s is %v at %s, want %v", name, v, now, want)
			}
		}
		if want := 24*12 + 24*60; n != want || !last.Equal(began.Add(-newStep)) {
			t.Errorf("%s has %d samples to %s, want %d", name, n, last, want)
		}
	}
}

// TestFleetIsWhatItSays: both clusters have hosts with all models, holders of Slurm and
// Kubernetes, a board with MIG, and all incidents.
func TestFleetIsWhatItSays(t *testing.T) {
	fleet := newFleet(16)
	all := incidents(fleet, 2*time.Hour)
	seen, uuids := map[string]int{}, map[string]bool{}
	for _, h := range fleet {
		seen[h.cluster]++
		seen[h.model.name]++
		page := string(h.page(nil, 119*time.Minute, 15*time.Second))
		for i := range h.boards {
			uuids[h.boards[i].uuid] = true
			if there := strings.Contains(page, h.boards[i].uuid); !there {
				seen["gone"]++
			}
		}
		for _, text := range []string{`hpc_job="`, `pod="`, `GPU_I_PROFILE="`} {
			if strings.Contains(page, text) {
				seen[text]++
			}
		}
	}
	for what, want := range map[string]int{"east": 8, "west": 8, models[0].name: 6, models[1].name: 6, models[2].name: 4, "gone": 2, `hpc_job="`: 8, `pod="`: 8, `GPU_I_PROFILE="`: 2} {
		if seen[what] != want {
			t.Errorf("%s: %d, want %d", what, seen[what], want)
		}
	}
	if len(uuids) != 128 {
		t.Errorf("%d boards of 128 have a uuid of their own", len(uuids))
	}
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	if want := "[GPU gone XID 79 NVLink down straggler hot reset hung job proxy down]"; fmt.Sprint(names) != want {
		t.Errorf("%v goes wrong, want %s", names, want)
	}
}
