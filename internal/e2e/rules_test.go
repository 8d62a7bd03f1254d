package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/rules"
	"github.com/kpulse/kpulse-proxy/internal/rules/engine"
)

// TestRulesAgreeWithPrometheus runs the demo for more than an hour of simulated time, in which a
// GPU disappears and returns, with rules that our engine evaluates, and sends all samples to a real
// Prometheus. Its results for the same expressions at the same instants must be the same.
func TestRulesAgreeWithPrometheus(t *testing.T) {
	t.Parallel()
	if os.Getenv("KPULSE_BINARY") != "" {
		t.Skip("evaluates rules in the test's own process, not in KPULSE_BINARY")
	}
	program := prometheusBinary(t)
	for _, test := range []struct {
		name   string
		files  []string
		render func() func(*canonical.Snapshot) [][]byte
		total  time.Duration
		least  int // results
	}{
		{"own", []string{"testdata/rules/own.rules.yml"}, renderer("full"), 20 * time.Minute, 5_000},
		{"own, lean", []string{"testdata/rules/own.rules.yml"}, renderer("lean"), 20 * time.Minute, 5_000},
		{"shipped", shippedRules(t, "kpulse-*.rules.yml"), renderer("full"), 66 * time.Minute, 10_000},
		{"shipped, lean", shippedRules(t, "kpulse-*.rules.yml"), renderer("lean"), 66 * time.Minute, 10_000},
		// These yield to a proxy's own, so they see only the exporter.
		{"shipped for an exporter", shippedRules(t, "twin/dcgm-exporter.rules.yml"), upstreamAlone, 25 * time.Minute, 5_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if len(test.files) == 0 {
				t.Skip("there are no rule files")
			}
			set, problems := rules.Load(rules.Options{ForPrometheus: true}, test.files...)
			if problems.Refuse() {
				t.Fatal(problems)
			}
			h := record(t, set.Groups, test.render, test.total)
			server := startPrometheus(t, program, nil, nil)
			server.await(t, "vector(1)")
			h.send(t, server, set.Groups)
			n := h.compare(t, server, set.Groups)
			if t.Logf("%d rules, %d equal results", set.Rules(), n); n < test.least {
				t.Errorf("%d results were compared, want at least %d", n, test.least)
			}
		})
	}
}

// shippedRules returns the shipped files, with those that others depend on first: at one instant,
// groups are evaluated in file order.
func shippedRules(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob("../../rules/" + pattern)
	if err != nil {
		t.Fatal(err)
	}
	order := []string{"kpulse-node.rules.yml", "kpulse-fleet.rules.yml", "kpulse-boards.rules.yml", "kpulse-gangs.rules.yml", "kpulse-users.rules.yml"}
	slices.SortFunc(files, func(a, b string) int {
		return slices.Index(order, filepath.Base(a)) - slices.Index(order, filepath.Base(b))
	})
	return files
}

// moment is the samples of one origin at one time.
type moment struct {
	at      time.Time
	samples map[string]float64 // by series
}

// history holds what was scraped and recorded.
type history struct {
	scrapes, results []moment
}

// spy passes readings to the engine, and records those that it accepts.
type spy struct {
	t       *testing.T
	engine  *engine.Engine
	render  func(*canonical.Snapshot) [][]byte
	history *history
}

func (s *spy) Observe(snap *canonical.Snapshot, release interface{ Release() }) bool {
	text := bytes.Join(s.render(snap), nil)
	accepted := s.engine.Observe(snap, release)
	if accepted {
		s.history.scrapes = append(s.history.scrapes, moment{snap.Source.At, pageSamples(s.t, text)})
	}
	return accepted
}

func (s *spy) Failed(source string, at time.Time) { s.engine.Failed(source, at) }

// record plays the demo on a simulated clock while rules are evaluated.
func record(t *testing.T, groups []rules.Group, render func() func(*canonical.Snapshot) [][]byte, total time.Duration) *history {
	t.Helper()
	h := &history{}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(2500 * time.Millisecond) // readings never coincide with an evaluation
		e := engine.New(engine.Options{Logger: slog.New(slog.DiscardHandler), Render: render(), Limits: engine.Limits{Series: 100_000, Samples: 1e7}})
		e.Replace(groups, time.Now())
		pipe := assemble(t, demo(10*time.Second), 0, &spy{t, e, render(), h})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = pipe.Run(ctx) }()
		go e.Run(ctx)
		time.Sleep(time.Until(time.Now().Truncate(15 * time.Second).Add(15*time.Second + time.Millisecond)))
		for begun := time.Now(); time.Since(begun) < total; time.Sleep(15 * time.Second) {
			var page bytes.Buffer
			e.Results(time.Now(), func(piece []byte) { page.Write(piece) })
			h.results = append(h.results, moment{time.Now().Add(-time.Millisecond), pageSamples(t, page.Bytes())})
		}
		cancel()
		synctest.Wait()
	})
	return h
}

// renderer renders a reading as served: the lines of the upstream that Prometheus accepts, and ours
// in a form.
func renderer(form string) func() func(*canonical.Snapshot) [][]byte {
	return func() func(*canonical.Snapshot) [][]byte {
		writer := expose.NewWriter(forms[form])
		var ours bytes.Buffer
		return func(s *canonical.Snapshot) [][]byte {
			ours.Reset()
			_ = writer.Write(&ours, s) // memory takes everything
			return append(slices.Clone(s.Valid), ours.Bytes())
		}
	}
}

// upstreamAlone renders a reading as the exporter serves it.
func upstreamAlone() func(*canonical.Snapshot) [][]byte {
	return func(s *canonical.Snapshot) [][]byte { return s.Valid }
}

// pageSamples reads an exposition as Prometheus does.
func pageSamples(t *testing.T, page []byte) map[string]float64 {
	t.Helper()
	samples := map[string]float64{}
	p := textparse.NewPromParser(page, labels.NewSymbolTable(), false)
	for {
		kind, err := p.Next()
		if err == io.EOF { //nolint:errorlint // textparse returns it as it is
			return samples
		}
		if err != nil {
			t.Fatal(err)
		}
		if kind == textparse.EntrySeries {
			var l labels.Labels
			p.Labels(&l)
			_, _, v := p.Series()
			samples[l.WithoutEmpty().String()] = v
		}
	}
}

// send writes the history to a server: what was scraped, and what was recorded at the instants of
// its group, with staleness markers.
func (h *history) send(t *testing.T, server *prometheus, groups []rules.Group) {
	t.Helper()
	var recorded []moment
	for _, r := range h.results {
		samples := map[string]float64{}
		for series, v := range r.samples {
			if at := intervalOf(groups, nameOf(series)); r.at.Unix()%int64(at.Seconds()) == 0 {
				samples[series] = v
			}
		}
		recorded = append(recorded, moment{r.at, samples})
	}
	scraped := &writer{t: t, server: server, every: func(string) time.Duration { return time.Millisecond }}
	written := &writer{t: t, server: server, every: func(series string) time.Duration { return intervalOf(groups, nameOf(series)) }}
	for scrapes := h.scrapes; len(scrapes)+len(recorded) > 0; { // in time order
		if len(recorded) == 0 || len(scrapes) > 0 && scrapes[0].at.Before(recorded[0].at) {
			scraped.write(scrapes[0])
			scrapes = scrapes[1:]
		} else {
			written.write(recorded[0])
			recorded = recorded[1:]
		}
	}
}

// nameOf returns the name in a series' labels.
func nameOf(series string) string {
	_, rest, _ := strings.Cut(series, `__name__="`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

// intervalOf returns how often a name is recorded.
func intervalOf(groups []rules.Group, name string) time.Duration {
	for _, g := range groups {
		for _, r := range g.Rules {
			if r.Record == name {
				return g.Interval
			}
		}
	}
	return time.Second
}

// compare queries the expressions at the instants of their groups, and returns how many of our
// results agree. Names that several rules record are compared as one.
func (h *history) compare(t *testing.T, server *prometheus, groups []rules.Group) int {
	t.Helper()
	compared := 0
	for _, name := range recordedNames(groups) {
		want := map[string]map[int64]float64{} // by series and time
		for _, g := range groups {
			for _, r := range g.Rules {
				if r.Record == name {
					h.ask(t, server, g, r, want)
				}
			}
		}
		got := map[string]map[int64]float64{}
		every := int64(intervalOf(groups, name).Seconds())
		for _, now := range h.results {
			for series, v := range now.samples {
				if nameOf(series) == name && now.at.Unix()%every == 0 {
					put(got, series, now.at.Unix(), v)
				}
			}
		}
		compared += same(t, got, want)
	}
	return compared
}

func recordedNames(groups []rules.Group) (names []string) {
	for _, g := range groups {
		for _, r := range g.Rules {
			names = append(names, r.Record)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func put(all map[string]map[int64]float64, series string, at int64, v float64) {
	if all[series] == nil {
		all[series] = map[int64]float64{}
	}
	if _, twice := all[series][at]; !twice {
		all[series][at] = v
	}
}

// ask adds the server's results of a rule over the whole history.
func (h *history) ask(t *testing.T, server *prometheus, g rules.Group, r rules.Rule, results map[string]map[int64]float64) {
	t.Helper()
	every := g.Interval
	begin := h.results[0].at.Add(every - 1).Truncate(every)
	end := h.results[len(h.results)-1].at
	var data struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any
		}
	}
	query := url.Values{"query": {r.Text}, "start": {fmt.Sprint(begin.Unix())}, "end": {fmt.Sprint(end.Unix())}, "step": {fmt.Sprint(every.Seconds())}}
	if err := server.get("/api/v1/query_range?"+query.Encode(), &data); err != nil {
		t.Fatalf("%s: %v", r.Text, err)
	}
	for _, one := range data.Result {
		b := labels.NewBuilder(labels.FromMap(one.Metric)).Set(model.MetricNameLabel, r.Record)
		for name, v := range r.Labels {
			b.Set(name, v)
		}
		series := b.Labels().String()
		for _, x := range one.Values {
			v, err := strconv.ParseFloat(fmt.Sprint(x[1]), 64)
			if err != nil {
				t.Fatal(err)
			}
			put(results, series, int64(x[0].(float64)), v)
		}
	}
}

// same returns the number of equal results, and reports the first differences.
func same(t *testing.T, got, want map[string]map[int64]float64) int {
	t.Helper()
	n, wrong := 0, 0
	complain := func(format string, args ...any) {
		if wrong++; wrong <= 3 {
			t.Errorf(format, args...)
		}
	}
	for series, values := range want {
		for at, w := range values {
			g, ok := got[series][at]
			switch {
			case !ok:
				complain("%s at %s: none, Prometheus has %v", series, time.Unix(at, 0).UTC(), w)
			case g != w && !(math.IsNaN(g) && math.IsNaN(w)) && math.Abs(g-w) > 1e-9*max(math.Abs(w), 1e-3):
				complain("%s at %s: %v, Prometheus has %v", series, time.Unix(at, 0).UTC(), g, w)
			default:
				n++
			}
		}
	}
	for series, values := range got {
		for at, g := range values {
			if _, ok := want[series][at]; !ok {
				complain("%s at %s: %v, Prometheus has none", series, time.Unix(at, 0).UTC(), g)
			}
		}
	}
	return n
}
