package client

import (
	"iter"
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Unit is a board with its instances, or the instances of a board that is not shown.
type Unit struct {
	Board     *GPU // may be nil
	Instances []*GPU
}

// Units returns the units of devices of which instances follow their board.
func Units(gpus []*GPU) iter.Seq[Unit] {
	return func(yield func(Unit) bool) {
		for i := 0; i < len(gpus); {
			first, end := gpus[i], i+1
			for end < len(gpus) && gpus[end].IsInstance() && gpus[end].Key.Node == first.Key.Node && gpus[end].Key.UUID == first.Key.UUID {
				end++
			}
			u := Unit{nil, gpus[i:end]}
			if !first.IsInstance() {
				u = Unit{first, gpus[i+1 : end]}
			}
			if i = end; !yield(u) {
				return
			}
		}
	}
}

// Lead returns the device that stands for the unit.
func (u *Unit) Lead() *GPU {
	if u.Board != nil {
		return u.Board
	}
	return u.Instances[0]
}

// Contains reports whether the device with a key is in u.
func (u *Unit) Contains(k Key) bool {
	return u.Board != nil && u.Board.Key == k || slices.ContainsFunc(u.Instances, func(g *GPU) bool { return g.Key == k })
}

// utilization returns the board's real utilization, else the mean of its instances;
// NaN where none is known.
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
	return sum / float64(n)
}

// memory returns the board's memory in bytes, else that of its instances together.
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

// ActiveFrom is the share of utilization or memory from which a GPU counts as
// active, as in KempnerPulse.
const ActiveFrom = 0.20

// active reports whether any device of u is active, and whether that is known.
func (u *Unit) active() (active, known bool) {
	add := func(g *GPU) {
		util, memory := g.RealUtilization, g.Values[canonical.FramebufferUsedRatio]
		active = active || util >= ActiveFrom || memory >= ActiveFrom
		known = known || canonical.Given(util) || canonical.Given(memory)
	}
	if u.Board != nil {
		add(u.Board)
	}
	for _, g := range u.Instances {
		add(g)
	}
	return active, known
}

// Totals sum up devices. What no device reports is NaN, and so is a sum of which a
// part is unknown.
type Totals struct {
	Boards, Active int
	Known          int     // boards of which it is known whether they are active
	Real           float64 // mean of those that are known
	Power, Limit   float64 // watts
	Mean           float64 // watts of a board
	Used, Memory   float64 // bytes
	Health         [canonical.NumHealth]int
	Gone           int
	Host           canonical.Host
}

// TotalsOf sums up gpus, devices of nodes, whose readings have not expired at now.
func TotalsOf(nodes Nodes, gpus []*GPU, now time.Time) Totals {
	var t Totals
	var known, powered, shown int
	for u := range Units(gpus) {
		t.Boards++
		g := u.Lead()
		switch freshness, _ := nodes.Freshness(g, now); {
		case g.Gone:
			t.Gone++
			continue
		case freshness == Expired:
			t.Health[canonical.HealthUnknown]++
			continue
		}
		shown++
		t.Health[g.Health]++
		active, activeKnown := u.active()
		if active {
			t.Active++
		}
		if activeKnown {
			t.Known++
		}
		if v := u.utilization(); canonical.Given(v) {
			t.Real += v
			known++
		}
		if v := g.Values[canonical.Power]; canonical.Given(v) {
			t.Power += v
			powered++
		}
		used, memory := u.memory()
		t.Limit, t.Used, t.Memory = t.Limit+g.Values[canonical.PowerLimit], t.Used+used, t.Memory+memory
	}
	t.Real /= float64(known)
	t.Mean = t.Power / float64(powered)
	if powered < shown || shown == 0 {
		t.Power = math.NaN()
	}
	if powered == 0 {
		t.Limit = math.NaN()
	}
	if t.Memory == 0 {
		t.Used, t.Memory = math.NaN(), math.NaN()
	}
	t.Host = hosts(nodes, now)
	return t
}

// hosts sums up the machines of nodes that report themselves.
func hosts(nodes Nodes, now time.Time) canonical.Host {
	busy, sum := 0.0, unknownHost()
	for _, n := range nodes {
		if freshness, _ := n.Freshness(now); freshness == Expired {
			continue
		}
		h := n.Host
		if canonical.Given(h.CPUs) && canonical.Given(h.CPUUtilization) {
			busy += h.CPUs * h.CPUUtilization
			sum.CPUs = plus(sum.CPUs, h.CPUs)
			sum.CPUUtilization = busy / sum.CPUs
		}
		if canonical.Given(h.MemoryTotal) && canonical.Given(h.MemoryAvailable) {
			sum.MemoryTotal = plus(sum.MemoryTotal, h.MemoryTotal)
			sum.MemoryAvailable = plus(sum.MemoryAvailable, h.MemoryAvailable)
		}
	}
	return sum
}

// plus adds b to a sum that is NaN as long as it has no terms.
func plus(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	return a + b
}
