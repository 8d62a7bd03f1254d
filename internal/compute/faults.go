package compute

import (
	"math"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Faults appends what must survive a restart of the program: the fatal XIDs, which of them were resolved, and
// the boards that are gone.
func (j *Judge) Faults(dst []canonical.Fault) []canonical.Fault {
	m := &j.memory
	for _, d := range m.present {
		dst = m.appendFaults(dst, d)
	}
	for _, left := range m.departed {
		dst = m.appendFaults(dst, left.item)
	}
	for _, d := range m.lost {
		dst = m.appendFaults(dst, d)
	}
	for _, d := range m.counted {
		dst = m.appendFaults(dst, d)
	}
	return dst
}

func (m *memory) appendFaults(dst []canonical.Fault, d *device) []canonical.Fault {
	if d.IsInstance() {
		return dst
	}
	board := canonical.Fault{Hostname: d.Hostname, GPU: d.GPU, UUID: d.UUID, PCIBusID: d.PCIBusID, Model: d.Model}
	for i := range d.xids.codes {
		x, f := &d.xids.codes[i], board
		f.Code, f.Action, f.Recovers, f.Decoded = x.code, x.latch.action, x.latch.recovers, x.decoded
		f.Last = d.xids.last == float64(x.code) || !canonical.Given(d.xids.last) && d.xids.known == x.code
		f.Count = x.last[canonical.WitnessTotal]
		switch {
		case !x.fatal.IsZero():
			if f.At = x.fatal; canonical.Given(x.energy) {
				f.Energy = x.energy
			}
		case !x.ended.IsZero():
			f.At, f.Resolved = x.ended, true
		default:
			continue
		}
		dst = append(dst, f)
	}
	if a := m.absences[d.Identity()]; a != nil && a.gone {
		f := board
		f.At = a.since
		dst = append(dst, f)
	}
	if m.doubted && !d.xids.doubted {
		f := board
		f.At, f.Resolved = d.xids.resolved, true
		dst = append(dst, f)
	}
	return dst
}

// Restore makes j, which has judged nothing yet, know the faults of an earlier run. If doubted is
// set, they could not be read: then no board is ok until it is reset or an operator resolves it.
func (j *Judge) Restore(faults []canonical.Fault, doubted bool) {
	m := &j.memory
	m.doubted = doubted
	for _, resolved := range []bool{false, true} { // a board with both kinds is among the lost
		for i := range faults {
			if faults[i].Resolved == resolved {
				j.restore(&faults[i])
			}
		}
	}
}

func (j *Judge) restore(f *canonical.Fault) {
	m, described := &j.memory, canonical.Device{Hostname: f.Hostname, GPU: f.GPU, UUID: f.UUID, PCIBusID: f.PCIBusID, Model: f.Model}
	d := m.known(described.Identity())
	if d == nil {
		d = newDevice()
		d.Device, d.xids.doubted = described, m.doubted
		if f.Resolved {
			m.counted = append(m.counted, d)
		} else {
			m.lost = append(m.lost, d)
		}
	}
	if f.Resolved {
		d.xids.resolved = later(d.xids.resolved, f.At)
	}
	if f.Code == 0 {
		if f.Resolved {
			d.xids.doubted = false
			return
		}
		if m.absences == nil {
			m.absences = map[canonical.Identity]*absence{}
		}
		m.absences[described.Identity()] = &absence{since: f.At, gone: true}
		return
	}
	x := j.find(d, f.Code, f.At)
	if x == nil {
		return
	}
	x.decoded, x.latch = f.Decoded, meaning{canonical.SeverityFatal, f.Action, f.Recovers, false}
	x.last[canonical.WitnessTotal] = f.Count
	if f.Last {
		d.xids.known = f.Code
	}
	if f.Resolved {
		x.ended = f.At
		return
	}
	if x.fatal.IsZero() { // two sources may have kept it
		d.xids.latched++
	}
	x.fatal, x.energy = later(x.fatal, f.At), math.NaN()
	if f.Energy > 0 { // it shows a reset since then
		x.energy = f.Energy
		if r := &d.restarts; f.At.After(r.read) {
			r.energy, r.read = f.Energy, f.At
		}
	}
}
