package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/rules"
)

// testEngine is an engine whose readings are texts.
type testEngine struct {
	t   *testing.T
	e   *Engine
	log *bytes.Buffer
}

func newTestEngine(t *testing.T, groups []rules.Group) *testEngine {
	log := &bytes.Buffer{}
	e := New(Options{
		Logger: slog.New(slog.NewTextHandler(log, nil)),
		Limits: Limits{Series: 1000, Samples: 1 << 20},
		Render: func(s *canonical.Snapshot) [][]byte { return s.Valid },
	})
	e.Replace(groups, time.Unix(0, 0))
	return &testEngine{t, e, log}
}

// observe stores an exposition immediately; "" is a source that could not be read.
func (te *testEngine) observe(source string, at time.Time, page string) {
	r := outcome{source: source, at: at}
	if page != "" {
		half := max(0, strings.LastIndex(page, "\n#")+1) // pages come in parts
		r.snapshot = &canonical.Snapshot{Valid: [][]byte{[]byte(page[:half]), []byte(page[half:])}}
	}
	te.e.inbox.waiting = append(te.e.inbox.waiting, r)
	te.e.storeReadings(at)
}

// evaluate returns the results of all rules at an instant, by series.
func (te *testEngine) evaluate(ts time.Time) map[string]float64 {
	te.t.Helper()
	for _, g := range *te.e.groups.Load() {
		te.e.run(context.Background(), g, ts)
		te.e.publish()
	}
	return te.results(ts)
}

// results returns the samples that are served at an instant.
func (te *testEngine) results(at time.Time) map[string]float64 {
	te.t.Helper()
	results := map[string]float64{}
	for _, s := range parseWithPrometheus(te.t, te.page(at)) {
		if _, twice := results[s.Metric.String()]; twice {
			te.t.Errorf("%s is served twice", s.Metric)
		}
		results[s.Metric.String()] = s.F
	}
	return results
}

// page returns the text that is served at an instant.
func (te *testEngine) page(at time.Time) string {
	var b bytes.Buffer
	te.e.Results(at, func(piece []byte) { b.Write(piece) })
	return b.String()
}

// parseWithPrometheus reads an exposition as Prometheus does.
func parseWithPrometheus(t *testing.T, page string) []promql.Sample {
	t.Helper()
	p := textparse.NewPromParser([]byte(page), labels.NewSymbolTable(), false)
	var samples []promql.Sample
	for {
		kind, err := p.Next()
		if errors.Is(err, io.EOF) {
			return samples
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, page)
		}
		if kind != textparse.EntrySeries {
			continue
		}
		var s promql.Sample
		p.Labels(&s.Metric)
		_, _, s.F = p.Series()
		s.Metric = s.Metric.WithoutEmpty()
		samples = append(samples, s)
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
