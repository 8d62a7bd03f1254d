package view

import (
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// minTable is the width of the narrowest table: index and real utilization. tableGap separates
// tables side by side.
const minTable, tableGap = 4 + columnGap + widthPercent, 2

// slot is a line in tables side by side: a device, or with gpu -1 the heading of a machine.
type slot struct{ part, y, gpu, machine int }

// placeTable places a line for each device in as few tables side by side as possible, with a
// heading for each machine if that takes no more tables, or if there are several anyway. It
// returns the number of tables, or 0 if the devices do not fit.
func (f *fleet) placeTable(r screen.Rect) (slots []slot, parts int) {
	if r.H < 2 {
		return nil, 0
	}
	most := (r.W + tableGap) / (minTable + tableGap)
	slots, parts = f.placeLines(r.H-1, false)
	if len(f.machines) > 0 {
		if headed, n := f.placeLines(r.H-1, true); n <= most && (n == parts || parts > 1) {
			return headed, n
		}
	}
	if parts > most {
		return nil, 0
	}
	return slots, parts
}

// placeLines places a line for each device in tables of at most rows rows, all about equally high.
func (f *fleet) placeLines(rows int, headings bool) (slots []slot, parts int) {
	n := len(f.GPUs)
	if headings {
		n += len(f.machines)
	}
	slots, parts = f.fillTables(rows, headings)
	for high := (n + parts - 1) / parts; high < rows; high++ {
		if lower, n := f.fillTables(high, headings); n <= parts {
			return lower, n
		}
	}
	return slots, parts
}

// fillTables fills one table after the other. A board stays with its instances. A machine that
// continues in the next table has its heading there too.
func (f *fleet) fillTables(rows int, headings bool) (slots []slot, parts int) {
	part, y, gpu, in, headed := 0, 0, 0, -1, false
	for i := range f.units {
		size := unitSize(&f.units[i])
		if headings && in+1 < len(f.machines) && gpu == f.machines[in+1].first {
			in, headed = in+1, false
		}
		need := size
		if headings && !headed {
			need++
		}
		if y > 0 && y+min(need, rows) > rows {
			part, y, headed = part+1, 0, false
		}
		for end := gpu + size; gpu < end; gpu++ {
			if y == rows { // of a unit that is higher than a table
				part, y, headed = part+1, 0, false
			}
			if headings && !headed && rows > 1 {
				slots = append(slots, slot{part, y, -1, in})
				y, headed = y+1, true
			}
			slots = append(slots, slot{part, y, gpu, in})
			y++
		}
	}
	return slots, part + 1
}

// table draws a line for each device, and the selected one below if there is room. If not even the
// lines fit, it draws those around the selected device.
func (f *fleet) table(r screen.Rect) {
	if slots, parts := f.placeTable(r); parts > 0 {
		used := f.drawTables(r, slots, parts)
		f.detail(r.Sub(0, used, r.W, r.H), false)
		return
	}
	n, rows := len(f.GPUs), max(1, r.H-2) // the last line is for drawScroll
	first := scrollToSelected(f.State, f.SelectedIndex(), n, rows)
	drawRows(r, f.State, placeColumns(r.W, nodeWidth(f.State)), f.GPUs[first:min(n, first+rows)])
	drawScroll(r, first+1, min(n, first+rows), n)
}

// drawTables draws the tables that placeTable placed, and returns the rows that they take. Under
// headings there is no column of nodes.
func (f *fleet) drawTables(r screen.Rect, slots []slot, parts int) (used int) {
	w := (r.W - (parts-1)*tableGap) / parts
	node := nodeWidth(f.State)
	if slots[0].gpu < 0 {
		node = 0
	}
	columns := placeColumns(w, node)
	for part := range parts {
		drawRows(r.Sub(part*(w+tableGap), 0, w, 1), f.State, columns, nil)
	}
	for _, at := range slots {
		line := r.Sub(at.part*(w+tableGap), 1+at.y, w, 1)
		if used = max(used, at.y+2); at.gpu < 0 {
			drawHeading(line, f.State, f.gpus(at.machine))
		} else {
			drawRow(line, f.State, columns, f.GPUs[at.gpu])
		}
	}
	return used
}

// drawRows draws the titles of columns and a line for each of gpus.
func drawRows(r screen.Rect, s *State, columns []placedColumn, gpus []*client.GPU) {
	for i := range columns {
		drawTitle(r, s, &columns[i])
	}
	for i, g := range gpus {
		drawRow(r.Row(1+i), s, columns, g)
	}
}

// drawRow draws the line of a device.
func drawRow(r screen.Rect, s *State, columns []placedColumn, g *client.GPU) {
	freshness, _ := s.Freshness(g)
	shown := s.current(g)
	for k := range columns {
		c := &columns[k]
		cell := r.Sub(c.x, 0, c.w, 1)
		c.draw(cell, s, shown)
		if freshness == client.Stale && c.title != healthTitle {
			cell.Dim(styleFaint)
		}
	}
	hitLine(r, s, g)
}
