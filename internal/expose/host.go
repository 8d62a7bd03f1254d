package expose

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// hostFamily is a family with a series for each machine; NaN means that it has none.
type hostFamily struct {
	Series
	value func(*canonical.Host) float64
}

// hostFamilies returns the families of machines in the order of the exposition.
func hostFamilies() []hostFamily {
	return []hostFamily{
		{Series{"host_cpus", canonical.Gauge, "hostname", "Logical CPUs of the machine that are online."},
			func(h *canonical.Host) float64 { return h.CPUs }},
		{Series{"host_cpu_utilization_ratio", canonical.Gauge, "hostname",
			"Fraction of the machine's CPU time that was neither idle nor waiting for I/O, since a reading at least a second earlier."},
			func(h *canonical.Host) float64 { return h.CPUUtilization }},
		{Series{"host_memory_total_bytes", canonical.Gauge, "hostname", "Memory of the machine."},
			func(h *canonical.Host) float64 { return h.MemoryTotal }},
		{Series{"host_memory_available_bytes", canonical.Gauge, "hostname", "Memory that new work on the machine can use without swapping."},
			func(h *canonical.Host) float64 { return h.MemoryAvailable }},
	}
}

// write renders one family of all machines.
func (f *hostFamily) write(h *header, b *buffer, readings []outcome) {
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
		b.buf = appendLabels(append(h.begin(b.buf, &headed), '{'), "hostname", snap.Frame.Topology.Hostname)
		b.buf = append(exposition.AppendFloat(append(b.buf, "} "...), v), '\n')
	}
}

// firstOfHost reports whether the i-th reading is the first with the load of its machine.
func firstOfHost(readings []outcome, i int) bool {
	host := hostOf(&readings[i])
	for j := range i {
		if host != nil && hostOf(&readings[j]) != nil && *hostOf(&readings[j]) == *host {
			return false
		}
	}
	return host != nil
}

// hostOf returns the name of the machine whose load a reading has, nil for none.
func hostOf(r *outcome) *string {
	if r.snapshot == nil || r.snapshot.Host == nil || r.snapshot.Frame.Topology == nil {
		return nil
	}
	return &r.snapshot.Frame.Topology.Hostname
}
