package client

import (
	"maps"
	"math"
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
		d.gpu.Model, d.gpu.Name, d.gpu.PCIBusID, d.gpu.Driver = s.text("model"), s.text("device"), s.text("pci_bus_id"), s.text("driver_version")
	},
	"gpu_present": func(r *reader, s *sample) {
		d := r.device(s)
		d.reported, d.gpu.Gone = true, s.value == 0
	},
	"gpu_clock_event_active": func(r *reader, s *sample) {
		if s.value == 1 {
			g := r.gpu(s)
			g.ClockEvents = append(g.ClockEvents, s.text("reason"))
		}
	},
	"gpu_workload_class": func(r *reader, s *sample) {
		if c, ok := named(r.classes, s, "class"); ok {
			r.gpu(s).Class = c
		}
	},
	"gpu_health": func(r *reader, s *sample) {
		if h, ok := named(r.states, s, "state"); ok {
			r.gpu(s).Health = h
		}
	},
	"gpu_health_condition": func(r *reader, s *sample) {
		c, known := named(r.conditions, s, "condition")
		h, ok := named(r.states, s, "state")
		if known && ok {
			g := r.gpu(s)
			g.Raised = append(g.Raised, RaisedCondition{c, h})
		}
	},
	"gpu_recommended_action": func(r *reader, s *sample) {
		if a, ok := named(r.actions, s, "action"); ok {
			r.gpu(s).Action = a
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
	"gpu_xid_changes_total":                    ofGPU(func(g *GPU) *float64 { return &g.XIDChanges }),
	"gpu_allocations":                          ofGPU(func(g *GPU) *float64 { return &g.Holders }),

	"allocation_info": func(r *reader, s *sample) {
		g, nan := r.gpu(s), math.NaN()
		g.Allocations = append(g.Allocations, Allocation{
			Allocation: canonical.Allocation{Workload: workload(s, (*sample).text), Kind: s.text("workload_kind"), Name: s.text("workload_name")},
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
	"source_field_missing": ofSource(func(o *Source, s *sample) { o.Missing = append(o.Missing, s.text("field")) }),

	"real_utilization_weight": (*reader).weight,
	"build_info":              func(r *reader, s *sample) { r.node.Version = s.text("version") },
}

// named returns what a label of a sample names if the sample is 1, as the current state's row
// is.
func named[T any](names map[string]T, s *sample, label string) (named T, ok bool) {
	if s.value == 1 {
		named, ok = names[s.label(label)]
	}
	return named, ok
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
	r.node.Preset = s.text("preset")
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
