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

// handlers maps names of families, without canonical.Prefix. families adds those of
// canonical.Fields; all others are skipped.
var handlers = map[string]handler{
	"gpu_info": func(r *reader, s *sample) {
		d := r.device(s)
		d.reported = true
		d.gpu.Model, d.gpu.Name, d.gpu.PCIBusID, d.gpu.Driver = s.copied("model"), s.copied("device"), s.copied("pci_bus_id"), s.copied("driver_version")
	},
	"gpu_present": func(r *reader, s *sample) {
		d := r.device(s)
		d.reported, d.gpu.Gone = true, s.value == 0
	},
	"gpu_clock_event_active": func(r *reader, s *sample) {
		if s.value == 1 {
			g := r.gpu(s)
			g.ClockEvents = append(g.ClockEvents, s.copied("reason"))
		}
	},
	"gpu_workload_class": func(r *reader, s *sample) {
		i := slices.IndexFunc(canonical.Classes[:], func(c canonical.ClassInfo) bool { return c.Name == s.label("class") })
		if s.value == 1 && i >= 0 {
			r.gpu(s).Class = canonical.Class(i)
		}
	},
	"gpu_health": func(r *reader, s *sample) {
		if h, ok := stateOf(s); ok {
			r.gpu(s).Health = h
		}
	},
	"gpu_health_condition": func(r *reader, s *sample) {
		c, known := canonical.ConditionOf(s.label("condition"))
		if h, ok := stateOf(s); ok && known {
			g := r.gpu(s)
			g.Raised = append(g.Raised, RaisedCondition{c, h})
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

	"gpu_real_utilization_ratio":               ofGPU(func(g *GPU) *float64 { return &g.RealUtilization }),
	"gpu_real_utilization_seconds_total":       ofGPU(func(g *GPU) *float64 { return &g.UtilizedSeconds }),
	"gpu_real_utilization_known_seconds_total": ofGPU(func(g *GPU) *float64 { return &g.KnownSeconds }),
	"gpu_allocations":                          ofGPU(func(g *GPU) *float64 { return &g.Holders }),

	"allocation_info": func(r *reader, s *sample) {
		g, nan := r.gpu(s), math.NaN()
		g.Allocations = append(g.Allocations, Allocation{
			Allocation: canonical.Allocation{Workload: workload(s, (*sample).copied), Kind: s.copied("workload_kind"), Name: s.copied("workload_name")},
			Seconds:    nan, UtilizedSeconds: nan, KnownSeconds: nan,
		})
	},
	"allocation_seconds_total":                        ofAllocation(func(a *Allocation) *float64 { return &a.Seconds }),
	"allocation_real_utilization_seconds_total":       ofAllocation(func(a *Allocation) *float64 { return &a.UtilizedSeconds }),
	"allocation_real_utilization_known_seconds_total": ofAllocation(func(a *Allocation) *float64 { return &a.KnownSeconds }),

	"host_cpus":                   ofHost(func(h *canonical.Host) *float64 { return &h.CPUs }),
	"host_cpu_utilization_ratio":  ofHost(func(h *canonical.Host) *float64 { return &h.CPUUtilization }),
	"host_memory_total_bytes":     ofHost(func(h *canonical.Host) *float64 { return &h.MemoryTotal }),
	"host_memory_available_bytes": ofHost(func(h *canonical.Host) *float64 { return &h.MemoryAvailable }),

	"source_info":                        ofSource(func(*Source, *sample) {}),
	"source_up":                          ofSource(func(o *Source, s *sample) { o.Up = s.value == 1 }),
	"source_last_read_timestamp_seconds": ofSource(func(o *Source, s *sample) { o.At = instant(s.value) }),
	"source_period_seconds":              ofSource(func(o *Source, s *sample) { o.Period = Seconds(s.value) }),
	"source_unchanged_seconds":           ofSource(func(o *Source, s *sample) { o.Unchanged = Seconds(s.value) }),
	"source_dropped_values_total": ofSource(func(o *Source, s *sample) {
		if s.label("reason") == canonical.DropReasons[canonical.DropLabelTooLong] {
			o.LongLabels = s.value
		}
	}),
	"source_field_missing": ofSource(func(o *Source, s *sample) { o.Missing = append(o.Missing, s.copied("field")) }),

	"real_utilization_weight": (*reader).weight,
	"build_info":              func(r *reader, s *sample) { r.node.Version = s.copied("version") },
}

// stateOf returns the state of a sample that is 1, as the current state's row is.
func stateOf(s *sample) (canonical.Health, bool) {
	i := slices.Index(canonical.HealthStates[:], s.label("state"))
	return canonical.Health(max(i, 0)), s.value == 1 && i >= 0
}

// families returns handlers with those of canonical.Fields.
func families() parser {
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
	labels := make([][]exposition.Label, len(fields))
	for i, f := range fields {
		labels[i] = exposition.ParseLabels("{"+canonical.Fields[f].Labels+"}", nil)
	}
	return func(r *reader, s *sample) {
	next:
		for i, f := range fields {
			for _, want := range labels[i] {
				if s.label(want.Name) != want.Value {
					continue next
				}
			}
			r.gpu(s).Values[f] = s.value
			return
		}
	}
}

func ofGPU(number func(*GPU) *float64) handler {
	return func(r *reader, s *sample) { *number(r.gpu(s)) = s.value }
}

func ofAllocation(number func(*Allocation) *float64) handler {
	return func(r *reader, s *sample) {
		if a := r.allocation(s); a != nil {
			*number(a) = s.value
		}
	}
}

func ofHost(number func(*canonical.Host) *float64) handler {
	return func(r *reader, s *sample) { *number(&r.node.Host) = s.value }
}

func ofSource(set func(*Source, *sample)) handler {
	return func(r *reader, s *sample) { set(r.source(s), s) }
}

func (r *reader) weight(s *sample) {
	w := &r.node.Weights
	r.node.Preset = s.copied("preset")
	if weight, ok := map[string]*float64{"sm": &w.SM, "tensor": &w.Tensor, "dram": &w.DRAM, "engine": &w.Engine}[s.label("input")]; ok {
		*weight = s.value
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
