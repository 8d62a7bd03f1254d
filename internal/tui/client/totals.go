package client

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// totals are what all shown devices do together. What no device tells is NaN; a sum
// of which a part is not known is NaN too.
type Totals struct {
	Boards, Active int
	Telling        int     // boards that tell whether they are active
	Real           float64 // mean of those that are known
	Power, Limit   float64 // watts
	Mean           float64 // watts of a board
	Used, Memory   float64 // bytes
	Health         [canonical.NumHealth]int
	Gone           int
	Host           canonical.Host
}

// totalsOf adds up gpus, devices of nodes, whose readings are not too old to be shown.
func TotalsOf(nodes Nodes, gpus []*GPU, now time.Time) Totals {
	var t Totals
	var known, powered, shown int
	for i := 0; i < len(gpus); {
		var u Unit
		u, i = nextUnit(gpus, i)
		t.Boards++
		g := u.Lead()
		if how, _ := nodes.Freshness(g, now); g.Gone || how == Expired {
			if g.Gone {
				t.Gone++
			} else {
				t.Health[canonical.HealthUnknown]++
			}
			continue
		}
		shown++
		t.Health[g.Health]++
		switch active, told := u.active(); {
		case active:
			t.Active++
			fallthrough
		case told:
			t.Telling++
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
		t.Power = math.NaN() // no half of a sum
	}
	if powered == 0 {
		t.Limit = math.NaN()
	}
	if t.Memory == 0 {
		t.Used, t.Memory = math.NaN(), math.NaN()
	}
	t.Host = hostsOf(nodes, now)
	return t
}

// hostsOf adds up the machines that tell how they are doing.
func hostsOf(nodes Nodes, now time.Time) canonical.Host {
	busy, sum := 0.0, unknownHost()
	for _, n := range nodes {
		if how, _ := n.Freshness(now); how == Expired {
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

// plus adds b to a sum that is NaN while it is of nothing.
func plus(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	return a + b
}
