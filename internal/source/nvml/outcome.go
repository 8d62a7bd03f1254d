//go:build cgo && linux

package nvml

import (
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// outcome is the outcome of one round over a board. The board's worker writes it; then the
// goroutine that reads the source owns it until it asks for the result after the next.
type outcome struct {
	begun     time.Time // when the round was requested
	lost      bool      // the board is lost, and has no values
	gpm       support   // of the board or an instance
	instances []migInstance
	// cluster names the board's NVLink fabric, "" for none.
	cluster string
	// cells are (1 + len(instances)) × fields: the board, then its instances; NaN if
	// there is no value.
	cells []float64
}

// reset empties r for a round over a board with these instances.
func (r *outcome) reset(instances []migInstance) {
	r.lost, r.instances, r.cluster = false, instances, ""
	n := (1 + len(instances)) * len(dcgm.Fields)
	r.cells = slices.Grow(r.cells[:0], n)[:n]
	blank(r.cells)
}

// row returns the cells of the board (0) or of an instance (from 1).
func (r *outcome) row(entity int) []float64 {
	return r.cells[entity*len(dcgm.Fields):][:len(dcgm.Fields)]
}

// blank removes all values from cells.
func blank(cells []float64) {
	for i := range cells {
		cells[i] = math.NaN()
	}
}

// newRow returns the cells of a board without values.
func newRow() []float64 {
	row := make([]float64, len(dcgm.Fields))
	blank(row)
	return row
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

// columns returns the indices in dcgm.Fields of dmon's columns, -1 for an unknown one.
func columns(names ...string) []int {
	at := make([]int, len(names))
	for i, name := range names {
		at[i] = slices.IndexFunc(dcgm.Fields[:], func(f dcgm.Field) bool { return f.Column == name })
	}
	return at
}
