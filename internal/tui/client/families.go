package client

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// family takes in one sample of a family of ours.
type family func(r *reader, s *sample)

// families are what we read of an exposition, by name without canonical.Prefix.
// The fields are added by fieldFamilies.
func families() map[string]family {
	all := fieldFamilies()
	for name, f := range map[string]family{
		"gpu_info":                                        (*reader).info,
		"gpu_present":                                     (*reader).present,
		"gpu_clock_event_active":                          (*reader).clockEvent,
		"gpu_real_utilization_ratio":                      ofGPU(func(g *GPU) *float64 { return &g.RealUtilization }),
		"gpu_real_utilization_coverage_ratio":             ofGPU(func(g *GPU) *float64 { return &g.Coverage }),
		"gpu_workload_class":                              (*reader).class,
		"gpu_health":                                      (*reader).health,
		"gpu_health_condition":                            (*reader).condition,
		"gpu_xid_changes_total":                           ofGPU(func(g *GPU) *float64 { return &g.XIDChanges }),
		"gpu_xid_last_change_timestamp_seconds":           (*reader).xidChanged,
		"gpu_observed_seconds_total":                      ofGPU(func(g *GPU) *float64 { return &g.ObservedSeconds }),
		"gpu_real_utilization_seconds_total":              ofGPU(func(g *GPU) *float64 { return &g.UtilizedSeconds }),
		"gpu_real_utilization_known_seconds_total":        ofGPU(func(g *GPU) *float64 { return &g.KnownSeconds }),
		"gpu_workload_class_seconds_total":                (*reader).classSeconds,
		"gpu_health_seconds_total":                        (*reader).healthSeconds,
		"gpu_allocations":                                 ofGPU(func(g *GPU) *float64 { return &g.Holders }),
		"allocation_info":                                 (*reader).allocationInfo,
		"allocation_seconds_total":                        ofAllocation(func(a *Allocation) *float64 { return &a.Seconds }),
		"allocation_real_utilization_seconds_total":       ofAllocation(func(a *Allocation) *float64 { return &a.UtilizedSeconds }),
		"allocation_real_utilization_known_seconds_total": ofAllocation(func(a *Allocation) *float64 { return &a.KnownSeconds }),
		"real_utilization_weight":                         (*reader).weight,
		"host_cpus":                                       ofHost(func(h *canonical.Host) *float64 { return &h.CPUs }),
		"host_cpu_utilization_ratio":                      ofHost(func(h *canonical.Host) *float64 { return &h.CPUUtilization }),
		"host_memory_total_bytes":                         ofHost(func(h *canonical.Host) *float64 { return &h.MemoryTotal }),
		"host_memory_available_bytes":                     ofHost(func(h *canonical.Host) *float64 { return &h.MemoryAvailable }),
		"source_up":                                       ofSource(func(o *Source, s *sample) { o.Up = s.value == 1 }),
		"source_last_read_timestamp_seconds":              ofSource(func(o *Source, s *sample) { o.At = instant(s.value) }),
		"source_period_seconds":                           ofSource(func(o *Source, s *sample) { o.Period = Span(s.value) }),
		"source_read_duration_seconds":                    ofSource(func(o *Source, s *sample) { o.Took = Span(s.value) }),
		"source_unchanged_seconds":                        ofSource(func(o *Source, s *sample) { o.Unchanged = Span(s.value) }),
		"source_field_missing":                            ofSource(func(o *Source, s *sample) { o.Missing = append(o.Missing, string(s.get("field"))) }),
		"source_info":                                     (*reader).sourceInfo,
		"build_info":                                      func(r *reader, s *sample) { r.node.Version = string(s.get("version")) },
	} {
		all[name] = f
	}
	return all
}

// fieldFamilies are those of canonical.Fields.
func fieldFamilies() map[string]family {
	byName := map[string][]canonical.Field{}
	for f := range canonical.NumFields {
		byName[canonical.Fields[f].Name] = append(byName[canonical.Fields[f].Name], f)
	}
	all := map[string]family{}
	for name, fields := range byName {
		all[name] = fieldFamily(fields)
	}
	return all
}

// fieldFamily stores samples in the one of fields whose labels they carry.
func fieldFamily(fields []canonical.Field) family {
	type marked struct {
		field  canonical.Field
		labels []label
	}
	var all []marked
	for _, f := range fields {
		var s sample
		_, _ = s.readLabels([]byte(canonical.Fields[f].Labels + "}")) // of our own table
		all = append(all, marked{f, s.labels})
	}
	return func(r *reader, s *sample) {
	next:
		for i := range all {
			for _, want := range all[i].labels {
				if string(s.get(string(want.name))) != string(want.value) {
					continue next
				}
			}
			r.gpu(s).Values[all[i].field] = s.value
			return
		}
	}
}

func ofGPU(field func(*GPU) *float64) family {
	return func(r *reader, s *sample) { *field(r.gpu(s)) = s.value }
}

func ofAllocation(field func(*Allocation) *float64) family {
	return func(r *reader, s *sample) {
		if a := r.allocation(s); a != nil {
			*field(a) = s.value
		}
	}
}

func ofHost(field func(*canonical.Host) *float64) family {
	return func(r *reader, s *sample) { *field(&r.node.Host) = s.value }
}

func ofSource(set func(*Source, *sample)) family {
	return func(r *reader, s *sample) { set(r.source(s), s) }
}

func (r *reader) info(s *sample) {
	d := r.device(s)
	d.told = true
	d.gpu.Model, d.gpu.Name = string(s.get("model")), string(s.get("device"))
	d.gpu.PCIBusID, d.gpu.Driver = string(s.get("pci_bus_id")), string(s.get("driver_version"))
}

func (r *reader) present(s *sample) {
	d := r.device(s)
	d.told, d.gpu.Gone = true, s.value == 0
}

func (r *reader) clockEvent(s *sample) {
	g := r.gpu(s)
	g.ClockEventsKnown = true
	if s.value == 1 {
		g.ClockEvents = append(g.ClockEvents, string(s.get("reason")))
	}
}

func (r *reader) class(s *sample) {
	if c, ok := r.classes[string(s.get("class"))]; ok && s.value == 1 {
		r.gpu(s).Class = c
	}
}

func (r *reader) classSeconds(s *sample) {
	if c, ok := r.classes[string(s.get("class"))]; ok {
		r.gpu(s).ClassSeconds[c] = s.value
	}
}

func (r *reader) health(s *sample) {
	if h, ok := r.states[string(s.get("state"))]; ok && s.value == 1 {
		r.gpu(s).Health = h
	}
}

func (r *reader) healthSeconds(s *sample) {
	if h, ok := r.states[string(s.get("state"))]; ok {
		r.gpu(s).HealthSeconds[h] = s.value
	}
}

func (r *reader) condition(s *sample) {
	c, known := r.conditions[string(s.get("condition"))]
	h, ok := r.states[string(s.get("state"))]
	if known && ok && s.value == 1 {
		g := r.gpu(s)
		g.Raised = append(g.Raised, RaisedCondition{c, h})
	}
}

func (r *reader) xidChanged(s *sample) { r.gpu(s).XIDChangedAt = instant(s.value) }

func (r *reader) allocationInfo(s *sample) {
	g := r.gpu(s)
	g.Allocations = append(g.Allocations, Allocation{
		Allocation: canonical.Allocation{Workload: workload(s), Kind: string(s.get("workload_kind")), Name: string(s.get("workload_name"))},
		Seconds:    math.NaN(), UtilizedSeconds: math.NaN(), KnownSeconds: math.NaN(),
	})
}

func workload(s *sample) canonical.Workload {
	return canonical.Workload{
		Namespace: string(s.get("workload_namespace")), Pod: string(s.get("workload_pod")), Container: string(s.get("workload_container")),
		Job: string(s.get("hpc_job")),
	}
}

func (r *reader) weight(s *sample) {
	w := &r.node.Weights
	r.node.Preset = string(s.get("preset"))
	switch string(s.get("input")) {
	case "sm":
		w.SM = s.value
	case "tensor":
		w.Tensor = s.value
	case "dram":
		w.DRAM = s.value
	case "engine":
		w.Engine = s.value
	}
}

func (r *reader) sourceInfo(s *sample) {
	r.source(s).Aggregation = string(s.get("aggregation"))
}

// longestSpan is beyond what any duration of ours is for.
const longestSpan = 365 * 24 * time.Hour

// span is v seconds; 0 for what is none.
func Span(v float64) time.Duration {
	if !(v > 0 && v < longestSpan.Seconds()) {
		return 0
	}
	return time.Duration(v * float64(time.Second))
}

// instant is v seconds of Unix time; zero for what is none.
func instant(v float64) time.Time {
	const latest = 1 << 36 // in the year 4147
	if !(v > 0 && v < latest) {
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Round(v * 1e6)))
}
