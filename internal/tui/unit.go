package tui

import (
	"math"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// unit is what is shown in one place: a board with its instances, or an instance
// whose board is not shown.
type unit struct {
	board     *GPU   // nil where only instances are shown
	instances []*GPU // part of State.GPUs
}

// lead is the device that stands for the unit.
func (u *unit) lead() *GPU {
	if u.board != nil {
		return u.board
	}
	return u.instances[0]
}

// holds tells whether the device of a key is in u.
func (u *unit) holds(k Key) bool {
	if u.board != nil && u.board.Key == k {
		return true
	}
	for _, g := range u.instances {
		if g.Key == k {
			return true
		}
	}
	return false
}

// appendUnits appends the units of devices in which instances follow their board.
func appendUnits(dst []unit, gpus []*GPU) []unit {
	for i := 0; i < len(gpus); {
		var u unit
		u, i = nextUnit(gpus, i)
		dst = append(dst, u)
	}
	return dst
}

// nextUnit returns the unit that begins at i, and where the next one does.
func nextUnit(gpus []*GPU, i int) (unit, int) {
	var u unit
	if !gpus[i].IsInstance() {
		u.board = gpus[i]
		i++
	}
	first := i
	for i < len(gpus) && gpus[i].IsInstance() && sameBoard(gpus[i], gpus[first], u.board) {
		i++
	}
	u.instances = gpus[first:i]
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
func (u *unit) utilization() float64 {
	if u.board != nil && canonical.Given(u.board.RealUtilization) {
		return u.board.RealUtilization
	}
	sum, n := 0.0, 0
	for _, g := range u.instances {
		if canonical.Given(g.RealUtilization) {
			sum += g.RealUtilization
			n++
		}
	}
	return sum / float64(n) // NaN of none
}

// memory of u in bytes: the board's, else that of its instances together.
func (u *unit) memory() (used, total float64) {
	if u.board != nil {
		used, total = u.board.Values[canonical.FramebufferUsed], u.board.Values[canonical.FramebufferTotal]
	}
	if u.board != nil && canonical.Given(used) && canonical.Given(total) || len(u.instances) == 0 {
		return used, total
	}
	used, total = 0, 0
	for _, g := range u.instances {
		used += g.Values[canonical.FramebufferUsed]
		total += g.Values[canonical.FramebufferTotal]
	}
	return used, total
}

// activeFrom is the share of utilization or memory from which a GPU counts as
// active, as in KempnerPulse.
const activeFrom = 0.20

// active tells whether anything of u is in use, and whether u tells.
func (u *unit) active() (active, told bool) {
	if u.board != nil {
		active, told = busy(u.board)
	}
	for _, g := range u.instances {
		a, t := busy(g)
		active, told = active || a, told || t
	}
	return active, told
}

func busy(g *GPU) (busy, told bool) {
	util, memory := g.RealUtilization, g.Values[canonical.FramebufferUsedRatio]
	return util >= activeFrom || memory >= activeFrom, canonical.Given(util) || canonical.Given(memory)
}

// blank returns g without what it read, for a node whose readings are too old to
// be shown.
func blank(g *GPU) *GPU {
	b := &GPU{
		Key: g.Key, Node: g.Node, Index: g.Index, UUID: g.UUID, MIGInstance: g.MIGInstance, MIGProfile: g.MIGProfile,
		Model: g.Model, Device: g.Device, PCIBusID: g.PCIBusID, Driver: g.Driver,
		RealUtilization: math.NaN(), Coverage: math.NaN(), Holders: math.NaN(), XIDChanges: math.NaN(),
		Class: canonical.ClassUnknown, Health: canonical.HealthUnknown,
	}
	for i := range b.Values {
		b.Values[i] = math.NaN()
	}
	return b
}
