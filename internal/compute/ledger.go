package compute

import (
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Account adds the time that f covers to the accounts and fills dst with all of them. It must be
// called once after each Judge, with the same frame and its verdicts. dt is that time: whole
// microseconds, at least 0, without the unobserved part of a gap.
//
// dt counts for the verdicts of f. The allocations of the previous reading are charged for dt
// and its energy, in proportion to their use in f, else equally. A device that was not in
// the previous reading is charged nothing: the time without it was not observed.
//
// Of the Judge's own memory dst shares only the Roster and the AllocationRoster, which never
// change: a change makes new ones. Account allocates nothing while nothing changes, if dst has
// the memory of an earlier call.
func (j *Judge) Account(dst *canonical.Ledger, f *canonical.Frame, verdicts []canonical.Verdict, dt time.Duration) {
	m, youth := &j.memory, j.Youth()
	j.allocations.memory = youth + max(j.interval, time.Minute)
	j.allocations.note(f)
	for i, d := range m.present {
		if d.appeared < m.readings {
			d.charge(&verdicts[i], dt, f.At)
		}
	}
	j.meter(f, verdicts, dt)
	dst.Roster = m.list()
	dst.Absences = j.appendAbsences(dst.Absences[:0], dst.Roster, f)
	known := j.allocations.knows(f.AllocationSet, m)
	dst.AllocationRoster = j.allocations.update(f.AllocationSet, m)
	if !known {
		j.allocations.note(f)
	}
	j.allocations.born(verdicts)
	dst.Devices = slices.Grow(dst.Devices[:0], len(m.present)+len(m.departed))
	for i, d := range m.present {
		if births := &d.account.Births; births.Born == 0 {
			births.Born = 1<<verdicts[i].Class | 1<<(canonical.FirstState+uint(verdicts[i].Health))
		}
		dst.Devices = append(dst.Devices, d.grown(f.At, youth))
	}
	for _, left := range m.departed {
		dst.Devices = append(dst.Devices, left.item.grown(f.At, youth))
	}
	dst.XIDs = m.appendXIDs(dst.XIDs[:0], youth)
	dst.Allocations = j.allocations.appendAccounts(dst.Allocations[:0], f.At, youth)
}

// charge adds dt to the accounts of the device and of its allocations. The time of an implied
// board is in class unknown, without a score.
func (d *device) charge(v *canonical.Verdict, dt time.Duration, at time.Time) {
	d.add(v, 0, dt, at)
	if !d.IsInstance() && dt > 0 {
		d.account.Health[v.Health] += dt
		d.account.Births.Enter(d.began[:], canonical.FirstState+uint(v.Health), at)
	}
	c := d.cutter(int64(dt/time.Microsecond), d.remainder)
	for _, a := range d.allocations {
		from, to := c.next(a.use.NVMLUtilization)
		a.add(v, time.Duration(from)*time.Microsecond, time.Duration(to)*time.Microsecond, at)
	}
	d.remainder = c.following()
}

// tally is the account of a device or an allocation, and its memory.
type tally struct {
	account canonical.Account
	began   [canonical.NumCounters]canonical.Birth // of the counters in account.Births
}

// grown returns the account, with the counters that are still young at an instant.
func (t *tally) grown(at time.Time, youth time.Duration) canonical.Account {
	t.account.Births.Grow(t.began[:], at, youth)
	return t.account
}

// add adds the part of a span between two points to an account of activity. Its utilized time is
// that until the second point less that until the first, so that parts sum to the whole. It never
// exceeds the part: the score is at most 1, and durations below a hundred days are exact as
// floats.
func (t *tally) add(v *canonical.Verdict, from, to time.Duration, at time.Time) {
	if to == from {
		return
	}
	a := &t.account
	a.Births.Enter(t.began[:], uint(v.Class), at)
	a.Observed += to - from
	a.Classes[v.Class] += to - from
	if canonical.Given(v.RealUtilization) {
		a.Known += to - from
		a.Utilized += utilized(v, to) - utilized(v, from)
	}
}

func utilized(v *canonical.Verdict, t time.Duration) time.Duration {
	return time.Duration(math.Round(v.RealUtilization * float64(t)))
}
