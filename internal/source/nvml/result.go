//go:build cgo && linux

package nvml

import (
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// result is the outcome of one round over a board. The board's worker writes it; then the
// goroutine that reads the source owns it until it asks for the result after the next.
type result struct {
	begun time.Time // when the round was requested
	lost  bool      // the board is lost, and has no values
	// counting is whether GPM works for the board or an instance.
	counting bool
	cuts     []cut // the instances, nil for none
	// cluster names the board's NVLink fabric, "" for none.
	cluster string
	// topology changes when cuts change.
	topology uint64
	// cells are (1 + len(cuts)) × fields: the board, then its instances; NaN if
	// there is no value.
	cells []float64
}

// reset empties s for a round over a board with these instances.
func (s *result) reset(cuts []cut) {
	s.lost, s.cuts, s.cluster = false, cuts, ""
	n := (1 + len(cuts)) * len(dcgm.Fields)
	s.cells = slices.Grow(s.cells[:0], n)[:n]
	for i := range s.cells {
		s.cells[i] = math.NaN()
	}
}

// row returns the cells of the board (0) or of an instance (from 1).
func (s *result) row(entity int) []float64 {
	return s.cells[entity*len(dcgm.Fields):][:len(dcgm.Fields)]
}

// set sets a cell to a value as the exporter would write it: DCGM's doubles with
// six decimals, its integers truncated. Values that are not finite are absent.
func set(row []float64, column int, v float64) {
	const decimals = 1e6
	switch {
	case v-v != 0:
	case dcgm.Fields[column].Float:
		row[column] = math.Round(v*decimals) / decimals
	default:
		row[column] = math.Trunc(v)
	}
}

// longestWindow returns the time over which an average is too old: a board that
// hung or was lost restarts its rates.
func longestWindow(period time.Duration) time.Duration { return max(5*period, time.Second) }

// columns returns the indices in dcgm.Fields of dmon's columns. All must exist.
func columns(names ...string) []int {
	at := make([]int, len(names))
	for i, name := range names {
		at[i] = slices.IndexFunc(dcgm.Fields[:], func(f dcgm.Field) bool { return f.Column == name })
	}
	return at
}
