package compute

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// deviceMemory is how long a device is remembered after the first reading without it. A device
// that returns later is a new one.
const deviceMemory = time.Hour

// mostDeparted is how many devices that left are remembered, or twice as many as the source ever had at once: more come and go within an
// hour only from a source that makes them up. It is 4 times that for allocations.
const mostDeparted = 256

// memory is the state of the devices of one source from reading to reading. It has no
// clock: its time is that of the readings.
type memory struct {
	expected int // boards that the node should have
	limit    int // of the devices, including those that left; 0 means none

	at       time.Time           // of the latest reading
	lapse    time.Duration       // from the previous reading until then
	readings uint64              // so far
	topology *canonical.Topology // of the latest reading
	devices  map[canonical.Identity]*device
	present  []*device // in the order of the topology
	peak     int       // the most that were present at once
	departed departed[*device]
	lost     []*device                       // boards that left longer ago, or before the program began, and may be gone
	counted  []*device                       // other boards that left longer ago, on which codes were counted
	absences map[canonical.Identity]*absence // of all boards that are missing
	switches departed[struct{}]              // when all boards were replaced by others at once, in deviceMemory
	swapped  bool                            // a board left and came back with another holder while all were held
	local    bool                            // the source reads this machine, and so all of its boards
	doubted  bool                            // the faults of an earlier run could not be read
	roster   *canonical.Roster               // nil after a change
}

// device is the state of one device.
type device struct {
	canonical.Device         // as it was last described
	slot             int     // its index among the present, or in the roster
	born             uint64  // the reading in which it first appeared
	appeared         uint64  // the reading in which it last appeared or reappeared
	forgotten        bool    // no longer in the memory
	moved            bool    // it left together with all others, when others came: the source reads another node
	warning          float64 // temperature in °C from which it is hot

	tally
	board *device // that it is part of; itself if it is a board
	boardState
	tenancy
}

// boardState is what only boards have.
type boardState struct {
	counters  []counting             // that conditions follow, in their order
	counted   canonical.ConditionSet // those with a counter in the latest reading
	rises     [canonical.NumConditions]rises
	narrow    time.Time // since when the PCIe link lacks lanes, zero if it does not
	unmanaged time.Time // since when the fabric manager has not set up the board, zero if it has
	managed   bool      // it had
	streaks   [canonical.NumConditions]streak
	restarts  restarts
	links     links
	instances []*device // that it is cut into
	cut       bool      // as of the previous reading
	xids      xids
	raised    canonical.ConditionSet // those that Events last reported as raised
	energy    int64                  // the counter in the previous reading, in microjoules; negative if it was not read
}

// tenancy is the allocations of a device in the latest reading.
type tenancy struct {
	holders     int           // how many there are, including those beyond the limit
	allocations []*allocation // those within the limit
	last        *allocation   // that it had when it last left, nil for none
	measured    bool          // the use of each of them is known
	used        float64       // the sum of these uses, 0 if not all are known
	remainder   int           // index of the one that gets the next odd microsecond
}

func newDevice() *device {
	return &device{boardState: boardState{
		xids: newXIDs(), restarts: newRestarts(), energy: -1, counters: slices.Repeat([]counting{{value: math.NaN()}}, numCounters),
	}}
}

// isIn reports whether d is in a list in which its slot is its index.
func (d *device) isIn(list []*device) bool {
	return d.slot < len(list) && list[d.slot] == d
}

// advance makes f the latest reading. It allocates only if the topology differs from
// that of the previous reading.
func (m *memory) advance(f *canonical.Frame, thresholds *Thresholds) {
	switch {
	case f.At.Before(m.at), m.readings == 0: // what an earlier run kept may be of later
		m.rewind(f.At)
	case f.At.Sub(m.at) > restartGap:
		for _, d := range m.present {
			d.restarts.at = f.At
		}
	}
	m.lapse = f.At.Sub(m.at)
	m.at = f.At
	m.readings++
	m.forget()
	if f.Topology != m.topology {
		m.setTopology(f.Topology, thresholds)
		m.forget()
	}
}

// forget drops the devices that left too long ago or exceed the limit.
func (m *memory) forget() {
	n := m.departed.expired(m.at, deviceMemory, m.limit, len(m.present), max(mostDeparted, 2*m.peak))
	if n == 0 {
		return
	}
	for _, left := range m.departed[:n] {
		left.item.forgotten = true
		delete(m.devices, left.item.Identity())
		m.lose(left.item)
	}
	m.departed = slices.Delete(m.departed, 0, n)
	m.roster = nil
}

// setTopology finds or creates the state of every device of t.
func (m *memory) setTopology(t *canonical.Topology, thresholds *Thresholds) {
	if m.devices == nil {
		m.devices = map[canonical.Identity]*device{}
	}
	var devices []canonical.Device
	if t != nil {
		devices = t.Devices
	}
	previous := m.present
	m.topology, m.roster = t, nil
	m.present = make([]*device, len(devices))
	for i := range devices {
		key := devices[i].Identity()
		d := m.devices[key]
		if d == nil {
			d = newDevice()
			d.born = m.readings
			m.recover(d, key)
			m.devices[key] = d
		}
		if !d.isIn(previous) {
			if d.appeared > 0 {
				d.restarts.at = m.at
			}
			d.appeared = m.readings
			d.restarts.read = later(d.restarts.read, m.at.Add(-m.lapse)) // it was not there, and so not reset yet
		}
		d.Device, d.warning = devices[i], thresholds.warning(devices[i].Model)
		d.account.Read = d.account.Read || !d.Implied
		m.present[i] = d
	}
	for i, d := range m.present {
		d.slot, d.moved = i, false
	}
	m.peak = max(m.peak, len(m.present))
	m.observeSwitch(previous)
	m.assignInstances()
	m.observeCuts()
	m.departed = m.departed.without(func(d *device) bool { return d.isIn(m.present) })
	for _, d := range previous {
		if !d.isIn(m.present) {
			if len(d.allocations) > 0 {
				d.last = d.allocations[0]
			}
			d.holders, d.allocations, d.instances = 0, nil, nil
			m.departed = append(m.departed, departure[*device]{d, m.at})
		}
	}
}

// observeSwitch notes whether the source reads another node than before: it has boards, as it had, and none of them is the same.
// A board that fails leaves others behind.
func (m *memory) observeSwitch(previous []*device) {
	m.switches = slices.Delete(m.switches, 0, m.switches.expired(m.at, deviceMemory, 0, 0, mostDeparted))
	if len(previous) == 0 || len(m.present) == 0 || slices.ContainsFunc(previous, func(d *device) bool { return d.isIn(m.present) }) {
		return
	}
	for _, d := range previous {
		d.moved = true
	}
	m.switches = append(m.switches, departure[struct{}]{at: m.at})
}

// alternates reports whether the source went from one node to another and back.
func (m *memory) alternates() bool { return len(m.switches) > 1 && !m.list().HeldOnly }

// assignInstances gives the boards that are present their instances.
func (m *memory) assignInstances() {
	for _, d := range m.present {
		d.instances = nil
	}
	for _, d := range m.present {
		if d.board = m.present[d.Board]; d.IsInstance() {
			d.board.instances = append(d.board.instances, d)
		}
	}
}

// observeCuts notes which boards are cut into instances. If that changed since the previous
// reading, the board may have restarted for it.
func (m *memory) observeCuts() {
	for _, d := range m.present {
		if cut := len(d.instances) > 0; cut != d.cut {
			d.cut = cut
			d.restarts.at = m.at
		}
	}
}

// linksOfPeers returns how many NVLinks each of the other boards of d's model and host has up, if
// there are at least three and they agree; else 0.
func (m *memory) linksOfPeers(d *device) float64 {
	const least = 3
	up, peers := 0.0, 0
	for _, o := range m.present {
		switch {
		case o == d || o.IsInstance() || o.Hostname != d.Hostname || o.Model != d.Model:
		case o.cut || o.links.readings == 0 || peers > 0 && o.links.up != up:
			return 0
		default:
			up, peers = o.links.up, peers+1
		}
	}
	if peers < least {
		return 0
	}
	return up
}

// managedPeer reports whether the fabric manager has set up another board of d's node.
func (m *memory) managedPeer(d *device) bool {
	return slices.ContainsFunc(m.present, func(o *device) bool {
		return o != d && !o.IsInstance() && o.Hostname == d.Hostname && o.managed && o.unmanaged.IsZero()
	})
}

// rewind moves all times after at to at, to which the clock was set back, so that nothing lasts
// longer than if it began now.
func (m *memory) rewind(at time.Time) {
	m.departed.rewind(at)
	for _, d := range slices.Concat(slices.Collect(maps.Values(m.devices)), m.lost, m.counted) {
		d.xids.rewind(at)
		d.restarts.rewind(at)
		for i := range d.streaks {
			d.streaks[i].since = earlier(d.streaks[i].since, at)
		}
		for i := range d.rises {
			d.rises[i].rewind(at)
		}
		for i := range d.counters {
			d.counters[i].at, d.counters[i].fell = earlier(d.counters[i].at, at), earlier(d.counters[i].fell, at)
		}
		d.narrow, d.unmanaged = earlier(d.narrow, at), earlier(d.unmanaged, at)
	}
}

// list returns the roster of the devices that are present or remembered. It is rebuilt
// only after a change.
func (m *memory) list() *canonical.Roster {
	if m.roster != nil {
		return m.roster
	}
	r := &canonical.Roster{
		Present: len(m.present),
		Devices: make([]canonical.Device, 0, len(m.present)+len(m.departed)),
	}
	for _, d := range m.present {
		r.Devices = append(r.Devices, d.Device)
	}
	for _, left := range m.departed {
		left.item.slot = len(r.Devices)
		r.Devices = append(r.Devices, left.item.Device)
	}
	var t canonical.Topology
	if m.topology != nil {
		t = *m.topology
	}
	r.HeldOnly = t.HeldOnly || m.swapped
	for _, d := range m.lost {
		r.Missed = append(r.Missed, d.Device)
	}
	r.Missed = append(r.Missed, named(t.Absent, slices.Concat(r.Devices, r.Missed))...)
	r.Named = len(r.Missed)
	r.Missed = append(r.Missed, missed(slices.Concat(r.Devices, r.Missed), m.expected, t.Hostname)...)
	m.roster = r
	return r
}

// named returns those of the absent boards that are not among the known ones.
func named(absent, known []canonical.Device) (boards []canonical.Device) {
	for i := range absent {
		d := &absent[i]
		if !slices.ContainsFunc(known, func(k canonical.Device) bool {
			return isBoard(&k, d)
		}) {
			boards = append(boards, *d)
		}
	}
	return boards
}

// missed returns a board for each that is expected beyond the known ones, with the lowest free
// indexes.
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

// departed are things that left and are remembered for a while, the earliest departure first.
type departed[T any] []departure[T]

// departure is a thing that left, and the time of the first reading without it.
type departure[T any] struct {
	item T
	at   time.Time
}

// expired returns how many things, from the front, are to be forgotten at an instant: those that
// left more than span ago, those beyond most, and those beyond a limit, which counts the present things too; 0 is no limit.
func (p departed[T]) expired(at time.Time, span time.Duration, limit, present, most int) (n int) {
	if limit > 0 {
		n = min(max(0, present+len(p)-limit), len(p))
	}
	n = max(n, len(p)-most)
	for n < len(p) && at.Sub(p[n].at) > span {
		n++
	}
	return n
}

// without returns p, in its own memory, without the items that drop reports.
func (p departed[T]) without(drop func(T) bool) departed[T] {
	return slices.DeleteFunc(p, func(d departure[T]) bool { return drop(d.item) })
}

// rewind moves departures after at to at, to which the clock was set back.
func (p departed[T]) rewind(at time.Time) {
	for i := range p {
		p[i].at = earlier(p[i].at, at)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
