package compute

import (
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Account adds what f stands for to the accounts and fills dst with all of them. It must
// be called once after each Judge, with the same frame and its verdicts. dt is the time
// that the reading stands for: whole microseconds, at least 0, without the unobserved part
// of a gap.
//
// The verdicts of f fill dt; the allocations of the previous reading are charged for it,
// in shares of what f says that they use, else in equal ones. A device that was not in the previous reading is charged nothing:
// nobody read over the time that it was not there.
//
// Of the Judge's own memory dst holds the Roster and the AllocationRoster alone, which are
// shared and never change; a change makes new ones. Account allocates nothing while there
// is none, if dst has the memory of an earlier call.
func (j *Judge) Account(dst *canonical.Ledger, f *canonical.Frame, verdicts []canonical.Verdict, dt time.Duration) {
	m := &j.memory
	j.allocations.note(f)
	for i, d := range m.present {
		if d.appeared < m.readings {
			d.charge(&verdicts[i], dt)
		}
	}
	dst.Roster = m.list()
	dst.AllocationRoster = j.allocations.update(f.AllocationSet, m)
	j.allocations.note(f)
	dst.Devices = slices.Grow(dst.Devices[:0], len(m.present)+len(m.departed))
	for _, d := range m.present {
		dst.Devices = append(dst.Devices, d.account)
	}
	for _, left := range m.departed {
		dst.Devices = append(dst.Devices, left.item.account)
	}
	dst.XIDs = m.appendXIDs(dst.XIDs[:0])
	dst.Allocations = j.allocations.appendAccounts(dst.Allocations[:0])
}

// charge adds dt to the accounts of the device and of its allocations. An implied board
// has class unknown and no score, and so has its time.
func (d *device) charge(v *canonical.Verdict, dt time.Duration) {
	add(&d.account, v, dt)
	if !d.IsInstance() {
		d.account.Health[v.Health] += dt
	}
	if total := d.used(); total > 0 {
		d.shareByUse(v, dt, total)
	} else {
		d.share(v, dt)
	}
}

// used is the sum of what the allocations of d use of it; 0 where that is not known of all
// of them, or the same of each.
func (d *device) used() (total float64) {
	if len(d.allocations) != d.holders {
		return 0
	}
	differ := false
	for _, a := range d.allocations {
		if !(a.use.NVMLUtilization >= 0) {
			return 0
		}
		total += a.use.NVMLUtilization
		differ = differ || a.use.NVMLUtilization != d.allocations[0].use.NVMLUtilization
	}
	if !differ {
		return 0
	}
	return total
}

// shareByUse adds to the account of each allocation its share of dt, in whole
// microseconds that sum to dt.
func (d *device) shareByUse(v *canonical.Verdict, dt time.Duration, total float64) {
	var given time.Duration
	sum := 0.0
	for _, a := range d.allocations {
		sum += a.use.NVMLUtilization
		end := dt
		if sum < total {
			end = min(dt, time.Duration(math.Round(sum/total*float64(dt/time.Microsecond)))*time.Microsecond)
		}
		add(&a.account, v, end-given)
		given = end
	}
}

// share adds dt/n in whole microseconds to the account of each of n allocations. The odd
// microseconds go round, so that the shares sum to dt and do not depend on how often the
// device was read.
func (d *device) share(v *canonical.Verdict, dt time.Duration) {
	n := d.holders
	if n == 0 {
		return
	}
	each := (dt / time.Duration(n)).Truncate(time.Microsecond)
	odd := int((dt - each*time.Duration(n)) / time.Microsecond)
	first := d.remainder % n
	for k, a := range d.allocations {
		s := each
		if (k-first+n)%n < odd {
			s += time.Microsecond
		}
		add(&a.account, v, s)
	}
	d.remainder = (first + odd) % n
}

// add adds dt to an account of activity. The utilized part never exceeds it: the score is
// at most 1, and durations below a hundred days are exact as floats.
func add(a *canonical.Account, v *canonical.Verdict, dt time.Duration) {
	a.Observed += dt
	a.Classes[v.Class] += dt
	if canonical.Given(v.RealUtilization) {
		a.Known += dt
		a.Utilized += time.Duration(math.Round(v.RealUtilization * float64(dt)))
	}
}
