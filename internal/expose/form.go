package expose

import (
	"math"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Form selects which kpulse_ series are served.
type Form struct {
	// Full serves all series; otherwise those of ThinnedTable are left out, and those of sources and
	// machines that the proxy's own telemetry has.
	Full bool
	// Exclude reports whether a family is left out, by its full name; nil leaves out none.
	Exclude func(family string) bool
}

// excludes reports whether a family is left out.
func (f Form) excludes(name string) bool { return f.Exclude != nil && f.Exclude(name) }

// header returns the header of a family, an empty one if it is left out.
func (f Form) header(s Series) header {
	h := newHeader(s)
	if f.excludes(h.name) {
		return header{}
	}
	return h
}

// thinner sets to NaN the values of a row that the lean form leaves out.
type thinner func(values []float64, s *canonical.Snapshot, row int)

// Thinned is a group of families that the lean form serves only in part.
type Thinned struct {
	Families []string // without canonical.Prefix
	// Without says what is left out, and Instead what gives the same information.
	Without, Instead string

	thin thinner                                   // nil: all is left out
	none func(s *canonical.Snapshot, row int) bool // as in deviceFamily
	// one: at most one series of a row is left.
	one bool
}

// ThinnedTable lists what the lean form leaves out of the series of devices: the members of
// enumerations and the flags that do not apply, counters that never moved, and what other series
// give. Other readings of 0 are kept: an absent reading means no value. The upstream's error counters
// are kept too: they outlive this program, and one left out until it rises would lose a rise while
// this program is down.
func ThinnedTable() []Thinned {
	return []Thinned{
		{Families: []string{"gpu_workload_class", "gpu_health"},
			Without: "values that do not apply", Instead: "the value that applies", thin: withoutZeros, one: true},
		{Families: []string{"gpu_health_condition"},
			Without: "conditions that are not raised", Instead: "`kpulse_gpu_health_conditions_read`, the number of conditions that were checked", thin: withoutZeros,
			none: func(s *canonical.Snapshot, row int) bool { return s.Verdicts[row].Findings.Raised == 0 }},
		{Families: []string{"gpu_clock_event_active"}, Without: "inactive reasons", Instead: "absent: the reason is inactive, or was not read", thin: withoutZeros},
		{Families: []string{"gpu_recommended_action"},
			Without: "`none`", Instead: "absent: there is nothing to do, or `kpulse_gpu_health` is `unknown`", thin: withoutFirst, one: true},
		{Families: []string{"gpu_row_remap_failure", "gpu_row_remap_pending", "gpu_retired_pages_pending", "gpu_sram_threshold_exceeded", "gpu_memory_unrepairable"},
			Without: "0", Instead: "absent: it is not set, or was not read; `kpulse_gpu_health_condition` shows what it raises", thin: withoutZeros},
		{Families: []string{"gpu_xid_last"}, Without: "0", Instead: "absent: there was no XID, or it was not read", thin: withoutZeros},
		{Families: []string{"gpu_framebuffer_reserved_bytes"},
			Without: "the value, if the three others are there", Instead: "total - used - free",
			thin: unless(canonical.FramebufferUsed, canonical.FramebufferFree, canonical.FramebufferTotal)},
		{Families: []string{"gpu_framebuffer_used_ratio"},
			Without: "the value, if both others are there", Instead: "used / total", thin: unless(canonical.FramebufferUsed, canonical.FramebufferTotal)},
		{Families: []string{"gpu_nvlink_bytes_per_second"},
			Without: "the value, if both directions are there", Instead: "transmit + receive", thin: unless(canonical.NVLinkTransmit, canonical.NVLinkReceive)},
		{Families: []string{"gpu_ecc_errors_total"},
			Without: "`aggregate`, if `volatile` is there", Instead: "`volatile`: what is counted since the driver was loaded", thin: withoutAggregate},
		{Families: []string{"gpu_workload_class_seconds_total"},
			Without: "classes that the device was never in", Instead: "a class begins at 0 when the device enters it",
			thin: unborn(func(l *canonical.Ledger, row int) canonical.Births { return l.Devices[row].Births }, 0)},
		{Families: []string{"gpu_health_seconds_total"},
			Without: "states that the board was never in", Instead: "a state begins at 0 when the board enters it",
			thin: unborn(func(l *canonical.Ledger, row int) canonical.Births { return l.Devices[row].Births }, canonical.FirstState)},
		{Families: []string{"allocation_class_seconds_total"},
			Without: "classes that the allocation was never in", Instead: "a class begins at 0 when the allocation enters it",
			thin: unborn(func(l *canonical.Ledger, row int) canonical.Births { return l.Allocations[row].Births }, 0)},
		{Families: []string{"gpu_xid_changes_total"}, Without: "all", Instead: "`kpulse_gpu_xid_errors_total`"},
		{Families: []string{"gpu_allocations"}, Without: "all", Instead: "the number of `kpulse_allocation_info`"},
	}
}

// thin returns the families in the lean form.
func thin(list []deviceFamily) []deviceFamily {
	by := map[string]Thinned{}
	for _, t := range ThinnedTable() {
		for _, name := range t.Families {
			by[canonical.Prefix+name] = t
		}
	}
	for i := range list {
		f := &list[i]
		t, is := by[f.name]
		if !is {
			continue
		}
		if f.thin, f.none, f.one = t.thin, t.none, f.one || t.one; f.fill == nil {
			f.fill = fields(f.first, f.end)
		}
	}
	return slices.DeleteFunc(list, func(f deviceFamily) bool {
		t, is := by[f.name]
		return is && t.thin == nil
	})
}

func withoutZeros(values []float64, _ *canonical.Snapshot, _ int) {
	for i, v := range values {
		if v == 0 {
			values[i] = math.NaN()
		}
	}
}

// withoutFirst leaves out the first series of a row, and those that do not apply.
func withoutFirst(values []float64, s *canonical.Snapshot, row int) {
	values[0] = math.NaN()
	withoutZeros(values, s, row)
}

// unless returns a thinner of a value that follows from fields, if all of these are given.
func unless(fields ...canonical.Field) thinner {
	return func(values []float64, s *canonical.Snapshot, device int) {
		row := s.Frame.Row(device)
		for _, f := range fields {
			if !canonical.Given(row[f]) {
				return
			}
		}
		fillNaN(values)
	}
}

// withoutAggregate leaves out the aggregate count of each severity whose volatile one is given.
func withoutAggregate(values []float64, _ *canonical.Snapshot, _ int) {
	const aggregate = canonical.ECCSingleBitAggregate - canonical.ECCSingleBitVolatile
	for i, volatile := range values[:aggregate] {
		if canonical.Given(volatile) {
			values[i+int(aggregate)] = math.NaN()
		}
	}
}

// unborn returns a thinner of counters, of which the first has an index in births: it leaves out
// those that never moved, and serves young ones as 0.
func unborn(births func(l *canonical.Ledger, row int) canonical.Births, first uint) thinner {
	return func(values []float64, s *canonical.Snapshot, row int) {
		b := births(&s.Ledger, row)
		for i, v := range values {
			if !canonical.Given(v) {
				continue
			}
			shown, born := b.Count(first+uint(i), v)
			if values[i] = shown; !born {
				values[i] = math.NaN()
			}
		}
	}
}
