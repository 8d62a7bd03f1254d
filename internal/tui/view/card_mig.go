package view

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// migRows is how many rows the inside of a card needs for n instances, with what
// is known of their board.
func migRows(n int) int { return n + 2 }

// instances draws a board and its MIG instances, a row each. The board has the
// rows that they leave: its power and temperature first, then what is wrong, its
// own utilization, and other readings.
func (p *painter) instances(r screen.Rect, s *State, u *client.Unit) {
	first := instancesFrom(r.H, u)
	if first > 0 {
		if first > 1 {
			const parted = "in MIG" // short, so that the model has room
			r.TextRight(0, 0, r.W, parted, styleLabel)
			cardName(r.Row(0), r.W-len(parted)-1, u.Board)
		}
		line := r.Row(min(first-1, 1))
		powerBar(line.Sub(0, 0, r.W-widthCelsius-1, 1), u.Board)
		temperature(line, r.W-widthCelsius, widthCelsius, u.Board, canonical.Temperature)
	}
	if first > 2 {
		utilBar(r.Row(2), u.Board)
	}
	for i, g := range u.Instances {
		p.instance(r.Row(first+i), s, g)
	}
	if y := first + len(u.Instances) + 1; u.Board != nil {
		drawCells(r.Sub(0, y, r.W, r.H-y), boardCells, u.Board)
	}
}

// instancesFrom returns the row of h on which the instances of u begin, behind
// those of the board.
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

// The columns of an instance's row: its id and profile, then a bar, then what has
// room behind it.
const (
	migID, migProfile  = 2, 10
	migMemory          = 5 + widthWhole // " mem  33%"
	migWide, migWidest = 32, 60         // from which memory, and class and past, have room
	migPast            = 16
)

// instance draws one MIG instance in a row.
func (p *painter) instance(r screen.Rect, s *State, g *client.GPU) {
	if r.Empty() {
		return
	}
	r.TextRight(0, 0, migID, g.Instance, stylePlain)
	profile := min(migProfile, max(7, r.W-24))
	x := r.Text(migID+1, 0, profile, g.Profile, styleLabel)
	x = max(x, migID+1+profile) + 1
	right := r.W
	if r.W >= migWidest {
		right -= shortClass
		word := &classLabels[g.Class]
		r.Text(right, 0, shortClass, word.Short, word.style)
		right -= migPast + 2
		p.past.utilization(r.Sub(right+1, 0, migPast, 1), s, g)
	}
	if r.W >= migWide {
		right -= migMemory
		r.Text(right+1, 0, 3, "mem", styleLabel)
		number(r, right+migMemory-widthWhole, 0, widthWhole, g.Values[canonical.FramebufferUsedRatio], whole, stylePlain)
	}
	right -= widthPercent
	number(r, right, 0, widthPercent, g.RealUtilization, percent, styleStrong)
	r.Bar(x, 0, right-x-1, g.RealUtilization, utilStyle(g.RealUtilization), styleTrack)
	if g.Key == s.Selected {
		r.Pick()
	}
}
