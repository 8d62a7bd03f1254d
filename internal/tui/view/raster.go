package view

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// raster maps columns of a history to units of the screen: dots of lines, or cells. Usually a
// column has one unit. It has several if the finest columns would show much more than the window
// and the history is short.
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
		if wide > r.wide && 2*read < shown && next*time.Duration(r.units+r.units/16) >= s.window() && next%time.Millisecond == 0 && wide%perCell == 0 {
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

// of returns the column that a unit shows, counted backwards from the last one, if columns are
// wide. Then a cell is not wider than a column, and the last cell is in the last column.
func (r raster) of(unit int, now time.Time) int {
	cell, step := r.cell().Milliseconds(), r.step.Milliseconds()
	last := now.UnixMilli() / cell
	begin := (last - int64((r.units-1-unit)/r.perCell)) * cell
	return int(now.UnixMilli()/step - begin/step)
}

// line appends the values of a metric to dst, one for each unit.
func (t *sparkline) line(dst []float64, s *State, g *client.GPU, m client.Metric, r raster) []float64 {
	c := r.columns()
	t.read(s, g, m, c)
	if r.wide == 1 {
		return append(dst, t.Values...)
	}
	for i := range r.units {
		dst = append(dst, t.Values[max(0, c.N-1-r.of(i, s.Now))])
	}
	return dst
}

// classesOf appends the classes of a device to dst, one for each unit of a raster of cells.
func (t *sparkline) classesOf(dst []canonical.Class, s *State, g *client.GPU, r raster) []canonical.Class {
	n := r.columns().N
	classes := t.Classes(s.History, g.Key, s.Now, r.step, n)
	if r.wide == 1 {
		return append(dst, classes...)
	}
	for i := range r.units {
		dst = append(dst, classes[max(0, n-1-r.of(i, s.Now))])
	}
	return dst
}
