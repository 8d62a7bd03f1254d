package tui

import (
	"math"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// totals are what all shown devices do together. What no device tells is NaN; a sum
// of which a part is not known is NaN too.
type totals struct {
	boards, active int
	telling        int     // boards that tell whether they are active
	real           float64 // mean of those that are known
	power, limit   float64 // watts
	mean           float64 // watts of a board
	used, memory   float64 // bytes
	health         [canonical.NumHealth]int
	gone           int
	host           Host
}

// totalsOf adds up the devices of s whose readings are not too old to be shown.
func totalsOf(s *State) totals {
	var t totals
	var known, powered, shown int
	for i := 0; i < len(s.GPUs); {
		var u unit
		u, i = nextUnit(s.GPUs, i)
		t.boards++
		g := u.lead()
		if how, _ := s.AgeOf(g); g.Gone || how == Expired {
			if g.Gone {
				t.gone++
			} else {
				t.health[canonical.HealthUnknown]++
			}
			continue
		}
		shown++
		t.health[g.Health]++
		switch active, told := u.active(); {
		case active:
			t.active++
			fallthrough
		case told:
			t.telling++
		}
		if v := u.utilization(); canonical.Given(v) {
			t.real += v
			known++
		}
		if v := g.Values[canonical.Power]; canonical.Given(v) {
			t.power += v
			powered++
		}
		used, memory := u.memory()
		t.limit, t.used, t.memory = t.limit+g.Values[canonical.PowerLimit], t.used+used, t.memory+memory
	}
	t.real /= float64(known)
	t.mean = t.power / float64(powered)
	if powered < shown || shown == 0 {
		t.power = math.NaN() // no half of a sum
	}
	if powered == 0 {
		t.limit = math.NaN()
	}
	if t.memory == 0 {
		t.used, t.memory = math.NaN(), math.NaN()
	}
	t.host = hostsOf(s)
	return t
}

// hostsOf adds up the machines that tell how they are doing.
func hostsOf(s *State) Host {
	nan, busy := math.NaN(), 0.0
	sum := Host{nan, nan, nan, nan}
	for _, n := range s.Nodes {
		if how, _ := n.Age(s.Now); how == Expired {
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
