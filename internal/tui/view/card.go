package view

import (
	"strings"

	"fmt"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// cardBars are the readings with bars on a card, by their labels.
var cardBars = []struct {
	label  string
	metric client.Metric
}{{"real", client.MetricReal}, {"mem", client.MetricMemoryUsed}, {"pwr", client.MetricPower}}

// cardCells are the readings below the bars of a card, most important first, grouped for two and
// for three columns.
var cardCells = []client.Metric{
	client.MetricTemperature, client.MetricSM, client.MetricTensor, client.MetricDRAM, client.MetricMemoryTemperature, client.MetricOccupancy,
	client.MetricPCIeReceive, client.MetricPCIeTransmit, client.MetricNVLink, client.MetricEngine, client.MetricMemCopy, client.MetricEnergy,
	client.MetricXID, client.MetricBadRows, client.MetricReplays, client.MetricSMClock,
}

// boardCells are the cells of a board in MIG: the others belong to its instances.
var boardCells = slices.DeleteFunc(slices.Clone(cardCells), func(m client.Metric) bool {
	return canonical.Fields[client.Metrics[m].Field].Level != canonical.BoardLevel
})

// drawCard draws a unit into r: a border with its name, health and workload, and as many readings
// as fit inside.
func drawCard(r screen.Rect, s *State, u *client.Unit) {
	lead := u.Lead()
	g := s.current(lead)
	in := drawFrame(r, s, g, u.Contains(s.Selected))
	p, sick := problemOf(s, g)
	label := classOf(g)
	in.TextRight(0, 0, in.W, label.Short, label.style)
	at, body := in.Sub(0, 0, in.W-shortClass-1, 1), in.Sub(0, 1, in.W, in.H-1)
	below := p.rows(in.W, body.H-len(cardBars)) // rows for the problem
	switch {
	case !sick:
		write(at, 0, piece{strings.TrimSpace(g.Model + " " + g.Profile), styleLabel})
	case g.Gone || below > 0 && len(u.Instances) == 0:
		write(at, 0, piece{p.what, p.style})
	default:
		write(at, 0, p.line())
	}
	switch {
	case g.Gone:
		p.draw(body.Sub(0, 0, body.W, 1+len(p.lines(body.W))))
	case len(u.Instances) > 0:
		drawInstances(body, s, u)
	default:
		drawBars(body, g)
		body = body.Sub(0, len(cardBars), body.W, body.H)
		p.draw(body.Sub(0, 0, body.W, below))
		drawBelow(body.Sub(0, below, body.W, body.H), s, g)
	}
	if freshness, _ := s.Freshness(lead); freshness == client.Stale {
		in.Dim(styleFaint)
	}
}

// drawFrame draws the border of a card with name, health and workload, and returns the Rect inside.
// The border has the colour of the health; the name also shows the selection.
func drawFrame(r screen.Rect, s *State, g *client.GPU, selected bool) screen.Rect {
	health, border, name := badgeOf(g), styleBorder, styleStrong
	if selected {
		border, name = styleSelected, styleStrong|screen.Picked
	}
	in := r.Box(health.border(border)).Inset(1, 0)
	top := r.Sub(2, 0, r.W-4, 1)
	drawName(top.Sub(0, 0, top.W-badgeWidth-3, 1), 0, s, g, name)
	if freshness, since := s.Freshness(g); freshness == client.Fresh {
		writeRight(top, piece{" " + health.text + " ", health.style})
	} else {
		at := top.Sub(top.W-badgeWidth-1, 0, badgeWidth+1, 1)
		at.Fill(' ', styleWarn)
		drawAge(at, since)
	}
	if holder := g.Holder(); holder != "" {
		write(r.Sub(2, r.H-1, r.W-4, 1), 0, piece{" " + holder + " ", styleLabel})
	}
	return in
}

// drawName writes the name of g between spaces, and returns the x after it. With several
// machines the name begins with the hostname.
func drawName(r screen.Rect, x int, s *State, g *client.GPU, st screen.Style) int {
	name := " " + g.Label() + " "
	if s.Nodes.Several() {
		x = r.Text(x, 0, r.W-x-screen.Width(name)-2, " "+g.Hostname, st)
		name = " ·" + name
	}
	return write(r, x, piece{name, st})
}

// drawBelow draws what is below the bars of a card: as many readings as fit below a row of history,
// which gets the rest.
func drawBelow(r screen.Rect, s *State, g *client.GPU) {
	columns := cellColumns(r.W)
	cells := min((len(cardCells)+columns-1)/columns, max(0, r.H-1))
	drawTrend(r.Sub(0, 0, r.W, r.H-cells), s, g, client.MetricReal)
	drawCells(r.Sub(0, r.H-cells, r.W, cells), g, cardCells)
}

// barLabel is the width of the label of a bar with the space after it, barNumbers that of its
// numbers, such as " 140.8/140.8 GiB".
const barLabel, barNumbers = 5, 16

// drawBars draws the bars of a card, which take the same cells, so that equal shares have equal
// lengths. GPU util follows real utilization, as the limit of the others follows them.
func drawBars(r screen.Rect, g *client.GPU) {
	for y, b := range cardBars {
		at := r.Row(y)
		if b.metric == client.MetricReal && g.Unprofiled() {
			b.label, b.metric = "util", client.MetricNVML
		}
		at.Text(0, 0, barLabel, b.label, styleLabel)
		drawBar(at.Sub(barLabel, 0, at.W-barLabel-barNumbers, 1), g, b.metric, false)
		numbers := readingOf(g, b.metric, true)
		if util := g.Values[canonical.NVMLUtilization]; b.metric == client.MetricReal && canonical.Given(util) {
			numbers = append(numbers, piece{fmt.Sprintf("%*s", 1+widthWhole, "/"+whole(util)), stylePlain})
		}
		writeRight(at.Sub(at.W-barNumbers+1, 0, barNumbers, 1), numbers...)
	}
}

// instanceRows returns the rows inside of a card for a board and n instances.
func instanceRows(n int) int { return n + 2 }

// drawInstances draws a board and its MIG instances, a row each. Below them are other readings of the
// board.
func drawInstances(r screen.Rect, s *State, u *client.Unit) {
	if g := u.Board; g != nil {
		g = s.current(g)
		write(r, 0, readingOf(g, client.MetricTemperature, false)...)
		drawBar(r.Sub(instanceBar, 0, r.W-instanceBar-instanceNumbers, 1), g, client.MetricPower, true)
		writeRight(r.Row(0), readingOf(g, client.MetricPower, true)...)
		r = r.Sub(0, 1, r.W, r.H)
		drawCells(r.Sub(0, len(u.Instances)+1, r.W, r.H), g, boardCells)
	}
	for i, g := range u.Instances {
		drawInstance(r.Row(i), s, s.current(g))
	}
}

// instanceID is the least width of the index of an instance, instanceBar that of index and profile; instanceNumbers is that of its
// utilization and memory.
const instanceID, instanceBar, instanceNumbers = 3, 14, widthPercent + len(" mem ") + widthWhole + 1

// drawInstance draws one MIG instance in a row, its class after it if there is room.
func drawInstance(r screen.Rect, s *State, g *client.GPU) {
	const classFrom = 48
	if r.Empty() {
		return
	}
	hit(r, s, Hit{Key: g.Key})
	at := r
	if r.W >= classFrom {
		at = r.Sub(0, 0, r.W-shortClass-1, 1)
		r.Text(at.W+1, 0, shortClass, classOf(g).Short, classOf(g).style)
	}
	id := max(instanceID, screen.Width(g.ID()))
	at.TextRight(0, 0, id, g.ID(), stylePlain)
	at.Text(id+1, 0, instanceBar-id-2, g.Profile, styleLabel)
	drawBar(at.Sub(instanceBar, 0, at.W-instanceBar-instanceNumbers, 1), g, client.MetricReal, true)
	memory := number(g.Values[canonical.FramebufferUsedRatio], whole, stylePlain)
	at.Number(0, 0, at.W, memory.text, memory.style)
	real := number(g.RealUtilization, percent, styleStrong)
	at.Number(0, 0, at.W-widthWhole-len(" mem "), real.text, real.style)
	at.Text(at.W-widthWhole-len("mem "), 0, len("mem"), "mem", styleLabel)
	if g.Key == s.Selected {
		r.Pick()
	}
}
