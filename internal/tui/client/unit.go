package client

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// unit is what is shown in one place: a board with its instances, or an instance
// whose board is not shown.
type Unit struct {
	Board     *GPU   // nil where only instances are shown
	Instances []*GPU // part of State.GPUs
}

// lead is the device that stands for the unit.
func (u *Unit) Lead() *GPU {
	if u.Board != nil {
		return u.Board
	}
	return u.Instances[0]
}

// holds tells whether the device of a key is in u.
func (u *Unit) Holds(k Key) bool {
	if u.Board != nil && u.Board.Key == k {
		return true
	}
	for _, g := range u.Instances {
		if g.Key == k {
			return true
		}
	}
	return false
}

// appendUnits appends the units of devices in which instances follow their board.
func AppendUnits(dst []Unit, gpus []*GPU) []Unit {
	for i := 0; i < len(gpus); {
		var u Unit
		u, i = nextUnit(gpus, i)
		dst = append(dst, u)
	}
	return dst
}

// nextUnit returns the unit that begins at i, and where the next one does.
func nextUnit(gpus []*GPU, i int) (Unit, int) {
	var u Unit
	if !gpus[i].IsInstance() {
		u.Board = gpus[i]
		i++
	}
	first := i
	for i < len(gpus) && gpus[i].IsInstance() && sameBoard(gpus[i], gpus[first], u.Board) {
		i++
	}
	u.Instances = gpus[first:i]
	return u, i
}

// sameBoard tells whether g is of the board, or of that of another instance where
// the board is not known.
func sameBoard(g, other, board *GPU) bool {
	if board != nil {
		other = board
	}
	return g.Key.Node == other.Key.Node && g.Key.UUID == other.Key.UUID
}

// utilization of u as a whole: the board's, else the mean of its instances'.
func (u *Unit) utilization() float64 {
	if u.Board != nil && canonical.Given(u.Board.RealUtilization) {
		return u.Board.RealUtilization
	}
	sum, n := 0.0, 0
	for _, g := range u.Instances {
		if canonical.Given(g.RealUtilization) {
			sum += g.RealUtilization
			n++
		}
	}
	return sum / float64(n) // NaN of none
}

// memory of u in bytes: the board's, else that of its instances together.
func (u *Unit) memory() (used, total float64) {
	if u.Board != nil {
		used, total = u.Board.Values[canonical.FramebufferUsed], u.Board.Values[canonical.FramebufferTotal]
	}
	if u.Board != nil && canonical.Given(used) && canonical.Given(total) || len(u.Instances) == 0 {
		return used, total
	}
	used, total = 0, 0
	for _, g := range u.Instances {
		used += g.Values[canonical.FramebufferUsed]
		total += g.Values[canonical.FramebufferTotal]
	}
	return used, total
}

// activeFrom is the share of utilization or memory from which a GPU counts as
// active, as in KempnerPulse.
const ActiveFrom = 0.20

// active tells whether anything of u is in use, and whether u tells.
func (u *Unit) active() (active, told bool) {
	if u.Board != nil {
		active, told = busy(u.Board)
	}
	for _, g := range u.Instances {
		a, t := busy(g)
		active, told = active || a, told || t
	}
	return active, told
}

func busy(g *GPU) (busy, told bool) {
	util, memory := g.RealUtilization, g.Values[canonical.FramebufferUsedRatio]
	return util >= ActiveFrom || memory >= ActiveFrom, canonical.Given(util) || canonical.Given(memory)
}

// blank returns g without what it read, for a node whose readings are too old to
// be shown.
func Blank(g *GPU) *GPU { return NewGPU(g.Key.Node, g.Device) }
