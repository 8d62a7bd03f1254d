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

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
)

// blockName is the name of the block's folder, which must be a ULID.
const blockName = "01BACKF0000000000000000000"

// writeBlock writes the series of a store as a block of Prometheus' database. It
// writes a single block of any length, so that Prometheus has nothing to compact. The quiet hour that
// begins at a time in milliseconds precedes it a number of times.
func writeBlock(ctx context.Context, dir string, s *store, began int64, times int) (written, samples int, err error) {
	dir = filepath.Join(dir, blockName)
	if err := os.MkdirAll(filepath.Join(dir, "chunks"), 0o700); err != nil {
		return 0, 0, err
	}
	members := make([]*series, 0, len(s.byHash))
	symbols := map[string]bool{}
	for _, m := range s.byHash {
		if len(m.chunks) > 0 {
			members = append(members, m)
		}
		m.labels.Range(func(l labels.Label) { symbols[l.Name], symbols[l.Value] = true, true })
	}
	slices.SortFunc(members, func(a, b *series) int { return labels.Compare(a.labels, b.labels) })
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
	for i, m := range members {
		all := append(m.earlier(began, times), m.chunks...)
		for _, c := range all {
			samples += c.Chunk.NumSamples()
			from, to, pieces = min(from, c.MinTime), max(to, c.MaxTime), pieces+1
		}
		if err := errors.Join(data.WriteChunks(all...), table.AddSeries(storage.SeriesRef(i+1), m.labels, all...)); err != nil {
			return 0, 0, err
		}
	}
	about, err := json.Marshal(map[string]any{
		"version": 1, "ulid": blockName, "minTime": from, "maxTime": to + 1,
		"stats":      map[string]int{"numSamples": samples, "numSeries": len(members), "numChunks": pieces},
		"compaction": map[string]any{"level": 1, "sources": []string{blockName}},
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "meta.json"), about, 0o600)
	}
	return len(members), samples, err
}

// earlier returns the samples of the quiet hour that begins at a time in milliseconds, once for each of a number of
// hours before.
func (m *series) earlier(began int64, times int) []chunks.Meta {
	hour, past := quiet.Milliseconds(), &series{}
	for k := int64(times); k > 0; k-- {
		for _, c := range m.chunks {
			for it := c.Chunk.Iterator(nil); it.Next() != chunkenc.ValNone; {
				if at, v := it.At(); at < began+hour {
					past.append(at-k*hour, v)
				}
			}
		}
	}
	return past.chunks
}
