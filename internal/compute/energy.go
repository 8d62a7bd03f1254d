package compute

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// The energy of a board since the previous reading is the rise of its counter or, if that is
// unknown, its power times the time. Its holders share the idle floor in equal parts (the least
// power at which the board was seen idle, times the time), and the rest by use, as they share its
// time. Instances share their board first, held or not: the floor by compute slices, the rest by
// slices times real utilization, or by slices alone if that is unknown for any or 0 for all.

// greatestPower, in W, exceeds what a board's counter can show, even if it stood still for
// minutes and then rose at once: a faster rise is not believed.
const greatestPower = 1e6

// meter is what is known about a board's energy.
type meter struct {
	counter int64         // as last read, in microjoules; negative if it was not
	still   time.Duration // how long it has stood still
	idle    float64       // the least power at which the board was seen idle, in W; NaN if never
}

func newMeter() meter { return meter{counter: -1, idle: math.NaN()} }

// read returns the energy in microjoules that a board used within dt, 0 if it is unknown, and the
// span that it covers, which is longer than dt if the counter stood still before. lapse is the
// time since the previous reading, of which dt was observed.
func (m *meter) read(row []float64, dt, lapse time.Duration) (energy int64, span time.Duration) {
	counter, power := microjoules(row[canonical.Energy]), row[canonical.Power]
	rise := counter - m.counter
	known := m.counter >= 0 && rise >= 0 && float64(rise) <= greatestPower*float64(lapse.Microseconds())
	span = m.still + dt
	m.counter, m.still = counter, 0
	switch {
	case !known && isPower(power):
		return int64(math.Round(power * float64(dt.Microseconds()))), dt
	case !known:
		return 0, dt
	case rise == 0:
		m.still = span
		return 0, dt
	case lapse-dt > time.Microsecond:
		rise = int64(float64(rise) * (float64(dt) / float64(lapse)))
	}
	return rise, span
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

// floor returns the part of the energy that the board would have used idle, and learns from
// readings in which it is idle.
func (m *meter) floor(energy int64, span time.Duration, power float64, idle bool) int64 {
	if !canonical.Given(power) {
		power = float64(energy) / float64(span.Microseconds())
	}
	if idle && power > 0 && !(power >= m.idle) {
		m.idle = power
	}
	if !canonical.Given(m.idle) {
		return 0
	}
	return int64(math.Round(min(float64(energy), m.idle*float64(span.Microseconds()))))
}

// meter adds the energy of each board to its account, to those of its instances and to
// those of their holders.
func (j *Judge) meter(f *canonical.Frame, verdicts []canonical.Verdict, dt time.Duration) {
	for i, d := range j.memory.present {
		if d.IsInstance() {
			continue
		}
		row := f.Row(i)
		power := row[canonical.Power]
		if d.appeared == j.memory.readings {
			d.meter.counter, d.meter.still = -1, 0
		}
		energy, span := d.meter.read(row, dt, j.memory.lapse)
		if d.appeared == j.memory.readings {
			energy = 0
		}
		d.account.Metered = d.account.Metered || d.meter.counter >= 0 || isPower(power)
		d.account.Microjoules += energy
		floor := d.meter.floor(energy, span, power, d.isIdle(verdicts))
		if len(d.instances) == 0 {
			d.share(floor, energy-floor)
		} else {
			d.distribute(verdicts, floor, energy-floor, j.memory.readings)
		}
	}
}

// isIdle reports whether a board, or each instance that it is cut into, is idle.
func (d *device) isIdle(verdicts []canonical.Verdict) bool {
	if len(d.instances) == 0 {
		return verdicts[d.slot].Class == canonical.Idle
	}
	return !slices.ContainsFunc(d.instances, func(in *device) bool { return verdicts[in.slot].Class != canonical.Idle })
}

// share adds the energy of a device to the accounts of its allocations: the floor in equal
// parts, the rest by use.
func (d *device) share(floor, rest int64) {
	equal, byUse := d.cutter(floor, 0), d.cutter(rest, 0)
	equal.total = 0
	for _, a := range d.allocations {
		a.account.Microjoules += equal.cut(a.use.NVMLUtilization) + byUse.cut(a.use.NVMLUtilization)
	}
}

// distribute adds the energy of a board to the accounts of the instances that were there
// in the previous reading, and of their holders.
func (d *device) distribute(verdicts []canonical.Verdict, floor, rest int64, reading uint64) {
	sized := !slices.ContainsFunc(d.instances, func(in *device) bool { return slicesOf(in.Profile) == 0 })
	size := func(in *device) float64 {
		switch {
		case in.appeared == reading:
			return 0
		case sized:
			return slicesOf(in.Profile)
		}
		return 1
	}
	bySize, byUse := cutter{amount: floor}, cutter{amount: rest}
	for _, in := range d.instances {
		bySize.total += size(in)
		byUse.total += size(in) * verdicts[in.slot].RealUtilization
	}
	if bySize.total == 0 {
		return
	}
	used := byUse.total > 0 // false for NaN: one is unknown
	if !used {
		byUse.total = bySize.total
	}
	for _, in := range d.instances {
		weight := size(in)
		ofFloor := bySize.cut(weight)
		if used {
			weight *= verdicts[in.slot].RealUtilization
		}
		ofRest := byUse.cut(weight)
		in.account.Microjoules += ofFloor + ofRest
		in.share(ofFloor, ofRest)
	}
}

// slicesOf returns the number of compute slices of a profile such as 3g.40gb or 1g.10gb+me; 0
// if unknown.
func slicesOf(profile string) float64 {
	for part := range strings.SplitSeq(profile, ".") {
		if len(part) == 2 && part[1] == 'g' && part[0] >= '1' && part[0] <= '9' {
			return float64(part[0] - '0')
		}
	}
	return 0
}
