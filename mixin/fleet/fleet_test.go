package fleet

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/kpulse/kpulse-proxy/internal/expose"
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

// TestRecordedSeries: the rules record at most 16 series for a device, and 6 for each of its allocations.
func TestRecordedSeries(t *testing.T) {
	parsed, errs := rulefmt.ParseFile("../prometheus_rules.yaml", false, model.LegacyValidation, metrics, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	all := map[string]bool{}
	for _, s := range expose.SeriesTable() {
		all[s.Name] = true
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now().Truncate(time.Hour)
		proxies, err := startProxies(ctx, newFleet(16), began)
		if err != nil {
			t.Fatal(err)
		}
		s := newStore()
		e := newEvaluator(s, parsed.Groups)
		for at := began.Add(interval); at.Before(began.Add(12 * interval)); at = at.Add(interval) {
			time.Sleep(time.Until(at))
			if err := scrapeAll(proxies, func(p *proxy) error { return p.scrape(s, all, at.Sub(began), at.UnixMilli()) }); err != nil {
				t.Fatal(err)
			}
			if err := e.evaluate(ctx, at, false); err != nil {
				t.Fatal(err)
			}
		}
		counts, most := map[string]int{}, map[string]int{}
		for _, r := range e.rules {
			level, _, _ := strings.Cut(r.Record, ":")
			for m := range r.present {
				if m.labels.Get("uuid") != "" {
					of := m.labels.MatchLabels(true, "uuid", "mig_instance", "workload_namespace", "workload_pod", "hpc_job").String()
					counts[level+of]++
					most[level] = max(most[level], counts[level+of])
				}
			}
		}
		t.Log(most)
		if most["device"] < 8 || most["device"] > 16 || most["allocation"] < 5 || most["allocation"]+most["gang"] > 6 {
			t.Errorf("%v recorded series, want at most 16 of a device and 6 of an allocation", most)
		}
	})
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

// TestFleetIsWhatItSays: both clusters have hosts with all models, holders of Slurm and
// Kubernetes, a board with MIG, and all incidents.
func TestFleetIsWhatItSays(t *testing.T) {
	fleet := newFleet(16)
	all := incidents(fleet, 2*time.Hour)
	seen, uuids := map[string]int{}, map[string]bool{}
	for _, h := range fleet {
		seen[h.cluster]++
		seen[h.model.name]++
		page := string(h.page(nil, 119*time.Minute))
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
	for what, want := range map[string]int{"east": 8, "west": 8, models[0].name: 6, models[1].name: 6, models[2].name: 4, "gone": 2 + 8, `hpc_job="`: 8, `pod="`: 7, `GPU_I_PROFILE="`: 1} {
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
	if want := "[GPU gone XID 79 NVLink down straggler hot reset hung job all GPUs lost proxy down silent host]"; fmt.Sprint(names) != want {
		t.Errorf("%v goes wrong, want %s", names, want)
	}
}

// TestEarlier: the samples of the quiet hour, and no later ones, precede a series in each hour before.
func TestEarlier(t *testing.T) {
	const began = 7_200_000
	m := &series{}
	for minute := range int64(130) {
		m.append(began+minute*60_000, float64(minute))
	}
	var at []int64
	for _, c := range m.earlier(began, 2) {
		for it := c.Chunk.Iterator(nil); it.Next() != chunkenc.ValNone; {
			time, v := it.At()
			if at = append(at, time); v != float64(time/60_000%60) {
				t.Errorf("%v at %d", v, time)
			}
		}
	}
	if len(at) != 120 || at[0] != 0 || at[119] != began-60_000 || !slices.IsSorted(at) {
		t.Errorf("%d samples: %v", len(at), at)
	}
}
