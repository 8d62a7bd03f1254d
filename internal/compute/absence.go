package compute

import (
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// A board that is missing is gone only if that lasts: one page without it may be a collection of
// blanks, a reset in an epilog or a change of MIG instances.
const (
	goneReadings = 3
	goneSpan     = time.Minute
	// goneMemory is how long a board of another machine, whose reboots are not seen, stays gone.
	goneMemory = 24 * time.Hour
	// lostMemory is how long it is remembered at all: by then it was replaced.
	lostMemory = 7 * 24 * time.Hour
	// mostLost is how many boards that left long ago are remembered for their verdicts, or as many as the source ever had at once.
	mostLost = 128
)

// absence is the state of a board that is missing.
type absence struct {
	since   time.Time // of the first reading without it
	without int       // readings without it that have others of its node
	named   int       // readings in a row in which the source itself calls it lost
	gone    bool
	// dismissed is set if an operator said that it is dealt with.
	dismissed bool
	replaced  bool   // another board is in its place
	from      uint64 // the first reading in which it was missing
	seen      uint64 // the latest one
}

// observeAbsences takes in which boards a reading lacks. A reading without any board of a node,
// such as that of an exporter that starts, says nothing about them; nor does one that lists only
// boards that are held.
func (m *memory) observeAbsences(f *canonical.Frame) {
	m.local = f.BootID != ""
	if f.BootID == "" {
		m.dropReplaced(f.At)
	}
	r := m.list()
	for i := range r.Devices[r.Present:] {
		m.miss(f, &r.Devices[r.Present+i])
	}
	for i := range r.Missed {
		m.miss(f, &r.Missed[i])
	}
	for id, a := range m.absences {
		if a.seen != m.readings {
			delete(m.absences, id)
		}
	}
}

// dropReplaced forgets the lost boards of other machines that left too long ago. Those of ours end with a
// reboot.
func (m *memory) dropReplaced(at time.Time) {
	kept := len(m.lost)
	m.lost = slices.DeleteFunc(m.lost, func(d *device) bool {
		a := m.absences[d.Identity()]
		return a != nil && at.Sub(a.since) > lostMemory
	})
	if len(m.lost) < kept {
		m.roster = nil
	}
}

// miss takes in that a reading lacks a device.
func (m *memory) miss(f *canonical.Frame, d *canonical.Device) {
	if d.IsInstance() {
		return
	}
	a := m.absences[d.Identity()]
	if a == nil {
		if m.absences == nil {
			m.absences = map[canonical.Identity]*absence{}
		}
		a = &absence{since: f.At, from: m.readings}
		m.absences[d.Identity()] = a
	}
	a.seen, a.since = m.readings, earlier(a.since, f.At)
	if k := m.devices[d.Identity()]; k != nil && k.moved {
		a.since = f.At // nothing was said of it since
	}
	if !m.list().HeldOnly && slices.ContainsFunc(m.present, func(o *device) bool { return o.Hostname == d.Hostname }) {
		a.without++
	}
	if isCalledLost(f.Topology, d) {
		a.named++
	} else {
		a.named = 0
	}
	lasts := a.without >= goneReadings && f.At.Sub(a.since) >= goneSpan
	if a.replaced = m.isReplaced(d, a); a.replaced && lasts {
		m.replace(d.UUID)
		return
	}
	a.gone = a.gone || !a.dismissed && (a.named >= goneReadings || lasts)
}

// isReplaced reports whether a board that is missing is no longer in its node: a board that was not known
// before is at its PCI address.
func (m *memory) isReplaced(d *canonical.Device, a *absence) bool {
	return d.UUID != "" && slices.ContainsFunc(m.present, func(o *device) bool {
		if o.born < a.from || o.UUID == "" || o.Hostname != d.Hostname {
			return false
		}
		at := canonical.PCIAddress(o.PCIBusID)
		return at != "" && at == canonical.PCIAddress(d.PCIBusID)
	})
}

// replace forgets that a board and its instances left, but not what was fatal on them, should they return.
func (m *memory) replace(uuid string) {
	is := func(d *device) bool { return d.UUID == uuid }
	for _, left := range m.departed {
		if d := left.item; is(d) {
			d.forgotten = true
			delete(m.devices, d.Identity())
			m.lost = append(m.lost, d)
		}
	}
	m.departed = m.departed.without(is)
	for _, d := range m.lost {
		if is(d) && !d.IsInstance() {
			m.counted = append(m.counted, d)
		}
	}
	m.lost, m.roster = slices.DeleteFunc(m.lost, is), nil
}

// isCalledLost reports whether the source itself calls a board lost.
func isCalledLost(t *canonical.Topology, board *canonical.Device) bool {
	if t == nil {
		return false
	}
	i := slices.IndexFunc(t.Absent, func(n canonical.Device) bool { return isBoard(board, &n) })
	return i >= 0 && i < len(t.Lost) && t.Lost[i]
}

// isBoard reports whether a description, which may lack the uuid, is that of a board.
func isBoard(k, d *canonical.Device) bool {
	return !k.IsInstance() && (k.Identity() == d.Identity() || d.UUID == "" && k.Hostname == d.Hostname && k.GPU == d.GPU)
}

// lose keeps a board that is forgotten if its verdict must not be, and else what was counted on it: its
// counts may go on when it returns.
func (m *memory) lose(of *device) {
	a := m.absences[of.Identity()]
	d := &device{Device: of.Device, forgotten: true, boardState: boardState{xids: of.xids, restarts: of.restarts}} // of some 6 KB, what matters
	if of.last != nil {
		d.last = &allocation{Allocation: of.last.Allocation}
	}
	switch {
	case d.IsInstance():
	case d.xids.latched > 0 || a != nil && a.gone:
		if len(m.lost) < max(mostLost, m.peak) {
			m.lost = append(m.lost, d)
		}
	case len(d.xids.codes) > 0:
		m.counted = append(m.counted, d)
		m.counted = slices.Delete(m.counted, 0, max(0, len(m.counted)-max(mostLost, m.peak)))
	}
}

// recover gives a board that returns what is known of its verdict.
func (m *memory) recover(d *device, id canonical.Identity) {
	for _, list := range []*[]*device{&m.lost, &m.counted} {
		i := slices.IndexFunc(*list, func(l *device) bool { return l.Identity() == id })
		if i >= 0 {
			d.xids, d.restarts = (*list)[i].xids, (*list)[i].restarts
			*list = slices.Delete(*list, i, i+1)
			return
		}
	}
	d.xids.doubted = m.doubted && !d.IsInstance()
}

// dismiss ends on an operator's request that a board is gone, and reports whether it was.
func (m *memory) dismiss(id canonical.Identity) (gone bool) {
	if a := m.absences[id]; a != nil {
		gone, a.gone, a.dismissed = a.gone, false, true
	}
	i := slices.IndexFunc(m.lost, func(d *device) bool { return d.Identity() == id })
	if i < 0 {
		return gone
	}
	m.counted = append(m.counted, m.lost[i])
	m.lost, m.roster = slices.Delete(m.lost, i, i+1), nil
	return true
}

// known returns the state of a board that is present, remembered or lost, or on which codes were counted; nil if
// there is none.
func (m *memory) known(id canonical.Identity) *device {
	if d := m.devices[id]; d != nil {
		return d
	}
	for _, list := range [][]*device{m.lost, m.counted} {
		if i := slices.IndexFunc(list, func(d *device) bool { return d.Identity() == id }); i >= 0 {
			return list[i]
		}
	}
	return nil
}

// appendAbsences appends the verdicts of the boards of r that are not in the reading.
func (j *Judge) appendAbsences(dst []canonical.Absence, r *canonical.Roster, f *canonical.Frame) []canonical.Absence {
	for i := range r.Devices[r.Present:] {
		dst = append(dst, j.absence(&r.Devices[r.Present+i], f))
	}
	for i := range r.Missed {
		dst = append(dst, j.absence(&r.Missed[i], f))
	}
	return dst
}

// absence returns the verdict of a board that is not in the reading. Nothing is known of it unless
// it is gone or has a fatal XID; a board of another machine is gone for goneMemory.
func (j *Judge) absence(missing *canonical.Device, f *canonical.Frame) canonical.Absence {
	v := canonical.Absence{State: canonical.HealthUnknown}
	a := j.memory.absences[missing.Identity()]
	if missing.IsInstance() || a != nil && a.replaced {
		return v
	}
	if a != nil && a.gone && (f.BootID != "" || f.At.Sub(a.since) <= goneMemory) {
		v.State, v.Gone, v.Action = canonical.HealthCrit, true, canonical.ActionIfGone
	}
	d := j.memory.known(missing.Identity())
	if d == nil {
		return v
	}
	var last time.Time
	for i := range d.xids.codes {
		x := &d.xids.codes[i]
		if at := later(x.rose, x.fatal); at.After(last) {
			last, v.XID = at, x.code
		}
		if !x.fatal.IsZero() && f.At.Sub(x.fatal) <= j.evidence.hold {
			v.State, v.Action = canonical.HealthCrit, max(v.Action, x.latch.action)
		}
	}
	if d.last != nil {
		v.Holder = &d.last.Allocation
	}
	return v
}
