package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// server does what Prometheus does with targets and one group of rules: it scrapes, evaluates
// in order, and marks missing series as stale. The query engine is the real one.
type server struct {
	tb      testing.TB
	store   *store
	engine  *promql.Engine
	rules   []rulefmt.Rule
	targets map[string][]labels.Labels // the series of each target's last scrape
	results [][]labels.Labels          // the series of each rule's last evaluation
}

func newServer(tb testing.TB, text string) *server {
	tb.Helper()
	p := parser.NewParser(parser.Options{})
	file, errs := rulefmt.Parse([]byte(text), false, model.UTF8Validation, p, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		tb.Fatal(errs)
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000, Timeout: time.Minute, Parser: p, EnableNegativeOffset: true, EnableAtModifier: true,
	})
	rules := file.Groups[0].Rules
	return &server{tb, newStore(), engine, rules, map[string][]labels.Labels{}, make([][]labels.Labels, len(rules))}
}

// scrape stores an exposition. A malformed line makes it a failed scrape.
func (s *server) scrape(instance string, at time.Time, body []byte) {
	var now []labels.Labels
	var values []float64
	p := textparse.NewPromParser(body, labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			now = nil
			break
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var l labels.Labels
		p.Labels(&l)
		_, _, v := p.Series()
		now = append(now, labels.NewBuilder(l).Set("instance", instance).Set("job", "dcgm-exporter").Labels())
		values = append(values, v)
	}
	for i, l := range now {
		s.store.append(l, at.UnixMilli(), values[i])
	}
	s.endOthers(s.targets[instance], now, at)
	s.targets[instance] = now
}

// accepted returns the lines of a body that Prometheus accepts.
func accepted(body []byte) (lines []byte) {
	for line := range bytes.Lines(body) {
		_, err := textparse.NewPromParser(bytes.Clone(line), labels.NewSymbolTable(), false).Next()
		if err == nil {
			lines = append(lines, line...)
		}
	}
	return lines
}

// endOthers marks the series in old but not in now as stale.
func (s *server) endOthers(old, now []labels.Labels, at time.Time) {
	there := make(map[uint64]bool, len(now))
	for _, l := range now {
		there[l.Hash()] = true
	}
	for _, l := range old {
		if !there[l.Hash()] {
			s.store.end(l, at.UnixMilli())
		}
	}
}

// evaluate evaluates the rules once.
func (s *server) evaluate(at time.Time) {
	s.tb.Helper()
	for i := range s.rules {
		r := &s.rules[i]
		q, err := s.engine.NewInstantQuery(context.Background(), s.store, nil, r.Expr, at)
		if err != nil {
			s.tb.Fatalf("%s: %v", r.Record, err)
		}
		result := q.Exec(context.Background())
		vector, err := result.Vector()
		if err != nil {
			s.tb.Fatalf("%s: %v", r.Record, err)
		}
		var now []labels.Labels
		seen := map[uint64]bool{}
		for _, smp := range vector {
			b := labels.NewBuilder(smp.Metric).Set(model.MetricNameLabel, r.Record)
			for k, v := range r.Labels {
				b.Set(k, v)
			}
			l := b.Labels()
			if seen[l.Hash()] {
				s.tb.Fatalf("%s: two samples for %s", r.Record, l)
			}
			seen[l.Hash()] = true
			s.store.append(l, at.UnixMilli(), smp.F)
			now = append(now, l)
		}
		q.Close()
		s.endOthers(s.results[i], now, at)
		s.results[i] = now
	}
}
