package expose

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// rows are the devices of a source, numbered as in the Roster, followed by its missed boards, or its
// allocations, numbered as in the AllocationRoster.
type rows struct {
	// labels are common to all series of a row. They are empty for a device whose series come
	// from another source, and for its allocations.
	labels texts
	kinds  []kind          // of the devices, or of the devices of the allocations
	upto   [numReaches]int // how many rows there are within each reach
}

// subject is the kind of rows.
type subject uint8

const (
	ofDevices subject = iota
	// ofInfo and ofFabric are the devices in the reading, with the labels of gpu_info and of
	// gpu_fabric_info.
	ofInfo
	ofFabric
	// ofHost is the machine, of the first source that has its load.
	ofHost
	ofAllocations
	// ofHolders are allocations with all their labels.
	ofHolders
	numSubjects
)

// reach is how far back rows go; each reach includes those before it.
type reach uint8

const (
	// inReading are the rows that are in the reading.
	inReading reach = iota
	// remembered are those that have an account in the ledger.
	remembered
	// missed are boards that the source names or that are expected, and that were never seen.
	missed
	// judged are the same, but without a ledger those in the reading.
	judged
	numReaches
)

// kind is a set of kinds of devices, or the kind of one device.
type kind uint8

const (
	readBoard kind = 1 << iota
	impliedBoard
	migInstance

	boards      = readBoard | impliedBoard
	readDevices = readBoard | migInstance
	everyDevice = readBoard | impliedBoard | migInstance
)

func kindOf(d *canonical.Device) kind {
	switch {
	case d.IsInstance():
		return migInstance
	case d.Implied:
		return impliedBoard
	}
	return readBoard
}

// nameDevices renders the labels of the devices of all sources. A device in several sources
// gets its series from the first that reads it, else from the first that remembers it.
func nameDevices(keys []key) []sourceText {
	sources := make([]sourceText, len(keys))
	claims := newClaims()
	for r := range numReaches {
		for i := range keys {
			text := &sources[i]
			devices, list := &text.rows[ofDevices], keys[i].devices(r)
			for j := range list {
				d := &list[j]
				first := claims.claim(d, r)
				if first {
					devices.labels.bytes = appendDevice(devices.labels.bytes, d)
				}
				devices.end(d)
				if r == inReading {
					text.describe(d, first)
				}
			}
			if r == inReading || r == judged || keys[i].roster != nil {
				devices.upto[r] = devices.labels.len()
			}
		}
	}
	for i := range sources {
		labels := sources[i].rows[ofDevices].labels
		sources[i].shown = func(device int) bool { return len(labels.at(device)) > 0 }
	}
	return sources
}

// describe adds the labels of a device in the reading that only describe it; they are empty if
// there is no series.
func (t *sourceText) describe(d *canonical.Device, shown bool) {
	info, fabric := &t.rows[ofInfo], &t.rows[ofFabric]
	if !shown {
		t.shared++
	} else {
		info.labels.bytes = appendInfo(appendDevice(info.labels.bytes, d), d)
		if !d.IsInstance() && (d.Cluster != "" || d.Clique != "") {
			fabric.labels.bytes = appendLabels(appendDevice(fabric.labels.bytes, d), "cluster_uuid", d.Cluster, "clique_id", d.Clique)
		}
	}
	for _, one := range []*rows{info, fabric} {
		one.end(d)
		one.upto[inReading]++
	}
}

// end ends the labels of a row, which is about d.
func (t *rows) end(d *canonical.Device) {
	t.labels.end()
	t.kinds = append(t.kinds, kindOf(d))
}

// nameHost renders the labels of a machine.
func nameHost(hostname string) (text rows) {
	text.labels.bytes = appendLabels([]byte{'{'}, "hostname", hostname)
	text.labels.end()
	text.kinds, text.upto = []kind{readBoard}, [numReaches]int{inReading: 1}
	return text
}

// nameAllocations renders the labels of all allocations of a source, after those of its
// devices. With all, it adds the labels that only describe them.
func nameAllocations(t *canonical.AllocationRoster, devices *rows, all bool) rows {
	if t == nil || devices.upto[remembered] == 0 {
		return rows{}
	}
	var text rows
	for i := range t.Allocations {
		a := &t.Allocations[i]
		if device := devices.labels.at(a.Device); len(device) > 0 {
			text.labels.bytes = append(text.labels.bytes, device...)
			text.labels.bytes = appendAllocation(text.labels.bytes, a)
			if all {
				text.labels.bytes = appendBatch(text.labels.bytes, a)
			}
		}
		text.labels.end()
		text.kinds = append(text.kinds, devices.kinds[a.Device])
	}
	text.upto = [numReaches]int{inReading: t.Present, remembered: len(t.Allocations)}
	return text
}

// slot identifies a board by its index on its node.
type slot struct{ hostname, gpu string }

// claims are the devices that already have series: a series may occur only once, however many
// sources have its device.
type claims struct {
	devices map[canonical.Identity]bool
	// slots are the slots of boards with series: a board of unknown UUID is not missed there.
	slots map[slot]bool
}

func newClaims() *claims {
	return &claims{devices: map[canonical.Identity]bool{}, slots: map[slot]bool{}}
}

// claim reports whether d, which is within reach r, gets its series here.
func (c *claims) claim(d *canonical.Device, r reach) bool {
	id, at := d.Identity(), slot{d.Hostname, d.GPU}
	if c.devices[id] || r == missed && d.UUID == "" && c.slots[at] {
		return false
	}
	c.devices[id] = true
	if !d.IsInstance() {
		c.slots[at] = true
	}
	return true
}

// texts stores many short texts in one piece of memory.
type texts struct {
	bytes []byte
	ends  []int
}

// reset drops all texts and keeps the memory.
func (t *texts) reset() { t.bytes, t.ends = t.bytes[:0], t.ends[:0] }

func (t *texts) len() int { return len(t.ends) }

// at returns the i-th text.
func (t *texts) at(i int) []byte {
	begin := 0
	if i > 0 {
		begin = t.ends[i-1]
	}
	return t.bytes[begin:t.ends[i]]
}

// end ends a text that was appended to bytes.
func (t *texts) end() { t.ends = append(t.ends, len(t.bytes)) }
