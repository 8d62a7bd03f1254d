package expose

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// layout is what the series of some sources' devices repeat in every exposition
// until a topology changes. It is immutable and shared by all scrapes.
type layout struct {
	// topologies of the sources it was made for, nil for those that could not be
	// read. Holding them keeps a new one from getting the address of an old one.
	topologies []*canonical.Topology
	devices    []deviceText // by source
}

// deviceText holds two texts for each device of a source: the labels that all
// its series have, and the end of its gpu_info series. Both are empty for a
// device that an earlier source has too: a series may be there once only.
type deviceText struct{ labels, info texts }

// texts are many short texts in one piece of memory.
type texts struct {
	bytes []byte
	ends  []int
}

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

// topologyOf returns the topology of a reading, nil if there is none.
func topologyOf(r *reading) *canonical.Topology {
	if r.snapshot == nil {
		return nil
	}
	return r.snapshot.Frame.Topology
}

// fits tells whether l was made for the topologies of readings. A nil layout
// fits nothing.
func (l *layout) fits(readings []reading) bool {
	if l == nil || len(l.topologies) != len(readings) {
		return false
	}
	for i := range readings {
		if topologyOf(&readings[i]) != l.topologies[i] {
			return false
		}
	}
	return true
}

// newLayout renders the devices of readings.
func newLayout(readings []reading) *layout {
	l := &layout{
		topologies: make([]*canonical.Topology, len(readings)),
		devices:    make([]deviceText, len(readings)),
	}
	taken := map[identity]bool{}
	for i := range readings {
		t := topologyOf(&readings[i])
		if l.topologies[i] = t; t == nil {
			continue
		}
		text := &l.devices[i]
		for j := range t.Devices {
			d := &t.Devices[j]
			if id := identityOf(d); !taken[id] {
				taken[id] = true
				text.labels.bytes = appendDevice(text.labels.bytes, d)
				text.info.bytes = appendInfo(text.info.bytes, d)
			}
			text.labels.end()
			text.info.end()
		}
	}
	return l
}

// identity tells devices apart.
type identity struct{ uuid, instance, hostname, gpu string }

// identityOf returns the identity of d: uuid and instance, whatever a source
// calls its host, or its place where no uuid is known.
func identityOf(d *canonical.Device) identity {
	if d.UUID != "" {
		return identity{uuid: d.UUID, instance: d.Instance}
	}
	return identity{hostname: d.Hostname, gpu: d.GPU, instance: d.Instance}
}
