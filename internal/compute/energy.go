package compute

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// The energy of a board since the previous reading is the rise of its counter or, if that is
// unknown, its power times the time. Its holders share it:
//
//   - The idle floor, in equal parts: the least power at which the board was seen idle,
//     times the time. It is 0 until the board has been seen idle.
//   - The rest by use, as they share its time.
//
// A board that is cut into instances is first shared among these, held or not: the floor by
// compute slices, the rest by slices times real utilization, or by slices alone if that is
// unknown for any instance or 0 for all. The energy of an unheld device is not charged.

// greatestPower, in W, exceeds what a board's counter can show, even if it stood still for
// minutes and then rose at once: a faster rise is not believed.
const greatestPower = 1e6

// stuckAfter is how long a counter may stand still before power is used instead. Exporters read
// the counter every half minute or less often.
const stuckAfter = 5 * time.Minute

// rounding, in microjoules, is the largest fall of a counter that has not been reset: see
// restarts.
const rounding = 1e6

// meter is what is known about a board's energy, in microjoules.
type meter struct {
	counter int64         // as last read; negative if its next rise is unknown
	ahead   int64         // counted by power since then
	still   time.Duration // how long it was observed to stand still
	idle    float64       // the least power at which the board was seen idle, in W; NaN if never
}

func newMeter() meter { return meter{counter: -1, idle: math.NaN()} }

// begin takes the counter of a board whose previous one is unknown, or of another run of it.
func (m *meter) begin(counter int64) { m.counter, m.ahead, m.still = counter, 0, 0 }

// works reports whether the counter or the power of a board is known.
func (m *meter) works(power float64) bool { return m.counter >= 0 || isPower(power) }

// isPower reports whether a reading, in W, is the power of a board.
func isPower(v float64) bool { return v >= 0 && v <= greatestPower }

// read returns the energy that a board used within dt, 0 if it is unknown, and the span that it
// covers, which is longer than dt if the counter stood still before. lapse is the time since the
// previous reading, of which dt, more than 0, was observed.
func (m *meter) read(row []float64, dt, lapse time.Duration) (energy int64, span time.Duration) {
	counter, power := microjoules(row[canonical.Energy]), row[canonical.Power]
	rise := counter - m.counter
	if counter > 0 && rise >= -rounding {
		rise, counter = max(rise, 0), max(counter, m.counter)
	}
	// A counter that is not read is negative too: it falls.
	if m.counter < 0 || rise < 0 || float64(rise) > greatestPower*float64(lapse.Microseconds()) {
		return m.readPower(power, counter, dt), dt
	}
	m.counter = counter
	if rise == 0 {
		m.still += dt
		if m.still > stuckAfter && isPower(power) {
			energy = energyOf(power, dt)
			m.ahead += energy
		}
		return energy, dt
	}
	rise, m.ahead = max(rise-m.ahead, 0), max(m.ahead-rise, 0)
	if lapse-dt > time.Microsecond {
		rise = min(rise, int64(float64(rise)*(float64(dt)/float64(lapse))))
	}
	span, m.still = m.still+dt, 0
	return rise, span
}

// readPower returns the energy for a counter that is negative or says nothing about dt. If the
// counter returns soon, its rise includes what power missed.
func (m *meter) readPower(power float64, counter int64, dt time.Duration) (energy int64) {
	known := isPower(power)
	if known {
		energy = energyOf(power, dt)
	}
	if counter >= 0 || !known {
		m.begin(counter)
	} else {
		m.ahead += energy
	}
	return energy
}

func energyOf(power float64, dt time.Duration) int64 {
	return int64(math.Round(power * float64(dt.Microseconds())))
}

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
	if idle {
		if !canonical.Given(power) {
			power = float64(energy) / float64(span.Microseconds())
		}
		if power > 0 && !(power >= m.idle) {
			m.idle = power
		}
	}
	if !canonical.Given(m.idle) {
		return 0
	}
	return int64(math.Round(min(float64(energy), m.idle*float64(span.Microseconds()))))
}

// meter adds the energy of each board to its account, to those of its instances and to
// those of their holders.
func (j *Judge) meter(f *canonical.Frame, verdicts []canonical.Verdict, dt time.Duration) {
	m := &j.memory
	for i, d := range m.present {
		if d.IsInstance() {
			continue
		}
		var energy int64
		var span time.Duration
		row := f.Row(i)
		switch {
		case d.appeared == m.readings:
			d.meter.begin(microjoules(row[canonical.Energy]))
		case dt != 0:
			energy, span = d.meter.read(row, dt, m.lapse)
		}
		d.account.Metered = d.account.Metered || d.meter.works(row[canonical.Power])
		d.account.Microjoules += energy
		floor := d.meter.floor(energy, span, row[canonical.Power], d.isIdle(verdicts))
		if len(d.instances) == 0 {
			d.share(floor, energy-floor)
		} else {
			d.distribute(verdicts, floor, energy-floor, m.readings)
		}
	}
}

// isIdle reports whether a board, or each instance that it is cut into, is idle.
func (d *device) isIdle(verdicts []canonical.Verdict) bool {
	for _, in := range d.instances {
		if verdicts[in.slot].Class != canonical.Idle {
			return false
		}
	}
	return len(d.instances) > 0 || verdicts[d.slot].Class == canonical.Idle
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
	sized := !slices.ContainsFunc(d.instances, func(in *device) bool { return in.slices == 0 })
	size := func(in *device) float64 {
		switch {
		case in.appeared == reading:
			return 0
		case !sized:
			return 1
		}
		return in.slices
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

// assignInstances gives the boards that are present their instances.
func (m *memory) assignInstances() {
	for _, d := range m.present {
		d.instances = nil
	}
	for _, d := range m.present {
		if d.board = m.present[d.Board]; d.IsInstance() {
			d.slices = slicesOf(d.Profile)
			d.board.instances = append(d.board.instances, d)
		}
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

// isMetered reports whether the energy of d's holders is known.
func (d *device) isMetered() bool {
	return d.board.account.Metered && len(d.instances) == 0
}

// born marks the accounts of the allocations whose energy is known from now on, so that
// it begins at 0, and gives new allocations the class of their device.
func (l *allocations) born(verdicts []canonical.Verdict) {
	for _, a := range l.present {
		a.account.Metered = a.account.Metered || a.device.isMetered()
		if a.account.Births.Born == 0 {
			a.account.Births.Born = 1 << verdicts[a.device.slot].Class
		}
	}
}
