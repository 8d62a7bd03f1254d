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
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
)

// blockName is the name of the block's folder, which must be a ULID.
const blockName = "01BACKF0000000000000000000"

// writeBlock writes the series of a store as a block of Prometheus' database. It
// writes a single block of any length, so that Prometheus has nothing to compact.
func writeBlock(ctx context.Context, dir string, s *store) (written, samples int, err error) {
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
		for _, c := range m.chunks {
			samples += c.Chunk.NumSamples()
			from, to, pieces = min(from, c.MinTime), max(to, c.MaxTime), pieces+1
		}
		if err := errors.Join(data.WriteChunks(m.chunks...), table.AddSeries(storage.SeriesRef(i+1), m.labels, m.chunks...)); err != nil {
			return 0, 0, err
		}
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
