package expose

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// layout is the text that every exposition of some sources repeats until a device or allocation
// comes or goes. It is immutable.
type layout struct {
	keys    []key // of the sources it was made for
	sources []sourceText
}

// sourceText holds the labels of the devices and allocations of a source.
type sourceText struct {
	rows   [numSubjects]rows
	shared int                   // devices in the reading that get their series from another source
	shown  func(device int) bool // a device in the reading gets its series from this source
}

// key identifies the state that the texts of a source depend on; zero if the source could
// not be read. It keeps the old objects alive: a new one cannot get the address of an old one.
type key struct {
	topology *canonical.Topology
	roster   *canonical.Roster
	holders  *canonical.AllocationRoster
	host     bool // it has the load of its machine
}

func keyOf(r *outcome) key {
	if r.snapshot == nil {
		return key{}
	}
	return key{r.snapshot.Frame.Topology, r.snapshot.Ledger.Roster, r.snapshot.Ledger.AllocationRoster, r.snapshot.Host != nil}
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
func (l *layout) fits(readings []outcome) bool {
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

// newLayout renders the labels of the devices and allocations of readings.
func newLayout(readings []outcome) *layout {
	l := &layout{keys: make([]key, len(readings))}
	for i := range readings {
		l.keys[i] = keyOf(&readings[i])
	}
	l.sources = nameDevices(l.keys)
	hosts := map[string]bool{}
	for i, k := range l.keys {
		all := &l.sources[i].rows
		if k.host && k.topology != nil && !hosts[k.topology.Hostname] {
			hosts[k.topology.Hostname] = true
			all[ofHost] = nameHost(k.topology.Hostname)
		}
		all[ofAllocations] = nameAllocations(k.holders, &all[ofDevices], false)
		all[ofHolders] = nameAllocations(k.holders, &all[ofDevices], true)
	}
	return l
}
