package expose

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// layout is the text that every exposition of some sources repeats until a device or allocation
// comes or goes. It is immutable and shared by all scrapes.
type layout struct {
	keys    []key // of the sources it was made for
	sources []sourceText
}

// sourceText holds the labels of the devices and allocations of a source.
type sourceText struct {
	rows [numSubjects]rows
	// info and fabric are the ends of the gpu_info and gpu_fabric_info series of the
	// devices in the reading.
	info, fabric texts
	// shared is how many devices in the reading get their series from another source.
	shared int
	// shown reports whether a device in the reading gets its series from this source.
	shown func(device int) bool
}

// addInfo adds the ends of d's series that are always 1; an end is empty if there is no series.
func (t *sourceText) addInfo(d *canonical.Device, shown bool) {
	if shown {
		t.info.bytes = appendInfo(t.info.bytes, d)
		t.fabric.bytes = appendFabric(t.fabric.bytes, d)
	} else {
		t.shared++
	}
	t.info.end()
	t.fabric.end()
}

// key identifies the state that the texts of a source depend on; all nil if the source could
// not be read. It keeps the old objects alive: a new one cannot get the address of an old one.
type key struct {
	topology *canonical.Topology
	roster   *canonical.Roster
	holders  *canonical.AllocationRoster
}

func keyOf(r *reading) key {
	if r.snapshot == nil {
		return key{}
	}
	return key{r.snapshot.Frame.Topology, r.snapshot.Ledger.Roster, r.snapshot.Ledger.AllocationRoster}
}

// sameDevices reports whether the devices of k are those of other.
func (k key) sameDevices(other key) bool {
	return k.topology == other.topology && k.roster == other.roster
}

// devices returns the devices that r adds to the reach before it.
func (k key) devices(r reach) []canonical.Device {
	switch {
	case r == inReading && k.topology != nil:
		return k.topology.Devices
	case r == remembered && k.roster != nil:
		return k.roster.Devices[k.roster.Present:]
	case r == missed && k.roster != nil:
		return k.roster.Missed
	}
	return nil
}

// fits reports whether l was made for the devices and allocations of readings. A nil
// layout fits nothing.
func (l *layout) fits(readings []reading) bool {
	if l == nil || len(l.keys) != len(readings) {
		return false
	}
	for i := range readings {
		if keyOf(&readings[i]) != l.keys[i] {
			return false
		}
	}
	return true
}

// newLayout renders the labels of the devices and allocations of readings. It reuses
// what it has in common with before, which may be nil: workloads come and go more
// often than devices.
func newLayout(readings []reading, before *layout) *layout {
	l := &layout{keys: make([]key, len(readings))}
	for i := range readings {
		l.keys[i] = keyOf(&readings[i])
	}
	kept := before != nil && slices.EqualFunc(l.keys, before.keys, key.sameDevices)
	if kept {
		l.sources = slices.Clone(before.sources)
	} else {
		l.sources = nameDevices(l.keys)
	}
	for i, k := range l.keys {
		if !kept || k.holders != before.keys[i].holders {
			text := &l.sources[i]
			text.rows[ofAllocations] = nameAllocations(k.holders, &text.rows[ofDevices], false)
			text.rows[ofHolders] = nameAllocations(k.holders, &text.rows[ofDevices], true)
		}
	}
	return l
}
