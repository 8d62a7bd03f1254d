package engine

import (
	"context"
	"errors"
	"slices"
	"sort"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// Querier implements storage.Queryable. Its results are valid while the engine's lock is
// held.
func (st *store) Querier(_, _ int64) (storage.Querier, error) { return querier{st}, nil }

// querier finds series in a store for an evaluation.
type querier struct{ store *store }

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, ordered bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &seriesSet{hints: hints, at: -1}
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			found.addMatching(q.store.names[m.Value], matchers)
			found.sort(ordered)
			return found
		}
	}
	for _, list := range q.store.names {
		found.addMatching(list, matchers)
	}
	found.sort(true) // maps have no order, and sums of floats depend on the order
	return found
}

// errNoMetadata is the error for requests that PromQL never makes.
var errNoMetadata = errors.New("the rule engine's store has only series")

// LabelValues implements storage.LabelQuerier. PromQL does not use it.
func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errNoMetadata
}

// LabelNames implements storage.LabelQuerier. PromQL does not use it.
func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errNoMetadata
}

// Close implements storage.LabelQuerier.
func (querier) Close() error { return nil }

// seriesSet implements storage.SeriesSet.
type seriesSet struct {
	hints *storage.SelectHints
	list  []*series
	at    int
}

func (s *seriesSet) addMatching(list []*series, matchers []*labels.Matcher) {
	for _, one := range list {
		if matches(matchers, one.labels) {
			s.list = append(s.list, one)
		}
	}
}

func (s *seriesSet) sort(ordered bool) {
	if ordered {
		slices.SortFunc(s.list, func(a, b *series) int { return labels.Compare(a.labels, b.labels) })
	}
}

// Next implements storage.SeriesSet.
func (s *seriesSet) Next() bool {
	s.at++
	return s.at < len(s.list)
}

// At implements storage.SeriesSet. It returns the samples within the hints' bounds, which
// are inclusive.
func (s *seriesSet) At() storage.Series {
	one := s.list[s.at]
	samples := one.samples()
	if s.hints != nil {
		begin := sort.Search(len(samples), func(i int) bool { return samples[i].T >= s.hints.Start })
		end := sort.Search(len(samples), func(i int) bool { return samples[i].T > s.hints.End })
		samples = samples[begin:max(begin, end)]
	}
	return promql.NewStorageSeries(promql.Series{Metric: one.labels, Floats: samples})
}

// Err implements storage.SeriesSet.
func (s *seriesSet) Err() error { return nil }

// Warnings implements storage.SeriesSet.
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
