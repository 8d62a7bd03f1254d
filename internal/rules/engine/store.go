package engine

import (
	"iter"
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
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

// store holds the series that rules select. The engine's lock guards it, except for
// its totals.
type store struct {
	limits Limits
	names  map[string][]*series
	hashes map[uint64][]*series
	swept  int64 // time of the last sweep

	series, samples atomic.Int64
	// refusedSeries and refusedSamples count excess over the limits, and duplicates the
	// samples of a series that already had another at that time, or a newer one.
	refusedSeries, refusedSamples, duplicates atomic.Uint64
}

func newStore(limits Limits) *store {
	return &store{limits: limits, names: map[string][]*series{}, hashes: map[uint64][]*series{}}
}

// limit changes how many samples are kept. If there are more, each series loses the same
// share of its oldest, and keeps its newest, so that rules still see every series.
func (st *store) limit(samples int) {
	st.limits.Samples = samples
	over, older := st.samples.Load()-int64(samples), int64(0)
	for s := range st.all() {
		older += int64(max(0, len(s.samples())-1))
	}
	if over <= 0 || older == 0 {
		return
	}
	share := min(1, float64(over)/float64(older))
	for s := range st.all() {
		lost := int(math.Ceil(share * float64(max(0, len(s.samples())-1))))
		s.head += lost
		st.samples.Add(-int64(lost))
		s.shrink()
	}
}

// all yields every series. The loop must not add or remove any.
func (st *store) all() iter.Seq[*series] {
	return func(yield func(*series) bool) {
		for _, list := range st.names {
			for _, s := range list {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// get returns the series with these labels, after adding it if it is new, nil if the store
// is full. The series keeps samples for at least keep milliseconds.
func (st *store) get(l labels.Labels, keep int64) *series {
	for _, s := range st.hashes[l.Hash()] {
		if labels.Equal(s.labels, l) {
			s.keep = max(s.keep, keep)
			return s
		}
	}
	s := &series{labels: l, keep: keep}
	if !st.insert(s) {
		return nil
	}
	return s
}

// insert adds a missing series, unless the store is full.
func (st *store) insert(s *series) bool {
	if st.series.Load() >= int64(st.limits.Series) {
		st.refusedSeries.Add(1)
		return false
	}
	name, hash := s.labels.Get(model.MetricNameLabel), s.labels.Hash()
	s.dropped, s.index = false, len(st.names[name])
	st.names[name] = append(st.names[name], s)
	st.hashes[hash] = append(st.hashes[hash], s)
	st.series.Add(1)
	return true
}

// remove forgets s with its samples.
func (st *store) remove(s *series) {
	name, hash := s.labels.Get(model.MetricNameLabel), s.labels.Hash()
	list := st.names[name]
	end := len(list) - 1
	list[s.index] = list[end]
	list[s.index].index = s.index
	list[end] = nil
	if st.names[name] = list[:end]; end == 0 {
		delete(st.names, name)
	}
	same := st.hashes[hash]
	for i := range same {
		if same[i] == s {
			same[i] = same[len(same)-1]
			st.hashes[hash] = same[:len(same)-1]
			break
		}
	}
	if len(st.hashes[hash]) == 0 {
		delete(st.hashes, hash)
	}
	st.series.Add(-1)
	st.samples.Add(-int64(len(s.samples())))
	s.dropped, s.buf, s.head = true, nil, 0
}

// add adds a sample to s. As in Prometheus, the first of two at the same time is kept.
func (st *store) add(s *series, t int64, v float64) {
	if s.dropped && !st.insert(s) {
		return
	}
	if last, ok := s.last(); ok && t <= last.T {
		if t < last.T || math.Float64bits(v) != math.Float64bits(last.F) {
			st.duplicates.Add(1)
		}
		return
	}
	st.samples.Add(-int64(s.trim(t)))
	if st.samples.Load() >= int64(st.limits.Samples) {
		st.refusedSamples.Add(1)
		if s.head == len(s.buf) {
			return
		}
		s.head++
		st.samples.Add(-1)
	}
	s.push(promql.FPoint{T: t, F: v})
	st.samples.Add(int64(1 - s.trim(t)))
}

// end marks s as stale from t on, unless it already is.
func (st *store) end(s *series, t int64) {
	if last, ok := s.last(); ok && last.T < t && !s.isStale() {
		st.add(s, t, staleMarker())
	}
}

// sweep drops the series that no rule can see any more at t, at most once in sweepEvery.
func (st *store) sweep(t int64) {
	if t-st.swept < sweepEvery && t >= st.swept {
		return
	}
	st.swept = t
	for _, list := range st.names {
		for i := len(list) - 1; i >= 0; i-- { // remove moves the last to i
			s := list[i]
			if last, ok := s.last(); !ok || t-last.T > s.keep+lookback.Milliseconds() {
				st.remove(s)
				continue
			}
			st.samples.Add(-int64(s.trim(t)))
			s.shrink()
		}
	}
}

// retain keeps the series that in selects, for as long as in needs, and drops the others.
func (st *store) retain(in *interest) {
	for name, list := range st.names {
		selectors := in.family(name)
		for i := len(list) - 1; i >= 0; i-- {
			s := list[i]
			var selected bool
			if s.keep, selected = keep(selectors, s.labels); !selected {
				st.remove(s)
			}
		}
	}
}
