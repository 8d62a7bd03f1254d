package view

import (
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// leastTable is the width of the narrowest table: the index of a device and its
// real utilization. tableGap parts tables that stand side by side.
const leastTable, tableGap = 4 + columnGap + widthPercent, 2

// leastDetail is how many rows the card below a table needs.
const leastDetail = 5

// tableParts returns into how many tables side by side n devices have to be
// parted to fit r, 0 if they do not.
func tableParts(r screen.Rect, n int) int {
	if r.H < 2 {
		return 0
	}
	parts := (n + r.H - 2) / (r.H - 1)
	if (r.W+tableGap)/parts < leastTable+tableGap {
		return 0
	}
	return parts
}

// table draws a line for each device, with the selected one at length below where
// there is room.
func (f *fleetView) table(r screen.Rect, s *State) {
	n, rows := len(s.GPUs), r.H-1
	parts := tableParts(r, n)
	first := 0
	if parts == 0 {
		parts, rows = 1, max(1, rows-1) // the last line says which are shown
		s.Scroll = scrolled(s.Scroll, s.SelectedIndex(), n, rows)
		first = s.Scroll
	}
	w := (r.W - (parts-1)*tableGap) / parts
	f.places = placeColumns(f.places[:0], w, nodeWidth(s))
	if parts > 1 {
		rows = (n + parts - 1) / parts
	}
	for part := range parts {
		gpus := s.GPUs[min(first+part*rows, n):min(first+(part+1)*rows, n)]
		f.lines(r.Sub(part*(w+tableGap), 0, w, r.H), s, gpus)
	}
	if first > 0 || first+rows < n && parts == 1 {
		drawScroll(r, first+1, min(n, first+rows), n)
	}
	if below := r.Sub(0, 1+n, r.W, r.H-1-n); parts == 1 && below.H >= leastDetail {
		f.card(below, s, &client.Unit{Board: s.SelectedGPU()})
	}
}

// longestNodeColumn bounds the column of the names of nodes.
const longestNodeColumn = 24

// nodeWidth returns how wide the names of nodes are; 0 where there is only one.
func nodeWidth(s *State) int {
	if !s.Nodes.Several() {
		return 0
	}
	w := 0
	for _, n := range s.Nodes {
		if n.Machines < 2 {
			w = max(w, screen.Width(n.Name))
			continue
		}
		for _, g := range n.GPUs {
			w = max(w, screen.Width(g.Hostname))
		}
	}
	return min(w, longestNodeColumn)
}

// lines draws the titles of the columns and a line for each of gpus.
func (f *fleetView) lines(r screen.Rect, s *State, gpus []*client.GPU) {
	for i := range f.places {
		f.title(r, s, &f.places[i])
	}
	for i, g := range gpus {
		line := r.Row(1 + i)
		how, _ := s.Freshness(g)
		shown := g
		if how == client.Expired {
			shown = g.Blank()
		}
		for k := range f.places {
			p := &f.places[k]
			p.draw(&f.painter, line.Sub(p.x, 0, p.w, 1), s, shown)
			if how == client.Stale && p.title != "HEALTH" {
				line.Sub(p.x, 0, p.w, 1).Dim(styleFaint)
			}
		}
		if g.Key == s.Selected {
			line.Pick()
		}
		hit(line, s, g.Key)
	}
}

// title draws the title of a column, with a mark if it is what devices are ordered
// by.
func (f *fleetView) title(r screen.Rect, s *State, p *place) {
	at, st := r.Sub(p.x, 0, p.w, 1), styleLabel
	ordered := s.Sort.By != client.MetricNone && s.Sort.By == p.metric && p.title != ""
	if ordered {
		st = styleAccent
	}
	x := 0
	if !p.left {
		x = p.w - screen.Width(p.title)
	}
	end := at.Text(x, 0, p.w, p.title, st)
	mark := '↑'
	if s.Sort.Descending {
		mark = '↓'
	}
	switch {
	case ordered && x > 0:
		at.Set(x-1, 0, mark, st)
	case ordered:
		at.Set(end, 0, mark, st)
	}
	if p.metric != client.MetricNone && !at.Empty() {
		px, py := at.Place()
		s.Hits = append(s.Hits, Hit{X: px, Y: py, W: at.W, H: 1, Metric: p.metric})
	}
}
