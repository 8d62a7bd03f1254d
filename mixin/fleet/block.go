package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
)

// blockName is the name of the block's folder, which must be a ULID.
const blockName = "01BACKF0000000000000000000"

// writeBlock writes the series of a store, and their history, as a block of Prometheus' database. It
// writes a single block of any length, so that Prometheus has nothing to compact.
func writeBlock(ctx context.Context, dir string, s *store, h history) (written, samples int, err error) {
	dir = filepath.Join(dir, blockName)
	if err := os.MkdirAll(filepath.Join(dir, "chunks"), 0o700); err != nil {
		return 0, 0, err
	}
	all := make([]*series, 0, len(s.byHash))
	symbols := map[string]bool{}
	for _, m := range s.byHash {
		if len(m.chunks) > 0 {
			all = append(all, m)
		}
		m.labels.Range(func(l labels.Label) { symbols[l.Name], symbols[l.Value] = true, true })
	}
	slices.SortFunc(all, func(a, b *series) int { return labels.Compare(a.labels, b.labels) })
	data, err := chunks.NewWriter(filepath.Join(dir, "chunks"))
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	table, err := index.NewWriter(ctx, filepath.Join(dir, "index"))
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	for _, symbol := range slices.Sorted(maps.Keys(symbols)) {
		if err := table.AddSymbol(symbol); err != nil {
			return 0, 0, err
		}
	}
	from, to, pieces := int64(math.MaxInt64), int64(math.MinInt64), 0
	for i, m := range all {
		list := append(h.before(m), m.chunks...)
		for _, c := range list {
			samples += c.Chunk.NumSamples()
		}
		if err := data.WriteChunks(list...); err != nil {
			return 0, 0, err
		}
		if err := table.AddSeries(storage.SeriesRef(i+1), m.labels, list...); err != nil {
			return 0, 0, err
		}
		from, to, pieces = min(from, list[0].MinTime), max(to, list[len(list)-1].MaxTime), pieces+len(list)
	}
	about, err := json.Marshal(map[string]any{
		"version": 1, "ulid": blockName, "minTime": from, "maxTime": to + 1,
		"stats":      map[string]int{"numSamples": samples, "numSeries": len(all), "numChunks": pieces},
		"compaction": map[string]any{"level": 1, "sources": []string{blockName}},
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "meta.json"), about, 0o600)
	}
	return len(all), samples, err
}

// history is made-up data from before a fleet is played, derived from its series between two
// instants (like): gauges repeat their samples, each for heldFor, and counters rise with
// their mean slope.
type history struct {
	from, to time.Time
	like     [2]time.Time
}

// The steps of a history, on the last day and before. Rules are evaluated every minute and
// targets scraped every 15 s, so the last day has all samples of rules and a quarter of those
// of scrapes, and earlier days a fifth and a twentieth.
const (
	recent    = 24 * time.Hour
	newStep   = time.Minute
	oldStep   = 5 * time.Minute
	heldFor   = 15 * time.Minute
	leastLike = 10 // least samples of a series with a history
)

// before returns the history of a series, none for a series that was not present for all of
// like.
func (h history) before(m *series) []chunks.Meta {
	if strings.HasPrefix(m.labels.Get(model.MetricNameLabel), "ALERTS") {
		return nil
	}
	var times []int64
	var values []float64
	part := m.in(h.like[0].UnixMilli(), h.like[1].UnixMilli())
	if len(part.iterables) == 0 {
		return nil
	}
	it := part.Iterator(nil)
	for it.Next() != 0 {
		if at, v := it.At(); at >= h.like[0].UnixMilli() && at <= h.like[1].UnixMilli() && !value.IsStaleNaN(v) {
			times, values = append(times, at), append(values, v)
		}
	}
	n := len(times)
	if n < leastLike || times[0] > h.like[0].Add(interval).UnixMilli() || times[n-1] < h.like[1].Add(-interval).UnixMilli() {
		return nil
	}
	slope := 0.0 // per millisecond
	if counts(m.labels.Get(model.MetricNameLabel)) {
		slope = (values[n-1] - values[0]) / float64(times[n-1]-times[0])
	}
	past := series{}
	for at, i := h.from, 0; at.Before(h.to); i++ {
		v := values[int(at.Sub(h.from)/heldFor)%n]
		if counts(m.labels.Get(model.MetricNameLabel)) {
			v = slope * float64(at.Sub(h.from).Milliseconds())
		}
		past.append(at.UnixMilli(), v)
		if h.to.Sub(at) > recent {
			at = at.Add(oldStep)
		} else {
			at = at.Add(newStep)
		}
	}
	return past.chunks
}

// counts reports whether a series is a counter.
func counts(name string) bool {
	return strings.HasSuffix(name, "_total") || strings.HasSuffix(name, "_bucket") || strings.HasSuffix(name, "_count") || strings.HasSuffix(name, "_sum")
}
