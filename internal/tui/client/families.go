package client

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// handler stores one sample of a family.
type handler func(r *reader, s *sample)

// number returns the handler of a family that is one number.
func number(of func(r *reader, s *sample) *float64) handler {
	return func(r *reader, s *sample) { *of(r, s) = s.value }
}

// handlers maps names of families, without canonical.Prefix. families adds those of
// canonical.Fields; all others are skipped.
var handlers = map[string]handler{
	"gpu_info": func(r *reader, s *sample) {
		d := r.device(s)
		d.reported = true
		d.gpu.Model, d.gpu.Name, d.gpu.PCIBusID, d.gpu.Driver = s.label("model"), s.label("device"), s.label("pci_bus_id"), s.label("driver_version")
	},
	"gpu_present": func(r *reader, s *sample) {
		d := r.device(s)
		d.reported, d.gpu.Gone = true, s.value == 0
	},
	"gpu_clock_event_active": func(r *reader, s *sample) {
		if s.value == 1 {
			g := r.gpu(s)
			g.ClockEvents = append(g.ClockEvents, s.label("reason"))
		}
	},
	"gpu_workload_class": func(r *reader, s *sample) {
		if c, known := classOf(s); s.value == 1 && known {
			r.gpu(s).Class = c
		}
	},
	"gpu_health": func(r *reader, s *sample) {
		if h := slices.Index(canonical.HealthStates[:], s.label("state")); s.value == 1 && h >= 0 {
			r.gpu(s).Health = canonical.Health(h)
		}
	},
	"gpu_health_condition": func(r *reader, s *sample) {
		c, known := canonical.ConditionOf(s.label("condition"))
		if h := slices.Index(canonical.HealthStates[:], s.label("state")); s.value == 1 && h >= 0 && known {
			g := r.gpu(s)
			g.Raised = append(g.Raised, RaisedCondition{c, canonical.Health(h)})
		}
	},
	"gpu_recommended_action": func(r *reader, s *sample) {
		if i := slices.Index(canonical.Actions[:], s.label("action")); s.value == 1 && i >= 0 {
			r.gpu(s).Action = canonical.Action(i)
		}
	},
	"gpu_xid_errors_total": func(r *reader, s *sample) {
		if code, err := strconv.ParseUint(s.label("xid"), 10, 32); err == nil {
			g := r.gpu(s)
			g.XIDs = append(g.XIDs, uint32(code))
		}
	},
	"gpu_xid_last_change_timestamp_seconds": func(r *reader, s *sample) { r.gpu(s).XIDAt = instant(s.value) },

	"gpu_real_utilization_ratio": func(r *reader, s *sample) {
		if isShare(s.value) {
			r.gpu(s).RealUtilization = s.value
		}
	},
	"gpu_real_utilization_seconds_total":       number(func(r *reader, s *sample) *float64 { return &r.gpu(s).UtilizedSeconds }),
	"gpu_real_utilization_known_seconds_total": number(func(r *reader, s *sample) *float64 { return &r.gpu(s).KnownSeconds }),
	"gpu_allocations":                          number(func(r *reader, s *sample) *float64 { return &r.gpu(s).Holders }),

	"allocation_info": func(r *reader, s *sample) {
		g := r.gpu(s)
		g.Allocations = append(g.Allocations, newAllocation(s))
	},
	"allocation_seconds_total":                        number(func(r *reader, s *sample) *float64 { return &r.allocation(s).Seconds }),
	"allocation_real_utilization_seconds_total":       number(func(r *reader, s *sample) *float64 { return &r.allocation(s).UtilizedSeconds }),
	"allocation_real_utilization_known_seconds_total": number(func(r *reader, s *sample) *float64 { return &r.allocation(s).KnownSeconds }),
	"allocation_energy_joules_total":                  number(func(r *reader, s *sample) *float64 { return &r.allocation(s).Energy }),
	"allocation_class_seconds_total": func(r *reader, s *sample) {
		if c, known := classOf(s); known {
			r.allocation(s).Classes[c] = s.value
		}
	},

	"host_cpus":                   number(func(r *reader, _ *sample) *float64 { return &r.node.Host.CPUs }),
	"host_cpu_utilization_ratio":  number(func(r *reader, _ *sample) *float64 { return &r.node.Host.CPUUtilization }),
	"host_memory_total_bytes":     number(func(r *reader, _ *sample) *float64 { return &r.node.Host.MemoryTotal }),
	"host_memory_available_bytes": number(func(r *reader, _ *sample) *float64 { return &r.node.Host.MemoryAvailable }),

	"nvswitch_fatal_sxid": func(r *reader, s *sample) {
		host, address, all := s.label("hostname"), s.label("pci_bus_id"), &r.node.Switches
		i := slices.IndexFunc(*all, func(f FailedSwitch) bool { return f.Hostname == host && f.PCIBusID == address })
		if i < 0 {
			i = len(*all)
			*all = append(*all, FailedSwitch{Hostname: host, PCIBusID: address})
		}
		(*all)[i].Codes = append((*all)[i].Codes, s.label("sxid"))
	},

	"source_info":                        func(r *reader, s *sample) { r.source(s) },
	"source_up":                          func(r *reader, s *sample) { r.source(s).Up = s.value == 1 },
	"source_last_read_timestamp_seconds": func(r *reader, s *sample) { r.source(s).At = instant(s.value) },
	"source_period_seconds":              func(r *reader, s *sample) { r.source(s).Period = Seconds(s.value) },
	"source_unchanged_seconds":           func(r *reader, s *sample) { r.source(s).Unchanged = Seconds(s.value) },
	"source_dropped_values_total": func(r *reader, s *sample) {
		if s.label("reason") == canonical.DropReasons[canonical.DropLabelTooLong] {
			r.source(s).LongLabels = s.value
		}
	},
	"source_field_missing": func(r *reader, s *sample) {
		o := r.source(s)
		o.Missing = append(o.Missing, s.label("field"))
	},

	"real_utilization_weight": func(r *reader, s *sample) {
		w := &r.node.Weights
		r.node.Preset = s.label("preset")
		if weight, ok := map[string]*float64{"sm": &w.SM, "tensor": &w.Tensor, "dram": &w.DRAM, "engine": &w.Engine}[s.label("input")]; ok {
			*weight = s.value
		}
	},
	"build_info": func(r *reader, s *sample) { r.node.Version = s.label("version") },
}

// isShare reports whether a value can be a ratio, as far as it fits a screen: 1e300 does not.
func isShare(v float64) bool { return v >= 0 && v < 10 }

// classOf returns the class that a sample is labelled with.
func classOf(s *sample) (c canonical.Class, known bool) {
	i := slices.IndexFunc(canonical.Classes[:], func(c canonical.ClassInfo) bool { return c.Name == s.label("class") })
	return canonical.Class(max(0, i)), i >= 0
}

// families returns handlers with those of canonical.Fields.
func families() map[string]handler {
	all := maps.Clone(handlers)
	byName := map[string][]canonical.Field{}
	for f := range canonical.NumFields {
		byName[canonical.Fields[f].Name] = append(byName[canonical.Fields[f].Name], f)
	}
	for name, fields := range byName {
		if all[name] == nil {
			all[name] = ofFields(fields)
		}
	}
	return all
}

// ofFields stores a sample in the field, of those that share a family, whose labels it carries.
func ofFields(fields []canonical.Field) handler {
	names := exposition.ParseLabels("{"+canonical.Fields[fields[0]].Labels+"}", nil)
	byValues := map[string]canonical.Field{}
	for _, f := range fields {
		key := ""
		for _, l := range exposition.ParseLabels("{"+canonical.Fields[f].Labels+"}", nil) {
			key += l.Value + "\x00"
		}
		byValues[key] = f
	}
	return func(r *reader, s *sample) {
		b, key := s.block(), make([]byte, 0, 64)
		for _, l := range names {
			key = append(append(key, b.label(l.Name)...), 0)
		}
		if f, known := byValues[string(key)]; known && (canonical.Fields[f].Unit != canonical.Ratio || isShare(s.value)) {
			r.deviceOf(b).gpu.Values[f] = s.value
		}
	}
}

// Seconds returns v seconds, or 0 if v is not positive or a year or more.
func Seconds(v float64) time.Duration {
	const longest = 365 * 24 * time.Hour
	if !(v > 0 && v < longest.Seconds()) {
		return 0
	}
	return time.Duration(v * float64(time.Second))
}

// instant returns v seconds of Unix time, or the zero time if v is not positive or after the
// year 4147.
func instant(v float64) time.Time {
	const latest = 1 << 36
	if !(v > 0 && v < latest) {
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Round(v * 1e6)))
}
