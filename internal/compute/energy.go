package compute

import (
	"math"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// The energy of a board since the previous reading is the rise of its counter or, if that is
// unknown, its power times the time. Its holders share it as they share its time. Instances share
// their board's first, held or not: by compute slices times real utilization, or by slices alone
// if that is unknown for any or 0 for all.

// greatestPower, in W, exceeds what a board's counter can show, even if it stood still for
// minutes and then rose at once: a faster rise is not believed.
const greatestPower = 1e6

// used returns the energy in microjoules that a board used within dt, 0 if it is unknown. before is
// its counter in the previous reading, and lapse the time since, of which dt was observed.
func used(row []float64, before int64, dt, lapse time.Duration) int64 {
	counter, power := microjoules(row[canonical.Energy]), row[canonical.Power]
	rise := counter - before
	switch {
	case before >= 0 && rise >= 0 && float64(rise) <= greatestPower*float64(lapse.Microseconds()):
		if lapse-dt > time.Microsecond {
			rise = int64(float64(rise) * (float64(dt) / float64(lapse)))
		}
		return rise
	case isPower(power):
		return int64(math.Round(power * float64(dt.Microseconds())))
	}
	return 0
}

// isPower reports whether a reading, in W, is the power of a board.
func isPower(v float64) bool { return v >= 0 && v <= greatestPower }

// microjoules converts a counter in joules; negative if it was not read or is out of range.
func microjoules(joules float64) int64 {
	if !(joules >= 0 && joules < math.MaxInt64/1e6) {
		return -1
	}
	return int64(math.Round(joules * 1e6))
}

// meter adds the energy of each board to its account, to those of its instances and to
// those of their holders.
func (j *Judge) meter(f *canonical.Frame, verdicts []canonical.Verdict, dt time.Duration) {
	for i, d := range j.memory.present {
		if d.IsInstance() {
			continue
		}
		row := f.Row(i)
		var energy int64
		if d.appeared < j.memory.readings {
			energy = used(row, d.energy, dt, j.memory.lapse)
		}
		d.energy = microjoules(row[canonical.Energy])
		d.account.Metered = d.account.Metered || d.energy >= 0 || isPower(row[canonical.Power])
		d.account.Microjoules += energy
		if len(d.instances) == 0 {
			d.share(energy)
		} else {
			d.distribute(verdicts, energy, j.memory.readings)
		}
	}
}

// share adds energy of a device to the accounts of its allocations.
func (d *device) share(energy int64) {
	c := d.cutter(energy, 0)
	for _, a := range d.allocations {
		a.account.Microjoules += c.cut(a.use.NVMLUtilization)
	}
}

// distribute adds the energy of a board to the accounts of the instances that were there
// in the previous reading, and of their holders.
func (d *device) distribute(verdicts []canonical.Verdict, energy int64, reading uint64) {
	var sizes, uses float64
	size := func(in *device) float64 {
		if in.appeared == reading {
			return 0
		}
		return slicesOf(in.Profile)
	}
	for _, in := range d.instances {
		sizes += size(in)
		uses += size(in) * verdicts[in.slot].RealUtilization
	}
	if sizes == 0 {
		return
	}
	c := cutter{amount: energy, total: sizes}
	active := uses > 0 // false for NaN: one is unknown
	if active {
		c.total = uses
	}
	for _, in := range d.instances {
		weight := size(in)
		if active {
			weight *= verdicts[in.slot].RealUtilization
		}
		part := c.cut(weight)
		in.account.Microjoules += part
		in.share(part)
	}
}

// slicesOf returns the number of compute slices of a profile such as 3g.40gb or 1g.10gb+me; 1 if
// unknown.
func slicesOf(profile string) float64 {
	for part := range strings.SplitSeq(profile, ".") {
		if len(part) == 2 && part[1] == 'g' && part[0] >= '1' && part[0] <= '9' {
			return float64(part[0] - '0')
		}
	}
	return 1
}
