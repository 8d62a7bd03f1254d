package nvmltest

import "fmt"

// FromTruth returns NVML's answers for truths. Boards have GPM, 18 active NVLinks of
// which the first has all errors, and NVLink counters that grow from 0 at the rate of
// the traffic.
func FromTruth(truths []Truth) Scenario {
	var s Scenario
	for _, t := range truths {
		s.GPUs = append(s.GPUs, GPU{Index: t.Index, UUID: t.UUID, BusID: t.BusID, Name: t.Name, GPM: true})
		mig := Value{Of: OnBoard(t.Index), Key: "mig_mode"}
		if len(t.Instances) > 0 {
			mig.Number = 1
		}
		s.Values = append(s.Values, mig)
		s.set(OnBoard(t.Index), t.Readings)
		s.links(t.Index)
		if xid, had := t.Readings[LastXID]; had {
			s.XIDs = append(s.XIDs, XID{Of: OnBoard(t.Index), Code: int(xid)})
		}
		for i, in := range t.Instances {
			s.Instances = append(s.Instances, Instance{
				GPU: t.Index, ID: in.ID, Slices: in.Slices, MiB: in.MiB, Name: t.Name + " MIG " + in.Profile,
				UUID: fmt.Sprintf("MIG-0000%04x-%04x-1111-2222-333344445550", i, t.Index),
			})
			s.set(OnInstance(t.Index, in.ID), in.Readings)
		}
	}
	return s
}

// set adds the values of a board or an instance.
func (s *Scenario) set(of Target, r Readings) {
	all := r.complete()
	for _, q := range quantities {
		v, given := all[q.Quantity]
		if !given {
			continue
		}
		for _, k := range q.keys {
			value := Value{Of: of, Key: k.name}
			if k.counted {
				value.Rate = v * k.scale
			} else {
				value.Number = v * k.scale
			}
			s.Values = append(s.Values, value)
		}
	}
}

// links is the number of an H100's NVLinks.
const links = 18

// links adds NVML's answers for each link of a board.
func (s *Scenario) links(gpu int) {
	add := func(key string, number float64) {
		s.Values = append(s.Values, Value{Of: OnBoard(gpu), Key: key, Number: number})
	}
	add("nvlink_links", links)
	for link := range links {
		add(fmt.Sprintf("nvlink.%d.state", link), 1)
		for _, errors := range [...]string{"crc_flit", "crc_data", "replay", "recovery"} {
			if link > 0 {
				add(fmt.Sprintf("nvlink.%d.%s", link, errors), 0)
			}
		}
	}
}
