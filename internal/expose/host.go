package expose

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// hostFamily is a family with a series for each machine.
type hostFamily struct {
	header
	value func(*canonical.Host) float64 // NaN if the machine has no such series
}

// hostFamilies returns the families of machines in the order of the exposition.
func hostFamilies() []hostFamily {
	return []hostFamily{
		{newHeader(families[hostCPUsFamily]), func(h *canonical.Host) float64 { return h.CPUs }},
		{newHeader(families[hostUtilizationFamily]), func(h *canonical.Host) float64 { return h.CPUUtilization }},
		{newHeader(families[hostMemoryFamily]), func(h *canonical.Host) float64 { return h.MemoryTotal }},
		{newHeader(families[hostAvailableFamily]), func(h *canonical.Host) float64 { return h.MemoryAvailable }},
	}
}

// write renders one family of all machines.
func (f *hostFamily) write(b *buffer, readings []reading) {
	headed := false
	for i := range readings {
		if !firstOfHost(readings, i) {
			continue
		}
		snap := readings[i].snapshot
		v := f.value(snap.Host)
		if !canonical.Given(v) {
			continue
		}
		b.buf = append(f.begin(b.buf, &headed), '{')
		b.buf = append(exposition.AppendLabel(b.buf, "hostname", snap.Frame.Topology.Hostname), "} "...)
		b.buf = append(exposition.AppendFloat(b.buf, v), '\n')
	}
}

// firstOfHost reports whether the i-th reading is the first with the load of its machine.
func firstOfHost(readings []reading, i int) bool {
	hasHost := func(r *reading) bool {
		return r.snapshot != nil && r.snapshot.Host != nil && r.snapshot.Frame.Topology != nil
	}
	if !hasHost(&readings[i]) {
		return false
	}
	hostname := readings[i].snapshot.Frame.Topology.Hostname
	for j := range i {
		if hasHost(&readings[j]) && readings[j].snapshot.Frame.Topology.Hostname == hostname {
			return false
		}
	}
	return true
}
