package engine

import (
	"context"
	"math"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
)

// lookback is how long an instant selector sees a sample without a successor: Prometheus'
// default.
const lookback = 5 * time.Minute

// sweepEvery is the interval at which to drop series that no rule can see any more, in
// milliseconds.
const sweepEvery = int64(30_000)

// Limits bound the memory of a store and of results.
type Limits struct {
	// Series is the most series to keep; others are refused. It is also the most results
	// that all rules together may have.
	Series int
	// Samples is the most samples to keep, of 16 bytes each and as much again for growth;
	// beyond it a series loses its oldest for each new one. It is also the most that
	// one evaluation may load.
	Samples int
}

// series holds the samples of one label set that rules may still see.
type series struct {
	labels  labels.Labels
	keep    int64 // the longest keep of its selectors, in milliseconds
	samples []promql.FPoint
	dropped bool // the store has forgotten it
	// owner is the page whose samples these are, nil for a rule's or a series on no page.
	owner *page
	// scan is the number of the owner's last exposition that had it.
	scan uint64
}

// last returns the newest sample, false if there is none.
func (s *series) last() (promql.FPoint, bool) {
	if len(s.samples) == 0 {
		return promql.FPoint{}, false
	}
	return s.samples[len(s.samples)-1], true
}

// store holds the series that rules select. The engine's lock guards it, except for
// its totals.
type store struct {
	limits Limits
	names  map[string]map[uint64][]*series // by name, and by the hash of the labels
	swept  int64                           // time of the last sweep

	series, samples atomic.Int64
	// refusedSeries and refusedSamples count excess over the limits, and duplicates the
	// samples of a series that already had another at that time, or a newer one.
	refusedSeries, refusedSamples, duplicates atomic.Uint64
}

func newStore(limits Limits) *store {
	return &store{limits: limits, names: map[string]map[uint64][]*series{}}
}

// each calls do for every series that has not been dropped, and then drops those for which it
// returns false.
func (st *store) each(do func(*series) bool) {
	for name, hashes := range st.names {
		for hash, list := range hashes {
			hashes[hash] = slices.DeleteFunc(list, func(s *series) bool {
				if do(s) {
					return false
				}
				st.series.Add(-1)
				st.samples.Add(-int64(len(s.samples)))
				s.dropped, s.samples = true, nil
				return true
			})
			if len(hashes[hash]) == 0 {
				delete(hashes, hash)
			}
		}
		if len(hashes) == 0 {
			delete(st.names, name)
		}
	}
}

// get returns the series with these labels, after adding it if it is new, nil if the store
// is full. The series keeps samples for at least keep milliseconds.
func (st *store) get(l labels.Labels, keep int64) *series {
	name, hash := l.Get(model.MetricNameLabel), l.Hash()
	for _, s := range st.names[name][hash] {
		if labels.Equal(s.labels, l) {
			s.keep = max(s.keep, keep)
			return s
		}
	}
	if st.series.Load() >= int64(st.limits.Series) {
		st.refusedSeries.Add(1)
		return nil
	}
	s := &series{labels: l, keep: keep}
	if st.names[name] == nil {
		st.names[name] = map[uint64][]*series{}
	}
	st.names[name][hash] = append(st.names[name][hash], s)
	st.series.Add(1)
	return s
}

// add adds a sample to s. As in Prometheus, the first of two at the same time is kept.
func (st *store) add(s *series, t int64, v float64) {
	if last, ok := s.last(); ok && t <= last.T {
		if t < last.T || math.Float64bits(v) != math.Float64bits(last.F) {
			st.duplicates.Add(1)
		}
		return
	}
	s.samples = append(s.samples, promql.FPoint{T: t, F: v})
	st.samples.Add(1)
	st.trim(s, t)
	for st.samples.Load() > int64(st.limits.Samples) && len(s.samples) > 0 {
		st.refusedSamples.Add(1)
		st.cut(s, 1)
	}
}

// trim drops the samples that no rule can see from t on.
func (st *store) trim(s *series, t int64) {
	n := 0
	for n+1 < len(s.samples) && s.samples[n+1].T <= t-s.keep {
		n++
	}
	st.cut(s, n)
}

// cut drops the oldest n samples.
func (st *store) cut(s *series, n int) {
	if n > 0 {
		s.samples = slices.Delete(s.samples, 0, n)
		st.samples.Add(-int64(n))
	}
}

// end marks s as stale from t on, unless it already is.
func (st *store) end(s *series, t int64) {
	if last, ok := s.last(); ok && last.T < t && !value.IsStaleNaN(last.F) {
		st.add(s, t, math.Float64frombits(value.StaleNaN))
	}
}

// sweep drops the series that no rule can see any more at t, at most once in sweepEvery.
func (st *store) sweep(t int64) {
	if t-st.swept < sweepEvery {
		return
	}
	st.swept = t
	st.each(func(s *series) bool {
		last, ok := s.last()
		if !ok || t-last.T > s.keep+lookback.Milliseconds() {
			return false
		}
		st.trim(s, t)
		if cap(s.samples) > 4*len(s.samples)+64 {
			s.samples = slices.Clone(s.samples)
		}
		return true
	})
}

// Querier implements storage.Queryable. Its results are valid while the engine's lock is
// held.
func (st *store) Querier(_, _ int64) (storage.Querier, error) {
	return querier{storage.NoopQuerier(), st}, nil
}

// querier finds series in a store for an evaluation, which asks for nothing else.
type querier struct {
	storage.Querier
	store *store
}

// Select implements storage.Querier. It sorts the series, as maps have no order, and sums of floats
// depend on the order.
func (q querier) Select(_ context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &seriesSet{SeriesSet: storage.EmptySeriesSet(), hints: hints, at: -1}
	names := q.store.names
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			names = map[string]map[uint64][]*series{m.Value: names[m.Value]}
		}
	}
	for _, hashes := range names {
		for _, list := range hashes {
			for _, s := range list {
				if matches(matchers, s.labels) {
					found.list = append(found.list, s)
				}
			}
		}
	}
	slices.SortFunc(found.list, func(a, b *series) int { return labels.Compare(a.labels, b.labels) })
	return found
}

// matches reports whether series satisfies all of matchers.
func matches(matchers []*labels.Matcher, series labels.Labels) bool {
	for _, m := range matchers {
		if !m.Matches(series.Get(m.Name)) {
			return false
		}
	}
	return true
}

// seriesSet implements storage.SeriesSet.
type seriesSet struct {
	storage.SeriesSet
	hints *storage.SelectHints
	list  []*series
	at    int
}

// Next implements storage.SeriesSet.
func (s *seriesSet) Next() bool {
	s.at++
	return s.at < len(s.list)
}

// At implements storage.SeriesSet. It returns the samples within the hints' bounds, which
// are inclusive.
func (s *seriesSet) At() storage.Series {
	samples := s.list[s.at].samples
	if s.hints != nil {
		begin := sort.Search(len(samples), func(i int) bool { return samples[i].T >= s.hints.Start })
		end := sort.Search(len(samples), func(i int) bool { return samples[i].T > s.hints.End })
		samples = samples[begin:max(begin, end)]
	}
	return promql.NewStorageSeries(promql.Series{Metric: s.list[s.at].labels, Floats: samples})
}
