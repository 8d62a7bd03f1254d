package view

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// raster maps columns of a history to units of the screen: dots of lines, or cells. A column has
// several units if the finest columns would show much more than the window or the history.
type raster struct {
	units, perCell int           // in all, and per cell
	step           time.Duration // of a column
	wide           int           // units per column
}

// rasterOf returns the raster of cells × perCell units. It may omit a sixteenth of the window;
// otherwise it would often show twice the window.
func rasterOf(s *State, cells, perCell int) raster {
	step := func(n int) time.Duration { return columnStep(s, n+n/16) }
	r := raster{cells * perCell, perCell, step(cells * perCell), 1}
	if perCell > 1 && r.step == step(cells) {
		r.wide = perCell // finer dots would show more of the past, and no more of the window
	}
	read := s.Now.Sub(s.History.Begin)
	for _, wide := range [...]int{2, 4} {
		shown := r.step * time.Duration(r.units) / time.Duration(r.wide)
		next := r.step / time.Duration(wide)
		enough := next*time.Duration(r.units+r.units/16) >= s.window() && next%time.Millisecond == 0
		if wide > r.wide && 2*read < shown && enough && wide%perCell == 0 {
			r.wide = wide
		}
	}
	return r
}

// cell returns the time of a cell.
func (r raster) cell() time.Duration {
	return r.step / time.Duration(r.wide) * time.Duration(r.perCell)
}

// cells returns the raster with a unit for each cell, for strips below lines.
func (r raster) cells() raster {
	if r.wide == 1 {
		return raster{r.units / r.perCell, 1, r.cell(), 1}
	}
	return raster{r.units / r.perCell, 1, r.step, r.wide / r.perCell}
}

// columns returns the columns to read.
func (r raster) columns() history.Columns {
	if r.wide == 1 {
		return history.Columns{N: r.units, Step: r.step, PerCell: r.perCell}
	}
	return history.Columns{N: r.units/r.wide + 2, Step: r.step, PerCell: 1}
}

// spread returns the value of the column of each unit. With wide columns, a cell is not wider than
// a column, and the last cell is in the last column.
func spread[T any](r raster, columns []T, now time.Time) []T {
	if r.wide == 1 {
		return columns
	}
	units := make([]T, r.units)
	cell, step, ms := r.cell().Milliseconds(), r.step.Milliseconds(), now.UnixMilli()
	for i := range units {
		begin := (ms/cell - int64((r.units-1-i)/r.perCell)) * cell
		units[i] = columns[max(0, len(columns)-1-int(ms/step-begin/step))]
	}
	return units
}

// line returns the values of a metric, one for each unit.
func (s *State) line(g *client.GPU, m client.Metric, r raster) []float64 {
	return spread(r, means(s.points(g, m, r.columns())), s.Now)
}

// strip returns the classes of a device, one for each unit of a raster of cells.
func (s *State) strip(g *client.GPU, r raster) []canonical.Class {
	return spread(r, s.History.LastClasses(g.Key, s.Now, r.step, r.columns().N), s.Now)
}
