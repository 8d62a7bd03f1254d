package main

import (
	"context"
	"math"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// store keeps all series for the engine, with stale markers, as Prometheus does.
type store struct {
	byName map[string][]*memorySeries
	byHash map[uint64]*memorySeries
}

// memorySeries is a series with its samples by time.
type memorySeries struct {
	labels  labels.Labels
	samples []chunks.Sample
}

func newStore() *store {
	return &store{map[string][]*memorySeries{}, map[uint64]*memorySeries{}}
}

// append adds a sample. Of two at one time the first is kept, as in a scrape.
func (s *store) append(l labels.Labels, at int64, v float64) {
	m := s.byHash[l.Hash()]
	if m == nil {
		m = &memorySeries{labels: l}
		s.byHash[l.Hash()] = m
		name := l.Get(model.MetricNameLabel)
		s.byName[name] = append(s.byName[name], m)
	}
	if n := len(m.samples); n == 0 || m.samples[n-1].T() < at {
		m.samples = append(m.samples, sample{at, v})
	}
}

// end marks a series as stale.
func (s *store) end(l labels.Labels, at int64) { s.append(l, at, math.Float64frombits(value.StaleNaN)) }

// current returns the series of a name that have a sample at an instant.
func (s *store) current(name string, at int64) []*memorySeries {
	return slices.DeleteFunc(slices.Clone(s.byName[name]), func(m *memorySeries) bool {
		last := m.samples[len(m.samples)-1]
		return last.T() != at || value.IsStaleNaN(last.F())
	})
}

func (m *memorySeries) last() float64 { return m.samples[len(m.samples)-1].F() }

// Querier returns a view of everything up to maxt.
func (s *store) Querier(mint, maxt int64) (storage.Querier, error) { return view{s, mint, maxt}, nil }

type view struct {
	*store
	mint, maxt int64
}

func (v view) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{}
	for name, list := range v.byName {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel && !m.Matches(name) }) {
			for _, m := range list {
				if matches(m.labels, matchers) {
					set.list = append(set.list, m.between(v.mint, v.maxt))
				}
			}
		}
	}
	return set
}

func matches(l labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if m.Name != model.MetricNameLabel && !m.Matches(l.Get(m.Name)) {
			return false
		}
	}
	return true
}

func (m *memorySeries) between(mint, maxt int64) storage.Series {
	from, _ := slices.BinarySearchFunc(m.samples, mint, func(s chunks.Sample, t int64) int { return int(s.T() - t) })
	to, _ := slices.BinarySearchFunc(m.samples, maxt+1, func(s chunks.Sample, t int64) int { return int(s.T() - t) })
	return storage.NewListSeries(m.labels, m.samples[from:to])
}

func (v view) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (v view) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (v view) Close() error { return nil }

// seriesSet is the result of Select.
type seriesSet struct {
	list []storage.Series
	next int
}

func (s *seriesSet) Next() bool                        { s.next++; return s.next <= len(s.list) }
func (s *seriesSet) At() storage.Series                { return s.list[s.next-1] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// sample is a float at a time in milliseconds.
type sample struct {
	t int64
	v float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }
