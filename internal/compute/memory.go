package compute

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// DeviceMemory is how long a device is remembered after it went, the time of the
// first reading without it. When it comes back later than that, it is a new one.
const DeviceMemory = time.Hour

// memory is what is remembered of the devices of one source from reading to
// reading. It has no clock: the time is that of the readings.
type memory struct {
	// expected is how many boards there should be. Those that went are forgotten
	// early where else there were more than most devices.
	expected, most int

	at       time.Time           // of the latest reading
	readings uint64              // how many there were
	topology *canonical.Topology // of the latest
	devices  map[canonical.Identity]*device
	present  []*device // in the order of the topology
	gone     past[*device]
	roster   *canonical.Roster // nil after a change
}

// device is what is remembered of one device.
type device struct {
	canonical.Device         // as it was last described
	slot             int     // its index among the present, or in the roster
	came             uint64  // which reading it came with, or came back with
	forgotten        bool    // no longer in the memory
	warning          float64 // temperature from which it is hot

	account canonical.Account

	// Of boards.
	counters [len(rising)]float64               // last reading of each, NaN if none
	xid      float64                            // last code that was read, 0 if none was; NaN before the first reading
	news     [canonical.NumConditions]time.Time // when what a condition tells of last happened, zero if never
	stall    streak

	// Who held the device in the latest reading.
	holders int           // how many there are
	held    []*allocation // the first of them
	turn    int           // the holder that the next odd microsecond goes to
}

func newDevice() *device {
	d := &device{xid: math.NaN()}
	for i := range d.counters {
		d.counters[i] = math.NaN()
	}
	return d
}

// isIn tells whether d is in a list in which its slot is its index.
func (d *device) isIn(list []*device) bool {
	return d.slot < len(list) && list[d.slot] == d
}

// advance makes f the latest reading. It allocates only where the topology is not
// that of the reading before.
func (m *memory) advance(f *canonical.Frame, thresholds *Thresholds) {
	if f.At.Before(m.at) {
		m.rewind(f.At)
	}
	m.at = f.At
	m.readings++
	m.forget()
	if f.Topology != m.topology {
		m.settle(f.Topology, thresholds)
		m.forget()
	}
}

// forget drops the devices that went too long ago or are too many.
func (m *memory) forget() {
	room := math.MaxInt
	if m.most > 0 {
		room = m.most - len(m.present)
	}
	n := m.gone.due(m.at, DeviceMemory, room)
	if n == 0 {
		return
	}
	for _, g := range m.gone[:n] {
		g.what.forgotten = true
		delete(m.devices, g.what.Identity())
	}
	m.gone = slices.Delete(m.gone, 0, n)
	m.roster = nil
}

// settle finds or makes the memory of every device of t.
func (m *memory) settle(t *canonical.Topology, thresholds *Thresholds) {
	if m.devices == nil {
		m.devices = map[canonical.Identity]*device{}
	}
	var devices []canonical.Device
	if t != nil {
		devices = t.Devices
	}
	before := m.present
	m.topology, m.roster = t, nil
	m.present = make([]*device, len(devices))
	for i := range devices {
		key := devices[i].Identity()
		d := m.devices[key]
		if d == nil {
			d = newDevice()
			m.devices[key] = d
		}
		if !d.isIn(before) {
			d.came, d.stall = m.readings, streak{}
		}
		d.Device, d.warning = devices[i], thresholds.warning(devices[i].Model)
		d.account.Read = d.account.Read || !d.Implied
		m.present[i] = d
	}
	for i, d := range m.present {
		d.slot = i
	}
	m.gone = m.gone.without(func(d *device) bool { return d.isIn(m.present) })
	for _, d := range before {
		if !d.isIn(m.present) {
			d.holders, d.held = 0, nil
			m.gone = append(m.gone, departure[*device]{d, m.at})
		}
	}
}

// rewind lets nothing have happened later than at, to which the clock was set
// back: what is held for some time is held no longer than from now.
func (m *memory) rewind(at time.Time) {
	m.gone.rewind(at)
	for _, d := range m.devices {
		d.stall.since = earlier(d.stall.since, at)
		for i := range d.news {
			d.news[i] = earlier(d.news[i], at)
		}
	}
}

// enrol returns the list of the devices that are present or remembered. It is
// made anew only after a change.
func (m *memory) enrol() *canonical.Roster {
	if m.roster != nil {
		return m.roster
	}
	r := &canonical.Roster{Present: len(m.present)}
	r.Devices = make([]canonical.Device, 0, len(m.present)+len(m.gone))
	for _, d := range m.present {
		r.Devices = append(r.Devices, d.Device)
	}
	for _, g := range m.gone {
		g.what.slot = len(r.Devices)
		r.Devices = append(r.Devices, g.what.Device)
	}
	hostname := ""
	if m.topology != nil {
		hostname = m.topology.Hostname
	}
	r.Missed = missed(r.Devices, m.expected, hostname)
	m.roster = r
	return r
}

// missed returns a board for each that the known devices lack to those expected,
// with the lowest indices that are free.
func missed(known []canonical.Device, expected int, hostname string) (boards []canonical.Device) {
	taken := map[string]bool{}
	for i := range known {
		if !known[i].IsInstance() {
			taken[known[i].GPU] = true
			expected--
		}
	}
	for i := 0; len(boards) < expected; i++ {
		if gpu := strconv.Itoa(i); !taken[gpu] {
			boards = append(boards, canonical.Device{Hostname: hostname, GPU: gpu})
		}
	}
	return boards
}
