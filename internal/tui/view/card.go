package view

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// drawCard draws a unit into r: a border with its name, health and workload, and as many readings
// as fit inside. stripped devices have a strip of their classes elsewhere.
func drawCard(r screen.Rect, s *State, u *client.Unit, stripped bool) {
	selected := u.Contains(s.Selected)
	shown := client.Unit{}
	if u.Board != nil {
		shown.Board = s.current(u.Board)
	}
	for _, g := range u.Instances {
		shown.Instances = append(shown.Instances, s.current(g))
	}
	g := shown.Lead()
	in := drawFrame(r, s, g, selected)
	switch {
	case g.Gone:
		drawGone(in, s, g)
	case len(u.Instances) > 0:
		drawInstances(in, s, &shown)
	default:
		drawBody(in, s, g, stripped)
	}
	if freshness, _ := s.Freshness(g); freshness == client.Stale {
		in.Dim(styleFaint)
	}
}

// drawFrame draws the border of a card with name and health, and returns the Rect inside. The
// border has the colour of the health; the name also shows the selection.
func drawFrame(r screen.Rect, s *State, g *client.GPU, selected bool) screen.Rect {
	health, border, name := badgeOf(g), styleBorder, styleStrong
	if selected {
		border, name = styleSelected, styleStrong|screen.Picked
	}
	in := r.Box(health.border(border)).Inset(1, 0)
	top := r.Sub(2, 0, r.W-4, 1)
	right := top.W - badgeWidth - 2
	drawName(top, 0, right-1, s, g, name)
	if freshness, since := s.Freshness(g); freshness == client.Fresh {
		w := screen.Width(health.text)
		drawPadded(top, right+badgeWidth-w, w+2, health.text, health.style)
	} else {
		drawPadded(top, right, badgeWidth+2, "▲     ", styleWarn)
		top.Number(right+3, 0, badgeWidth-2, AgeText(since), styleWarn)
	}
	if holder := g.Holder(); holder != "" && in.W > 16 {
		drawPadded(r.Sub(2, r.H-1, r.W-4, 1), 0, r.W-4, holder, styleLabel)
	}
	return in
}

// drawPadded draws text with a space on each side, in at most w cells.
func drawPadded(r screen.Rect, x, w int, text string, st screen.Style) {
	end := r.Text(x+1, 0, w-2, text, st)
	r.Set(x, 0, ' ', styleBorder)
	r.Set(end, 0, ' ', styleBorder)
}

// drawName writes the name of g between spaces, and returns the x after it. With several
// machines the name begins with the hostname.
func drawName(r screen.Rect, x, w int, s *State, g *client.GPU, st screen.Style) int {
	r = r.Sub(0, 0, x+w, 1)
	x = write(r, x, piece{" ", st})
	if s.Nodes.Several() {
		const rest = 9 // " · GPU 12" without its index
		x = r.Text(x, 0, r.W-x-rest, g.Hostname, st)
		x = write(r, x, piece{" · ", st})
	}
	x = write(r, x, piece{g.Label(), st})
	return r.Text(x, 0, min(1, r.W-x), " ", st)
}

// besideWidth is the least width of the readings beside charts: that of a low card.
const besideWidth = 36

// barRows are the rows of a card with its bars, and its model and class above them.
const barRows = 4

// drawBody draws a device into a card of at least 4 rows: bars, its problem, its history, cells.
// Charts are below the bars, or beside them if a card is too low but wide enough.
func drawBody(r screen.Rect, s *State, g *client.GPU, stripped bool) {
	wrong, sick := problemOf(s, g)
	share := cardRows{}
	if sick {
		share.problem = problemRows(&wrong, r.W, r.H-barRows)
	}
	share.divide(r.W, r.H-barRows-share.problem)
	if stripped {
		share.history, share.classes = share.history+share.classes, 0
	}
	if !fitsChart(r.W, share.history) && fitsChart(r.W-besideWidth-1, r.H) {
		w := max(besideWidth, r.W*3/8)
		drawCharts(r.Sub(w+1, 0, r.W, r.H), s, g)
		r = r.Sub(0, 0, w, r.H)
		if share = (cardRows{}); sick {
			share.problem = problemRows(&wrong, w, r.H-barRows)
		}
		share.cells = r.H - barRows - share.problem
	}
	label := classOf(g)
	class := label.Long
	if r.W < 2*longClass {
		class = label.Short
	}
	r.TextRight(0, 0, r.W, class, label.style)
	below := wrong
	if share.problem > 0 {
		wrong = problem{}
	}
	drawModel(r, r.W-screen.Width(class)-1, s, g, &wrong)
	b := barsIn(r.W)
	b.util(r.Row(1), g)
	b.memory(r.Row(2), g)
	b.power(r.Row(3), g)
	y := barRows
	next := func(rows int) screen.Rect {
		y += rows
		return r.Sub(0, y-rows, r.W, rows)
	}
	drawProblem(next(share.problem), &below, badgeOf(g).style)
	if area := next(share.history); !drawCharts(area, s, g) {
		drawUtilization(area, s, g)
	}
	drawClasses(next(share.classes), s, g)
	drawCells(next(share.cells), cardCells, g)
	transferLine(r.Sub(0, r.H-1, r.W, share.transfer), g)
}

// cardRows are the rows of a card below its bars.
type cardRows struct{ problem, history, transfer, classes, cells int }

// sparkRows is the height of the history above which other readings get the rows.
const sparkRows = 4

// divide distributes h rows of w cells. The history comes first, then transfers, classes, and
// cells; cells in several columns come before a higher history.
func (c *cardRows) divide(w, h int) {
	columns := cellColumns(w)
	all := (len(cardCells) + columns - 1) / columns
	if columns > 1 && h >= 4 {
		c.classes, c.cells = 1, min(all, h-2)
		if c.cells*columns < temperatureCells { // the transfer line has the temperature
			c.cells, c.transfer = c.cells-1, 1
		}
		c.history = h - c.classes - c.cells - c.transfer
		return
	}
	free := max(h-3, 0)
	c.history, c.transfer, c.classes = min(h, 1), min(max(h-1, 0), 1), min(max(h-2, 0), 1)
	c.cells = min(all, max(free-sparkRows+1, 0))
	c.history += free - c.cells
}

// drawModel writes the problem of g or of its node in at most w cells, with what to do and since
// when, else the model or profile.
func drawModel(r screen.Rect, w int, s *State, g *client.GPU, p *problem) {
	stopped := stoppedText(s, g)
	switch {
	case stopped != "":
		r.Text(0, 0, w, stopped, styleWarn)
	case len(g.Raised) > 0:
		drawWhy(r, 0, w, g, p)
	case g.IsInstance():
		r.Text(0, 0, w, g.Profile, styleLabel)
	default:
		r.Text(0, 0, w, g.Model, styleLabel)
	}
}

// drawWhy writes the conditions of g in at most w cells, with what to do and since when if p says so.
func drawWhy(r screen.Rect, x, w int, g *client.GPU, p *problem) {
	why := g.Why()
	if p.action != "" {
		why += " → " + p.action
	}
	if p.since != "" {
		why += "  " + p.since
	}
	r.Text(x, 0, w, why, badgeOf(g).style)
}

// migRows returns the rows of a card's inside for a board and n instances.
func migRows(n int) int { return n + 2 }

// drawInstances draws a board and its MIG instances, a row each. The board gets the remaining rows:
// first for power and temperature, then for its problem, its own utilization, and other readings.
func drawInstances(r screen.Rect, s *State, u *client.Unit) {
	first, b := instancesFrom(r.H, u), instanceBars(r.W)
	if first > 1 {
		r.TextRight(0, 0, r.W, client.InMIG.Short, styleLabel)
		wrong, _ := problemOf(s, u.Board)
		drawModel(r.Row(0), r.W-len(client.InMIG.Short)-1, s, u.Board, &wrong)
	}
	if first > 0 {
		line := r.Row(min(first-1, 1))
		temperature(line, 0, widthCelsius, u.Board, canonical.Temperature)
		bars{x: barLabel, w: b.w, thin: true}.power(line.Sub(b.x-barLabel, 0, r.W, 1), u.Board)
	}
	if first > 2 {
		b.util(r.Row(2), u.Board)
	}
	for i, g := range u.Instances {
		drawInstance(r.Row(first+i), s, g, b)
	}
	if y := first + len(u.Instances) + 1; u.Board != nil {
		drawCells(r.Sub(0, y, r.W, r.H-y), boardCells, u.Board)
	}
}

// instancesFrom returns the first row of instances in a card of h rows, below the board's.
func instancesFrom(h int, u *client.Unit) int {
	free := max(h-len(u.Instances), 0)
	switch {
	case u.Board == nil:
		return 0
	case canonical.Given(u.Board.RealUtilization):
		return min(free, 3)
	default:
		return min(free, 2)
	}
}

// The columns of an instance's row: id, profile, a bar, and others if they fit.
const (
	migID, migProfile  = 2, 10
	migMemory          = 5 + widthWhole // " mem  33%"
	migWide, migWidest = 32, 60         // least widths with memory, and with class and history
	migHistory         = 16
)

// instanceBars returns the bars of a board and its instances, in a card that is w wide inside.
func instanceBars(w int) bars {
	x, right := migID+1+min(migProfile, max(7, w-24))+1, w-widthPercent
	if w >= migWidest {
		right -= shortClass + migHistory + 2
	}
	if w >= migWide {
		right -= migMemory
	}
	return bars{x: x, w: right - x - 1, thin: true}
}

// drawInstance draws one MIG instance in a row.
func drawInstance(r screen.Rect, s *State, g *client.GPU, b bars) {
	if r.Empty() {
		return
	}
	r.TextRight(0, 0, migID, g.Instance, stylePlain)
	r.Text(migID+1, 0, b.x-migID-2, g.Profile, styleLabel)
	right := r.W
	if r.W >= migWidest {
		right -= shortClass
		label := &classLabels[g.Class]
		r.Text(right, 0, shortClass, label.Short, label.style)
		right -= migHistory + 2
		drawUtilization(r.Sub(right+1, 0, migHistory, 1), s, g)
	}
	if r.W >= migWide {
		right -= migMemory
		r.Text(right+1, 0, 3, "mem", styleLabel)
		number(r, right+migMemory-widthWhole, 0, widthWhole, g.Values[canonical.FramebufferUsedRatio], whole, stylePlain)
	}
	number(r, right-widthPercent, 0, widthPercent, g.RealUtilization, percent, styleStrong)
	b.bar(r, g.RealUtilization, utilStyle(g.RealUtilization))
	if g.Key == s.Selected {
		r.Pick()
	}
}
