package fleet

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// store keeps series for the engine and for a block, as Prometheus' head does. Several
// goroutines may add series, and one goroutine at a time may append to a series.
type store struct {
	mu     sync.Mutex
	byName map[string][]*series
	byHash map[uint64]*series
}

func newStore() *store { return &store{byName: map[string][]*series{}, byHash: map[uint64]*series{}} }

// series is a series with its samples, in order.
type series struct {
	labels labels.Labels
	chunks []chunks.Meta
	tail   chunkenc.Appender // of the last chunk
}

// series returns the series with these labels, a new one if there is none.
func (s *store) series(l labels.Labels) *series {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.byHash[l.Hash()]
	if m == nil {
		m = &series{labels: l}
		s.byHash[l.Hash()] = m
		name := l.Get(model.MetricNameLabel)
		s.byName[name] = append(s.byName[name], m)
	}
	return m
}

// samplesOfChunk is the number of samples in a chunk of Prometheus.
const samplesOfChunk = 120

// append adds a sample at a time in milliseconds, later than all before.
func (m *series) append(at int64, v float64) {
	if n := len(m.chunks); n == 0 || m.chunks[n-1].Chunk.NumSamples() == samplesOfChunk {
		c := chunkenc.NewXORChunk()
		m.tail, _ = c.Appender() // no error for an empty chunk
		m.chunks = append(m.chunks, chunks.Meta{Chunk: c, MinTime: at})
	}
	m.chunks[len(m.chunks)-1].MaxTime = at
	m.tail.Append(0, at, v)
}

// end marks a series as stale.
func (m *series) end(at int64) { m.append(at, math.Float64frombits(value.StaleNaN)) }

// Querier implements storage.Queryable. Nothing asks for label names and values.
func (s *store) Querier(mint, maxt int64) (storage.Querier, error) {
	return querier{storage.NoopQuerier(), s, mint, maxt}, nil
}

type querier struct {
	storage.Querier
	store      *store
	mint, maxt int64
}

func (q querier) Select(_ context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	if hints != nil {
		q.mint, q.maxt = max(q.mint, hints.Start), min(q.maxt, hints.End)
	}
	lists := maps.Values(q.store.byName)
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			lists = slices.Values([][]*series{q.store.byName[m.Value]})
		}
	}
	set := &seriesSet{SeriesSet: storage.EmptySeriesSet()}
	for list := range lists {
		for _, m := range list {
			if slices.ContainsFunc(matchers, func(w *labels.Matcher) bool { return !w.Matches(m.labels.Get(w.Name)) }) {
				continue
			}
			if part := m.in(q.mint, q.maxt); part != nil {
				set.list = append(set.list, part)
			}
		}
	}
	return set
}

// seriesSet is the result of Select, without errors.
type seriesSet struct {
	storage.SeriesSet
	list []storage.Series
	next int
}

func (s *seriesSet) Next() bool         { s.next++; return s.next <= len(s.list) }
func (s *seriesSet) At() storage.Series { return s.list[s.next-1] }

// in returns the chunks of a series that overlap start to end, in milliseconds; nil if there are none.
func (m *series) in(start, end int64) storage.Series {
	var parts []chunkenc.Iterable
	for _, c := range m.chunks {
		if c.MaxTime >= start && c.MinTime <= end {
			parts = append(parts, c.Chunk)
		}
	}
	if parts == nil {
		return nil
	}
	return &storage.SeriesEntry{Lset: m.labels, SampleIteratorFn: func(it chunkenc.Iterator) chunkenc.Iterator {
		if len(parts) == 1 {
			return parts[0].Iterator(it)
		}
		return storage.ChainSampleIteratorFromIterables(it, parts)
	}}
}
