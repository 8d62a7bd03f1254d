package view

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// painter draws devices. It reuses memory for the next frame.
type painter struct {
	history      sparkline
	line, behind []float64         // of a chart
	fitting      []deviceChart     // of a device
	classes      []canonical.Class // of a strip
	// stripped devices have a strip of their classes elsewhere.
	stripped bool
}

// card draws a unit into r: a border with its name, health and workload, and as many readings
// as fit inside.
func (p *painter) card(r screen.Rect, s *State, u *client.Unit) {
	freshness, since := s.Freshness(u.Lead())
	if freshness == client.Expired {
		u = blankUnit(u)
	}
	g := u.Lead()
	in := cardFrame(r, s, g, u.Contains(s.Selected), freshness, since)
	switch {
	case g.Gone:
		drawGone(in, s, g)
	case len(u.Instances) > 0:
		p.instances(in, s, u)
	default:
		p.body(in, s, g)
	}
	if freshness == client.Stale {
		in.Dim(styleFaint)
	}
}

// blankUnit returns u without its readings.
func blankUnit(u *client.Unit) *client.Unit {
	blank := &client.Unit{}
	if u.Board != nil {
		blank.Board = u.Board.Blank()
	}
	for _, g := range u.Instances {
		blank.Instances = append(blank.Instances, g.Blank())
	}
	return blank
}

// cardFrame draws the border of a card with name and health, and returns the Rect inside. The
// border has the colour of the health; the name also shows the selection.
func cardFrame(r screen.Rect, s *State, g *client.GPU, selected bool, freshness client.Freshness, since time.Duration) screen.Rect {
	health, border, name := badgeOf(g), styleBorder, styleStrong
	if selected {
		border, name = styleSelected, styleStrong|screen.Picked
	}
	in := r.Box(health.border(border)).Inset(1, 0)
	top := r.Sub(2, 0, r.W-4, 1)
	right := top.W - badgeWidth - 2
	drawName(top, 0, right-1, s, g, name)
	if freshness == client.Fresh {
		w := screen.Width(health.text)
		drawPadded(top, right+badgeWidth-w, w+2, health.text, health.style)
	} else {
		drawPadded(top, right, badgeWidth+2, "▲     ", styleWarn)
		top.Number(right+3, 0, badgeWidth-2, age(r.Scratch(), since), styleWarn)
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
	end := x + w
	x = r.Text(x, 0, end-x, " ", st)
	if s.Nodes.Several() {
		const rest = 9 // " · GPU 12" without its index
		x = r.Text(x, 0, end-x-rest, g.Hostname, st)
		x = r.Text(x, 0, end-x, " · ", st)
	}
	for _, part := range [...]string{"GPU ", g.GPU} {
		x = r.Text(x, 0, end-x, part, st)
	}
	if g.IsInstance() {
		x = r.Text(x, 0, end-x, " MIG ", st)
		x = r.Text(x, 0, end-x, g.Instance, st)
	}
	return r.Text(x, 0, min(1, end-x), " ", st)
}

// besideWidth is the least width of the readings beside charts: that of a compact card.
const besideWidth = 36

// body draws a device into a card of at least 4 rows. Charts are below the bars, or beside them
// if a card is too low but wide enough.
func (p *painter) body(r screen.Rect, s *State, g *client.GPU) {
	wrong, sick := problemOf(s, g)
	rows := 0
	if sick {
		rows = problemRows(&wrong, r.W, r.H-4)
	}
	share := shareRows(r.W, r.H-4-rows)
	if p.stripped {
		share.history, share.classes = share.history+share.classes, 0
	}
	if !fitsChart(r.W, share.history) && fitsChart(r.W-besideWidth-1, r.H) {
		w := max(besideWidth, r.W*3/8)
		p.charts(r.Sub(w+1, 0, r.W, r.H), s, g)
		r = r.Sub(0, 0, w, r.H)
		if sick {
			rows = problemRows(&wrong, w, r.H-4)
		}
		share = cardRows{cells: r.H - 4 - rows}
	}
	p.readings(r, s, g, &wrong, rows, share)
}

// readings draws the bars of a device, its problem in a number of rows, and the parts that share
// gives rows.
func (p *painter) readings(r screen.Rect, s *State, g *client.GPU, wrong *problem, rows int, share cardRows) {
	label := classOf(g)
	class := label.Long
	if r.W < 2*longClass {
		class = label.Short
	}
	r.TextRight(0, 0, r.W, class, label.style)
	named := problem{}
	if rows == 0 {
		named = *wrong
	}
	drawModel(r, r.W-screen.Width(class)-1, s, g, &named)
	b := barsIn(r.W)
	b.util(r.Row(1), g)
	b.memory(r.Row(2), g)
	b.power(r.Row(3), g)
	y := 4 + rows
	drawProblem(r.Sub(0, 4, r.W, rows), wrong, badgeOf(g).style)
	rest := r.Sub(0, y, r.W, r.H-y)
	if area := rest.Sub(0, 0, rest.W, share.history); !p.charts(area, s, g) {
		p.history.utilization(area, s, g)
	}
	p.history.classes(rest.Sub(0, share.history, rest.W, share.classes), s, g)
	drawCells(rest.Sub(0, share.history+share.classes, rest.W, share.cells), cardCells, g)
	transferLine(rest.Sub(0, rest.H-1, rest.W, share.transfer), g)
}

// cardRows are the rows of a card below its bars.
type cardRows struct{ history, transfer, classes, cells int }

// sparkRows is the height of the history above which other readings get the rows.
const sparkRows = 4

// shareRows distributes h rows of w cells. The history comes first, then transfers, classes, and
// cells; cells in several columns come before a higher history.
func shareRows(w, h int) cardRows {
	columns := cellColumns(w)
	all := (len(cardCells) + columns - 1) / columns
	if columns > 1 && h >= 4 {
		rows := cardRows{classes: 1, cells: min(all, h-2)}
		if rows.cells*columns < temperatureCells { // the transfer line has the temperature
			rows.cells, rows.transfer = rows.cells-1, 1
		}
		rows.history = h - rows.classes - rows.cells - rows.transfer
		return rows
	}
	rows := cardRows{history: min(h, 1), transfer: min(max(h-1, 0), 1), classes: min(max(h-2, 0), 1)}
	free := max(h-3, 0)
	rows.cells = min(all, max(free-sparkRows+1, 0))
	rows.history += free - rows.cells
	return rows
}

// drawModel writes the problem of g or of its node in at most w cells, with what to do and since
// when, else the model or profile.
func drawModel(r screen.Rect, w int, s *State, g *client.GPU, p *problem) {
	stopped := stoppedText(s, g)
	switch {
	case stopped != "":
		r.Text(0, 0, w, stopped, styleWarn)
	case len(g.Raised) > 0:
		drawWhy(r, 0, w, g, p.action, p.since)
	case g.IsInstance():
		r.Text(0, 0, w, g.Profile, styleLabel)
	default:
		r.Text(0, 0, w, g.Model, styleLabel)
	}
}

// drawWhy writes the conditions of g in at most w cells, with action and since unless they
// are "".
func drawWhy(r screen.Rect, x, w int, g *client.GPU, action, since string) {
	why := string(g.AppendWhy(r.Scratch()))
	if action != "" {
		why += " → " + action
	}
	if since != "" {
		why += "  " + since
	}
	r.Text(x, 0, w, why, badgeOf(g).style)
}

// migRows returns the rows of a card's inside for a board and n instances.
func migRows(n int) int { return n + 2 }

// instances draws a board and its MIG instances, a row each. The board gets the remaining rows:
// first for power and temperature, then for its problem, its own utilization, and other
// readings.
func (p *painter) instances(r screen.Rect, s *State, u *client.Unit) {
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
		p.instance(r.Row(first+i), s, g, b)
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

// instance draws one MIG instance in a row.
func (p *painter) instance(r screen.Rect, s *State, g *client.GPU, b bars) {
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
		p.history.utilization(r.Sub(right+1, 0, migHistory, 1), s, g)
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
