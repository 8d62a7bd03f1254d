package engine

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
	"github.com/kpulse/kpulse-proxy/internal/rules"
)

// TestEngineAgreesWithPrometheus evaluates the same rules over the same scrapes with the
// engine and with a reference, which stores what Prometheus' scrapes and rule groups would,
// and forgets nothing: samples come and go, counters reset, and rules read other rules'
// results.
func TestEngineAgreesWithPrometheus(t *testing.T) {
	for seed := range uint64(slow.Rounds(1, 2)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			world := newWorld(seed)
			groups := group15(referenceRules...)
			ours := newTestEngine(t, groups)
			theirs := newReference(t, groups)
			compared := 0
			start := time.Unix(1_700_000_000, 0)
			ours.e.Replace(groups, start)
			for at := start.Add(1300 * time.Millisecond); at.Before(start.Add(20 * time.Minute)); at = at.Add(5 * time.Second) {
				for name, page := range world.scrape() {
					ours.observe(name, at, page)
					theirs.scrape(name, at, page)
				}
				if at.Unix()%15 < 5 {
					ts := at.Truncate(time.Second)
					ts = ts.Add(-time.Duration(ts.Unix()%15) * time.Second).Add(4 * time.Second)
					if ts.Before(at) {
						ts = ts.Add(15 * time.Second)
					}
					compared += compare(t, ts, ours.evaluate(ts), theirs.evaluate(ts))
				}
				if t.Failed() {
					return
				}
			}
			if compared < 8_000 {
				t.Errorf("only %d results compared", compared)
			}
		})
	}
}

// referenceRules are pairs of record and expression. The last ones read the results of
// others.
var referenceRules = [][2]string{
	{"a:now", `gauge`},
	{"a:sum", `sum by (gpu) (gauge)`},
	{"a:rate", `rate(work_total[1m])`},
	{"a:increase", `sum without (uuid) (increase(work_total[5m]))`},
	{"a:irate", `irate(work_total[90s])`},
	{"a:delta", `delta(gauge[2m])`},
	{"a:deriv", `deriv(gauge[3m])`},
	{"a:predict", `predict_linear(gauge[3m], 60)`},
	{"a:avg", `avg_over_time(gauge[1m])`},
	{"a:max", `max_over_time(gauge[4m])`},
	{"a:stddev", `stddev_over_time(gauge[4m])`},
	{"a:quantile", `quantile_over_time(0.9, gauge[4m])`},
	{"a:count", `count_over_time(gauge[5m])`},
	{"a:last", `last_over_time(gauge[5m])`},
	{"a:present", `present_over_time(gauge[30s])`},
	{"a:absent", `absent(gauge{gpu="0"})`},
	{"a:absent_over", `absent_over_time(gauge{gpu="1"}[20s])`},
	{"a:changes", `changes(state[5m])`},
	{"a:resets", `resets(work_total[5m])`},
	{"a:offset", `gauge offset 1m`},
	{"a:offset_rate", `rate(work_total[1m] offset 2m)`},
	{"a:at", `gauge @ end()`},
	{"a:subquery", `max_over_time(rate(work_total[1m])[3m:20s])`},
	{"a:subquery_standard", `avg_over_time(sum(gauge)[2m:])`},
	{"a:regex", `count({__name__=~"gau.*|state"})`},
	{"a:not", `gauge{gpu!~"0|1"}`},
	{"a:join", `gauge * on (uuid) group_left (model) info`},
	{"a:unless", `gauge unless on (uuid) (state == 2)`},
	{"a:or", `state == 1 or gauge`},
	{"a:ratio", `sum(gauge) / sum(gauge > 1e9)`},
	{"a:topk", `topk(2, gauge)`},
	{"a:replace", `label_replace(gauge, "short", "$1", "uuid", "GPU-(.).*")`},
	{"a:scalar", `scalar(sum(gauge)) + time()`},
	{"a:vector", `vector(42)`},
	{"a:nan", `gauge * NaN`},
	{"a:inf", `gauge / 0`},
	{"a:clamp", `clamp(gauge, 10, 50)`},
	{"a:timestamp", `timestamp(gauge)`},
	{"b:of_rule", `a:sum * 2`},
	{"b:of_rule_then", `avg_over_time(a:sum[2m])`},
	{"b:of_rule_gone", `count_over_time(a:unless[1m])`},
	{"b:by_name", `count({__name__=~"a:.*"})`},
	{"b:of_itself", `sum(b:of_itself) + 1 or vector(0)`},
}

// world makes expositions of two sources whose devices come and go.
type world struct {
	rng      *rand.Rand
	counters map[string]float64
	gone     map[string]int
}

func newWorld(seed uint64) *world {
	return &world{rand.New(rand.NewPCG(seed, 6)), map[string]float64{}, map[string]int{}}
}

// scrape returns the next exposition of each source, "" if it could not be read.
func (w *world) scrape() map[string]string {
	pages := map[string]string{}
	for i, name := range []string{"one", "two"} {
		if w.away(name, 40) {
			pages[name] = ""
			continue
		}
		pages[name] = w.page(3*i, 3)
	}
	return pages
}

// away reports whether something is missing, which begins at one in times calls and lasts
// a while.
func (w *world) away(what string, times int) bool {
	if w.gone[what] == 0 && w.rng.IntN(times) == 0 {
		w.gone[what] = 1 + w.rng.IntN(1+w.rng.IntN(80))
	}
	if w.gone[what] > 0 {
		w.gone[what]--
		return true
	}
	return false
}

func (w *world) page(first, n int) string {
	var b strings.Builder
	families := []string{"gauge", "work_total", "state", "info", "unasked"}
	w.rng.Shuffle(len(families), func(i, j int) { families[i], families[j] = families[j], families[i] })
	for _, family := range families {
		fmt.Fprintf(&b, "# HELP %s \"text\"\n# TYPE %s untyped\n", family, family)
		for gpu := first; gpu < first+n; gpu++ {
			block := fmt.Sprintf(`{gpu="%d",uuid="GPU-%x",note="a\\b\"} 5\n{"}`, gpu, gpu)
			if family == "info" {
				block = block[:len(block)-1] + `,model="M",empty=""}`
			}
			if w.away(fmt.Sprint("gpu", gpu), 300) || w.away(family+block, 100) {
				continue
			}
			fmt.Fprintf(&b, "%s%s %s\n", family, block, w.value(family, family+block))
		}
	}
	return b.String()
}

func (w *world) value(family, series string) string {
	switch family {
	case "work_total":
		if w.counters[series] += 5 * w.rng.Float64(); w.rng.IntN(60) == 0 {
			w.counters[series] = 0
		}
		return fmt.Sprint(w.counters[series])
	case "state":
		return fmt.Sprint(w.rng.IntN(3))
	case "info":
		return "1"
	}
	return []string{"NaN", "+Inf", "1e3", "-0", fmt.Sprint(100 * w.rng.Float64())}[min(4, w.rng.IntN(100))]
}

// group15 returns a group of rules, given as pairs of record and expression.
func group15(list ...[2]string) []rules.Group {
	g := rules.Group{File: "f.yml", Name: "g"}
	p := parser.NewParser(parser.Options{})
	for i, r := range list {
		expr, err := p.ParseExpr(r[1])
		if err != nil {
			panic(err)
		}
		g.Rules = append(g.Rules, rules.Rule{Line: i + 1, Record: r[0], Text: r[1], Selects: parser.ExtractSelectors(expr), Reach: rules.Reach(expr), Labels: map[string]string{"by": "us"}})
	}
	return []rules.Group{g}
}

// reference is a minimal Prometheus: it stores all samples for ever, and searches all of
// them for each selector. Prometheus' own database would add the SDKs of three clouds to
// go.mod; TestRulesAgreeWithPrometheus runs the server.
type reference struct {
	t      *testing.T
	db     everything
	engine *promql.Engine
	rules  []rules.Rule
	before map[string]map[string]labels.Labels // by source or rule
}

func newReference(t *testing.T, groups []rules.Group) *reference {
	return &reference{t: t, db: everything{}, rules: groups[0].Rules, before: map[string]map[string]labels.Labels{},
		engine: promql.NewEngine(promql.EngineOpts{
			MaxSamples: 50e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
			EnableAtModifier: true, EnableNegativeOffset: true,
			NoStepSubqueryIntervalFn: func(int64) int64 { return 15_000 },
			Parser:                   parser.NewParser(parser.Options{}),
		})}
}

// everything holds all samples, by series.
type everything map[string]*promql.Series

func (db everything) add(l labels.Labels, at time.Time, v float64) {
	s := db[l.String()]
	if s == nil {
		s = &promql.Series{Metric: l}
		db[l.String()] = s
	}
	if n := len(s.Floats); n == 0 || s.Floats[n-1].T < at.UnixMilli() {
		s.Floats = append(s.Floats, promql.FPoint{T: at.UnixMilli(), F: v})
	}
}

func (db everything) Querier(_, _ int64) (storage.Querier, error) {
	return &lookup{Querier: storage.NoopQuerier(), db: db}, nil
}

type lookup struct {
	storage.Querier
	db everything
}

func (q *lookup) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var list []storage.Series
	for _, key := range slices.Sorted(maps.Keys(q.db)) {
		s := q.db[key]
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Metric.Get(m.Name)) }) {
			list = append(list, promql.NewStorageSeries(*s))
		}
	}
	return &listed{SeriesSet: storage.EmptySeriesSet(), list: list}
}

type listed struct {
	storage.SeriesSet
	list []storage.Series
	now  storage.Series
}

func (l *listed) Next() bool {
	if len(l.list) == 0 {
		return false
	}
	l.now, l.list = l.list[0], l.list[1:]
	return true
}

func (l *listed) At() storage.Series { return l.now }

// store appends samples of one origin, and marks as stale the series that it no longer has.
func (r *reference) store(origin string, at time.Time, samples map[string]promql.Sample) {
	now := map[string]labels.Labels{}
	for key, s := range samples {
		r.db.add(s.Metric, at, s.F)
		now[key] = s.Metric
	}
	for key, l := range r.before[origin] {
		if _, ok := now[key]; !ok {
			r.db.add(l, at, math.Float64frombits(value.StaleNaN))
		}
	}
	r.before[origin] = now
}

func (r *reference) scrape(source string, at time.Time, page string) {
	samples := map[string]promql.Sample{}
	for _, s := range parseWithPrometheus(r.t, page) {
		samples[s.Metric.String()] = s
	}
	r.store(source, at, samples)
}

// evaluate returns the results of all rules by series.
func (r *reference) evaluate(ts time.Time) map[string]float64 {
	all := map[string]float64{}
	for _, rule := range r.rules {
		q, err := r.engine.NewInstantQuery(context.Background(), r.db, nil, rule.Text, ts)
		if err != nil {
			r.t.Fatal(err)
		}
		res := q.Exec(context.Background())
		if res.Err != nil {
			r.t.Fatal(rule.Text, res.Err)
		}
		vector, ok := res.Value.(promql.Vector)
		if scalar, is := res.Value.(promql.Scalar); is {
			vector, ok = promql.Vector{{F: scalar.V}}, true
		}
		if !ok {
			r.t.Fatalf("%s gives %s", rule.Text, res.Value.Type())
		}
		samples := map[string]promql.Sample{}
		for _, s := range vector {
			b := labels.NewBuilder(s.Metric).Set("__name__", rule.Record)
			for name, value := range rule.Labels {
				b.Set(name, value)
			}
			s.Metric = b.Labels()
			samples[s.Metric.String()] = s
			all[s.Metric.String()] = s.F
		}
		q.Close()
		r.store(rule.Record, ts, samples)
	}
	return all
}

// compare returns how many results Prometheus has, and reports those that differ.
func compare(t *testing.T, ts time.Time, got, want map[string]float64) int {
	t.Helper()
	for series, w := range want {
		g, ok := got[series]
		same := g == w || math.IsNaN(g) && math.IsNaN(w) || math.Abs(g-w) <= 1e-9*math.Abs(w)
		if !ok || !same {
			t.Errorf("%s: %s is %v (%v), Prometheus has %v", ts.UTC(), series, g, ok, w)
		}
	}
	for series := range got {
		if _, ok := want[series]; !ok {
			t.Errorf("%s: %s is %v, Prometheus has none", ts.UTC(), series, got[series])
		}
	}
	return len(want)
}
