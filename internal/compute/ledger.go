package compute

import (
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Account adds to the accounts what f stands for and fills dst with all of them.
// It must be called once after each Judge, with the same frame and the verdicts
// that it gave. dt is the time that the reading stands for: whole microseconds, at
// least 0, the unobserved part of a gap left out.
//
// The verdicts of f fill dt; the holders that the earlier reading told of own it,
// in equal shares. A device that was not in the earlier reading is charged
// nothing: nobody read over the time that it was not there.
//
// dst keeps nothing of the Judge but the Roster and the AllocationRoster, which are shared
// and stay the same until they change. It allocates nothing while they do, if dst
// has the memory of an earlier call.
func (j *Judge) Account(dst *canonical.Ledger, f *canonical.Frame, verdicts []canonical.Verdict, dt time.Duration) {
	m := &j.memory
	for i, d := range m.present {
		if d.came < m.readings {
			d.spend(&verdicts[i], dt)
		}
	}
	dst.Roster = m.enrol()
	dst.AllocationRoster = j.tenants.update(f.AllocationSet, m)
	dst.Devices = slices.Grow(dst.Devices[:0], len(m.present)+len(m.gone))
	for _, d := range m.present {
		dst.Devices = append(dst.Devices, d.account)
	}
	for _, g := range m.gone {
		dst.Devices = append(dst.Devices, g.what.account)
	}
	dst.Allocations = j.tenants.appendAccounts(dst.Allocations[:0])
}

// spend charges the device, and those who hold it, with dt. The verdict of an
// implied board is class unknown and no score, and so is its time.
func (d *device) spend(v *canonical.Verdict, dt time.Duration) {
	charge(&d.account, v, dt)
	if !d.IsInstance() {
		d.account.Health[v.Health] += dt
	}
	d.share(v, dt)
}

// share charges each of n holders with dt/n in whole microseconds. The odd
// microseconds go round, so that the shares sum to dt and what a holder got does
// not depend on how often the device was read.
func (d *device) share(v *canonical.Verdict, dt time.Duration) {
	n := d.holders
	if n == 0 {
		return
	}
	each := (dt / time.Duration(n)).Truncate(time.Microsecond)
	odd := int((dt - each*time.Duration(n)) / time.Microsecond)
	turn := d.turn % n
	for k, a := range d.held {
		s := each
		if (k-turn+n)%n < odd {
			s += time.Microsecond
		}
		charge(&a.account, v, s)
	}
	d.turn = (turn + odd) % n
}

// charge adds dt to an account of activity. What is utilized of it never exceeds
// it: the score is at most 1, and durations below a hundred days are exact as
// floats.
func charge(a *canonical.Account, v *canonical.Verdict, dt time.Duration) {
	a.Observed += dt
	a.Classes[v.Class] += dt
	if canonical.Given(v.RealUtilization) {
		a.Known += dt
		a.Utilized += time.Duration(math.Round(v.RealUtilization * float64(dt)))
	}
}
