package view

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// painter draws cards. It keeps memory for the next frame.
type painter struct{ past sparkline }

// card draws a unit into r: a border with its name, its health and who holds it,
// and inside as much of what is known as there is room for.
func (p *painter) card(r screen.Rect, s *State, u *client.Unit) {
	how, since := s.Freshness(u.Lead())
	if how == client.Expired {
		u = expire(u)
	}
	g := u.Lead()
	in := cardFrame(r, s, g, u.Contains(s.Selected), how, since)
	switch {
	case g.Gone:
		in.Center(in.H/2, "not seen any more", styleCrit)
	case len(u.Instances) > 0:
		p.instances(in, s, u)
	case in.H < 4:
		p.small(in, s, g)
	default:
		p.body(in, s, g)
	}
	if how == client.Stale {
		in.Dim(styleFaint)
	}
}

// expire returns u with all its readings gone.
func expire(u *client.Unit) *client.Unit {
	old := &client.Unit{}
	if u.Board != nil {
		old.Board = u.Board.Blank()
	}
	for _, g := range u.Instances {
		old.Instances = append(old.Instances, g.Blank())
	}
	return old
}

// cardFrame draws the border of a card with its name and state, and returns the
// room inside it. A border has the colour of what is wrong; what is selected shows
// in the name as well.
func cardFrame(r screen.Rect, s *State, g *client.GPU, selected bool, how client.Freshness, since time.Duration) screen.Rect {
	state, border, name := badgeOf(g), styleBorder, styleStrong
	if selected {
		border, name = styleSelected, styleStrong|screen.Picked
	}
	border = state.border(border)
	in := r.Box(border).Inset(1, 0)
	top := r.Sub(2, 0, r.W-4, 1)
	right := top.W - badgeWidth - 2
	x := deviceName(top, 0, right-1, s, g, name)
	if in.H < 4 && !g.Gone && right-x > shortClass+2 {
		word := classOf(g)
		padded(top, x+1, shortClass+2, word.Short, word.style)
	}
	if how == client.Fresh {
		w := screen.Width(state.text)
		padded(top, right+badgeWidth-w, w+2, state.text, state.style)
	} else {
		padded(top, right, badgeWidth+2, "▲     ", styleWarn)
		top.Number(right+3, 0, badgeWidth-2, age(r.Scratch(), since), styleWarn)
	}
	if who := g.Holder(); who != "" && in.W > 16 {
		padded(r.Sub(2, r.H-1, r.W-4, 1), 0, r.W-4, who, styleLabel)
	}
	return in
}

// padded draws text with a space on each side, in at most w cells.
func padded(r screen.Rect, x, w int, text string, st screen.Style) {
	end := r.Text(x+1, 0, w-2, text, st)
	r.Set(x, 0, ' ', styleBorder)
	r.Set(end, 0, ' ', styleBorder)
}

// deviceName writes what g is called, between spaces, and returns the x behind it.
// Among several nodes it begins with that of its own.
func deviceName(r screen.Rect, x, w int, s *State, g *client.GPU, st screen.Style) int {
	end := x + w
	x = r.Text(x, 0, end-x, " ", st)
	if s.Nodes.Several() {
		const rest = 9 // " · GPU 12" without its index
		x = r.Text(x, 0, end-x-rest, g.Hostname, st)
		x = r.Text(x, 0, end-x, " · ", st)
	}
	x = r.Text(x, 0, end-x, "GPU ", st)
	x = r.Text(x, 0, end-x, g.GPU, st)
	if g.IsInstance() {
		x = r.Text(x, 0, end-x, " MIG ", st)
		x = r.Text(x, 0, end-x, g.Instance, st)
	}
	return r.Text(x, 0, min(1, end-x), " ", st)
}

// wideCard is the width from which memory and power stand side by side.
const wideCard = 60

// barLabel is the width of the label of a bar with the space behind it.
const barLabel = 5

// sparkRows is how high the past of a card grows before other readings are left
// out for it.
const sparkRows = 4

// body draws a board or an instance into a card that has at least 4 rows.
func (p *painter) body(r screen.Rect, s *State, g *client.GPU) {
	cardHead(r.Row(0), g)
	utilBar(r.Row(1), g)
	y := 2
	if r.W >= wideCard {
		w := (r.W - cellGap) * 3 / 5 // memory has more to say
		memoryBar(r.Sub(0, y, w, 1), g)
		powerBar(r.Sub(w+cellGap, y, r.W-w-cellGap, 1), g)
		y++
	} else {
		memoryBar(r.Row(y), g)
		powerBar(r.Row(y+1), g)
		y += 2
	}
	rest := r.Sub(0, y, r.W, r.H-y)
	share := shareRows(rest.W, rest.H)
	p.past.utilization(rest.Sub(0, 0, rest.W, share.past), s, g)
	p.past.strip(rest.Sub(0, share.past, rest.W, share.strip), s, g)
	drawCells(rest.Sub(0, share.past+share.strip, rest.W, share.cells), cardCells, g)
	transferLine(rest.Sub(0, rest.H-1, rest.W, share.transfer), g)
}

// cardRows is how the rows of a card below its bars are used.
type cardRows struct{ past, strip, cells, transfer int }

// shareRows shares h rows of w cells: the past comes first, then transfers, the
// class, and the other readings. Those come before a higher past where they stand
// in columns.
func shareRows(w, h int) cardRows {
	columns := cellColumns(w)
	all := (len(cardCells) + columns - 1) / columns
	if columns > 1 && h >= 4 {
		rows := cardRows{strip: 1, cells: min(all, h-2)}
		if rows.cells*columns < temperatureCells { // they would not show it
			rows.cells, rows.transfer = rows.cells-1, 1
		}
		rows.past = h - rows.strip - rows.cells - rows.transfer
		return rows
	}
	rows := cardRows{past: min(h, 1), transfer: min(max(h-1, 0), 1), strip: min(max(h-2, 0), 1)}
	free := max(h-3, 0)
	rows.cells = min(all, max(free-sparkRows+1, 0))
	rows.past += free - rows.cells
	return rows
}

// small draws a device into a card of less than 4 rows.
func (p *painter) small(r screen.Rect, s *State, g *client.GPU) {
	utilBar(r.Row(0), g)
	last := r.Row(r.H - 1)
	x := last.Text(0, 0, 4, "mem ", styleLabel)
	number(last, x, 0, widthWhole, g.Values[canonical.FramebufferUsedRatio], whole, stylePlain)
	number(last, (last.W+barLabel+3-widthWatts)/2, 0, widthWatts, g.Values[canonical.Power], watts, stylePlain)
	temperature(last, last.W-widthCelsius, widthCelsius, g, canonical.Temperature)
	p.past.utilization(r.Sub(0, 1, r.W, r.H-2), s, g)
}

// cardHead says what is wrong, else what model it is, and what the device does.
func cardHead(r screen.Rect, g *client.GPU) {
	word := classOf(g)
	text := word.Long
	if r.W < 2*longClass {
		text = word.Short
	}
	r.TextRight(0, 0, r.W, text, word.style)
	cardName(r, r.W-screen.Width(text)-1, g)
}

// cardName says in so many cells what is wrong, else what model it is.
func cardName(r screen.Rect, room int, g *client.GPU) {
	if len(g.Raised) > 0 {
		why(r, 0, room, g)
		return
	}
	name := g.Model
	if g.IsInstance() {
		name = g.Profile
	}
	r.Text(0, 0, room, name, styleLabel)
}

// why says what is wrong with g in at most w cells.
func why(r screen.Rect, x, w int, g *client.GPU) {
	r.Text(x, 0, w, string(g.AppendWhy(r.Scratch())), badgeOf(g).style)
}

// utilBar draws real utilization, the largest bar of all.
func utilBar(r screen.Rect, g *client.GPU) {
	st := utilStyle(g.RealUtilization)
	x := r.Text(0, 0, barLabel, "real ", styleLabel)
	r.Bar(x, 0, r.W-x-widthPercent-1, g.RealUtilization, st, styleTrack)
	number(r, r.W-widthPercent, 0, widthPercent, g.RealUtilization, percent, styleStrong)
}

// amountsFrom is the width from which a bar of memory says how much it is, and
// limitFrom that from which one of power says what its limit is.
const amountsFrom, limitFrom = 36, 24

// memoryBar draws the device memory in use; where there is room, in GiB too.
func memoryBar(r screen.Rect, g *client.GPU) {
	v := g.Values[canonical.FramebufferUsedRatio]
	x := r.Text(0, 0, barLabel, "mem ", styleLabel) + 1
	right := r.W - widthPercent
	number(r, right, 0, widthPercent, v, percent, stylePlain)
	if r.W >= amountsFrom {
		right = amounts(r, right, g)
	}
	r.Bar(x, 0, right-x-1, v, styleMemory, styleTrack)
}

// amounts writes the device memory in use and in all, so that it ends before right,
// and returns where it begins.
func amounts(r screen.Rect, right int, g *client.GPU) int {
	const unit = " GiB"
	right = right - len(unit) - 1
	r.Text(right, 0, len(unit), unit, styleLabel)
	return outOf(r, right, g.Values[canonical.FramebufferUsed], g.Values[canonical.FramebufferTotal], gibibytes, widthGiB)
}

// outOf writes a number of at most w cells, a slash and what it is out of, so that
// it ends before right, and returns where it begins. What it is out of does not
// change, and takes no more room than it needs.
func outOf(r screen.Rect, right int, v, of float64, f format, w int) int {
	n := len(missing)
	if canonical.Given(of) {
		n = len(f(r.Scratch(), of))
	}
	number(r, right-n, 0, n, of, f, styleLabel)
	r.Text(right-n-1, 0, 1, "/", styleLabel)
	number(r, right-n-1-w, 0, w, v, f, stylePlain)
	return right - n - 1 - w
}

// powerBar draws power against the limit in force; without one there is no bar.
func powerBar(r screen.Rect, g *client.GPU) {
	v, limit := g.Values[canonical.Power], g.Values[canonical.PowerLimit]
	x := r.Text(0, 0, barLabel, "pwr ", styleLabel) + 1
	right := r.W - widthWatts
	if r.W >= limitFrom {
		right = outOf(r, r.W, v, limit, watts, widthWatts)
	} else {
		number(r, right, 0, widthWatts, v, watts, stylePlain)
	}
	r.Bar(x, 0, right-x-1, v/limit, styleMixed, styleTrack)
}

// temperature writes one of the two temperatures.
func temperature(r screen.Rect, x, w int, g *client.GPU, f canonical.Field) {
	number(r, x, 0, w, g.Values[f], celsius, fieldStyle(g, f))
}

// bothTemperatures is the width from which that of the memory stands beside that of
// the GPU.
const bothTemperatures = 40

// transferLine writes what goes over PCIe, as far as there is room, and the
// temperatures.
func transferLine(r screen.Rect, g *client.GPU) {
	const label, unit, both, oneWay = "PCIe ", " GB/s", 31, 24
	x := 0
	if r.W >= oneWay {
		x = r.Text(x, 0, len(label), label, styleLabel)
		x = transfer(r, x, "↓", g.Values[canonical.PCIeReceive])
	}
	if r.W >= both {
		x = transfer(r, x+1, "↑", g.Values[canonical.PCIeTransmit])
	}
	if x > 0 {
		r.Text(x, 0, len(unit), unit, styleLabel)
	}
	right := r.W - widthCelsius
	if r.W >= bothTemperatures {
		temperature(r, right, widthCelsius, g, canonical.MemoryTemperature)
		r.Text(right-3, 0, 3, "mem", styleLabel)
		right -= widthCelsius + 4
	}
	temperature(r, right, widthCelsius, g, canonical.Temperature)
}

// transfer writes a direction and its rate, and returns the x behind it.
func transfer(r screen.Rect, x int, direction string, v float64) int {
	x = r.Text(x, 0, 1, direction, styleLabel) + 1
	number(r, x, 0, widthRate, v, rate, stylePlain)
	return x + widthRate
}
