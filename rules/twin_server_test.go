package rules_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.UTC)

// loadRules returns the rules of the twin.
func loadRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	text, err := os.ReadFile(twin)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(text, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 || len(groups.Groups) != 1 {
		t.Fatal(errs)
	}
	return groups.Groups[0].Rules
}

// server evaluates the rules as a Prometheus does that scraped some pages now and no others. The
// rules look at no earlier samples.
type server struct {
	t      *testing.T
	rules  []rulefmt.Rule
	engine *promql.Engine
	series []promql.Series
}

func newServer(t *testing.T) *server {
	return &server{t: t, rules: loadRules(t), engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{}),
	})}
}

func (s *server) add(l labels.Labels, v float64) {
	s.series = append(s.series, promql.Series{Metric: l, Floats: []promql.FPoint{{T: start.UnixMilli(), F: v}}})
}

// scrape stores a page. A malformed line makes it a failed scrape.
func (s *server) scrape(instance string, page []byte) {
	before := len(s.series)
	seen := map[string]bool{}
	p := textparse.NewPromParser(page, labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			s.series = s.series[:before]
			return
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var l labels.Labels
		p.Labels(&l)
		l = labels.NewBuilder(l).Set("instance", instance).Set("job", "dcgm-exporter").Labels()
		if _, _, v := p.Series(); !seen[l.String()] {
			seen[l.String()] = true
			s.add(l, v)
		}
	}
}

// evaluate returns what the rules record, and the number of series of each device, without those of
// what is wrong with it.
func (s *server) evaluate() (recorded map[string]float64, each map[string]int) {
	s.t.Helper()
	recorded, each = map[string]float64{}, map[string]int{}
	for _, r := range s.rules {
		q, err := s.engine.NewInstantQuery(context.Background(), s, nil, r.Expr, start)
		if err != nil {
			s.t.Fatalf("%s: %v", r.Record, err)
		}
		vector, err := q.Exec(context.Background()).Vector()
		if err != nil {
			s.t.Fatalf("%s %v: %v", r.Record, r.Labels, err)
		}
		for _, x := range vector {
			b := labels.NewBuilder(x.Metric).Set(model.MetricNameLabel, r.Record)
			for name, value := range r.Labels {
				b.Set(name, value)
			}
			id := b.Labels().String()
			if _, twice := recorded[id]; twice {
				s.t.Fatalf("%s is recorded twice", id)
			}
			recorded[id] = x.F
			if r.Record != "device:dcgm_fault:max" && r.Record != "kpulse_gpu_health_condition" {
				each[x.Metric.Get("uuid")+"/"+x.Metric.Get("mig_instance")]++
			}
			s.add(b.Labels(), x.F)
		}
		q.Close()
	}
	return recorded, each
}

// Querier implements storage.Queryable.
func (s *server) Querier(_, _ int64) (storage.Querier, error) {
	return querier{storage.NoopQuerier(), s.series}, nil
}

type querier struct {
	storage.Querier
	series []promql.Series
}

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &list{SeriesSet: storage.EmptySeriesSet()}
	for _, one := range q.series {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.Metric.Get(m.Name)) }) {
			set.rest = append(set.rest, one)
		}
	}
	return set
}

// list is a storage.SeriesSet.
type list struct {
	storage.SeriesSet
	now  promql.Series
	rest []promql.Series
}

func (l *list) Next() bool {
	if len(l.rest) == 0 {
		return false
	}
	l.now, l.rest = l.rest[0], l.rest[1:]
	return true
}

func (l *list) At() storage.Series { return promql.NewStorageSeries(l.now) }

// ours returns the series with the proxy's names.
func ours(recorded map[string]float64) map[string]float64 {
	own := map[string]float64{}
	for id, v := range recorded {
		if strings.Contains(id, `__name__="kpulse_`) {
			own[id] = v
		}
	}
	return own
}
