package fleet

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
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

// Querier implements storage.Queryable.
func (s *store) Querier(mint, maxt int64) (storage.Querier, error) {
	return querier{s, mint, maxt}, nil
}

type querier struct {
	*store
	mint, maxt int64
}

func (q querier) Select(_ context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	if hints != nil {
		q.mint, q.maxt = max(q.mint, hints.Start), min(q.maxt, hints.End)
	}
	set := &seriesSet{}
	name := slices.IndexFunc(matchers, func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual })
	if name < 0 {
		for _, list := range q.byName {
			set.add(list, q.mint, q.maxt, matchers)
		}
		return set
	}
	set.add(q.byName[matchers[name].Value], q.mint, q.maxt, slices.Delete(slices.Clone(matchers), name, name+1))
	return set
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) Close() error { return nil }

// seriesSet is the result of Select.
type seriesSet struct {
	list []between
	next int
}

// add adds the series of a list that match and have samples from mint to maxt.
func (s *seriesSet) add(list []*series, mint, maxt int64, matchers []*labels.Matcher) {
	for _, m := range list {
		if slices.ContainsFunc(matchers, func(w *labels.Matcher) bool { return !w.Matches(m.labels.Get(w.Name)) }) {
			continue
		}
		if b := m.in(mint, maxt); len(b.iterables) > 0 {
			s.list = append(s.list, b)
		}
	}
}

func (s *seriesSet) Next() bool                        { s.next++; return s.next <= len(s.list) }
func (s *seriesSet) At() storage.Series                { return s.list[s.next-1] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// between is a series limited to the chunks that overlap a time range.
type between struct {
	*series
	iterables []chunkenc.Iterable
}

// Labels implements storage.Series.
func (b between) Labels() labels.Labels { return b.labels }

// Iterator implements storage.Series.
func (b between) Iterator(it chunkenc.Iterator) chunkenc.Iterator {
	if len(b.iterables) == 1 {
		return b.iterables[0].Iterator(it)
	}
	return storage.ChainSampleIteratorFromIterables(it, b.iterables)
}

// in returns the chunks of a series that overlap start to end, in milliseconds.
func (m *series) in(start, end int64) between {
	b := between{series: m}
	for _, c := range m.chunks {
		if c.MaxTime >= start && c.MinTime <= end {
			b.iterables = append(b.iterables, c.Chunk)
		}
	}
	return b
}
