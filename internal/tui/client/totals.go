package client

import (
	"iter"
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Unit is a board with its instances, or the instances of a board that is hidden.
type Unit struct {
	Board     *GPU // may be nil
	Instances []*GPU
}

// Units returns the units of gpus, in which instances follow their board.
func Units(gpus []*GPU) iter.Seq[Unit] {
	return func(yield func(Unit) bool) {
		for i := 0; i < len(gpus); {
			u, board := Unit{}, gpus[i].Key.board()
			if !gpus[i].IsInstance() {
				u.Board = gpus[i]
				i++
			}
			first := i
			for i < len(gpus) && gpus[i].IsInstance() && gpus[i].Key.board() == board {
				i++
			}
			if u.Instances = gpus[first:i]; !yield(u) {
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

// Devices returns the board, if it is shown, and its instances.
func (u *Unit) Devices() []*GPU {
	if u.Board == nil {
		return u.Instances
	}
	return append([]*GPU{u.Board}, u.Instances...)
}

// Contains reports whether the device with a key is in u.
func (u *Unit) Contains(k Key) bool {
	return slices.ContainsFunc(u.Devices(), func(g *GPU) bool { return g.Key == k })
}

// utilization returns the board's real utilization, else the mean of its instances, else
// NaN.
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

// Memory returns the board's memory in bytes, else the sum of its instances.
func (u *Unit) Memory() (used, total float64) {
	v := &u.Lead().Values
	used, total = v[canonical.FramebufferUsed], v[canonical.FramebufferTotal]
	if len(u.Instances) == 0 || u.Board != nil && canonical.Given(used) && canonical.Given(total) {
		return used, total
	}
	used, total = 0, 0
	for _, g := range u.Instances {
		used += g.Values[canonical.FramebufferUsed]
		total += g.Values[canonical.FramebufferTotal]
	}
	return used, total
}

// Work is whether a unit works.
type Work uint8

// The kinds of work. A unit with no known class is neither busy nor idle.
const (
	WorkUnknown Work = iota
	Idling
	Busy
)

// Work returns whether u works, by the classes of its devices. A unit is idle only if all its
// devices are; a board with instances may have no class.
func (u *Unit) Work() Work {
	work := Idling
	for _, g := range u.Devices() {
		switch {
		case g.Class == canonical.Idle:
		case g.Class != canonical.ClassUnknown, g.Unprofiled(): // idle has a class without profiling too
			return Busy
		case g != u.Board || len(u.Instances) == 0:
			work = WorkUnknown
		}
	}
	return work
}

// heldFrom is the device memory, in bytes, from which an idle device counts as held: a process
// that has only started takes less.
const heldFrom = 1 << 30

// Totals sum up devices. A value that no device reports is NaN, and so is a sum with an unknown
// term.
type Totals struct {
	Boards int
	Work   [Busy + 1]int // present boards, by what they do
	// Real is the mean of known real utilizations, of the boards in Claims if there are any:
	// then it can be compared with GPU util, and all screens show the same number for a node.
	Real         float64
	Util         float64 // mean GPU-Util of the boards without profiling counters
	Claims       Claims
	Holders      int     // idle boards that hold memory
	Held         float64 // that memory in bytes
	Power, Limit float64 // watts
	Used, Memory float64 // bytes
	Health       [canonical.NumHealth]int
	Gone         int
	Host         canonical.Host
}

// Claims compare GPU util with real utilization, over the boards for which both are known.
type Claims struct {
	Boards     int
	Util, Real float64 // means
	Wasted     float64 // boards: the sum by which GPU util exceeds real utilization
}

// add adds a board with a known real utilization.
func (c *Claims) add(util, real float64) {
	if !canonical.Given(util) {
		return
	}
	c.Boards++
	c.Util += (util - c.Util) / float64(c.Boards)
	c.Real += (real - c.Real) / float64(c.Boards)
	c.Wasted += max(0, util-real)
}

// TotalsOf sums up gpus, devices of nodes, whose readings have not expired at now.
func TotalsOf(nodes Nodes, gpus []*GPU, now time.Time) Totals {
	var t Totals
	var known, shown, unprofiled int
	for u := range Units(gpus) {
		t.Boards++
		g := u.Lead()
		freshness, _ := nodes.Freshness(g, now)
		switch {
		case freshness == Expired, g.Gone && nodes.Of(g).Stopped(): // it may be back
			t.Health[canonical.HealthUnknown]++
			continue
		case g.Lost():
			t.Gone++
			continue
		case g.Gone:
			t.Health[canonical.HealthUnknown]++
			continue
		}
		shown++
		health := g.Health
		if freshness == Stale && health == canonical.HealthOK { // bad health counts until the node stops answering
			health = canonical.HealthUnknown
		}
		t.Health[health]++
		work := u.Work()
		t.Work[work]++
		if v := u.utilization(); canonical.Given(v) {
			t.Real += v
			known++
			t.Claims.add(g.Values[canonical.NVMLUtilization], v)
		} else if g.Unprofiled() {
			t.Util += g.Values[canonical.NVMLUtilization]
			unprofiled++
		}
		used, memory := u.Memory()
		if work == Idling && used >= heldFrom {
			t.Holders++
			t.Held += used
		}
		t.Power, t.Limit = t.Power+g.Values[canonical.Power], t.Limit+g.Values[canonical.PowerLimit]
		t.Used, t.Memory = t.Used+used, t.Memory+memory
	}
	t.Util /= float64(unprofiled)
	if t.Real /= float64(known); t.Claims.Boards > 0 {
		t.Real = t.Claims.Real
	}
	if shown == 0 {
		nan := math.NaN()
		t.Power, t.Limit, t.Used, t.Memory = nan, nan, nan, nan
	}
	t.Host = unknownHost()
	if freshness, _ := nodes[0].Freshness(now); len(nodes) == 1 && freshness != Expired {
		t.Host = nodes[0].Host
	}
	return t
}
