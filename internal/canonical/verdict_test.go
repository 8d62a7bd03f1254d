package canonical

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWords pins the words of the exposition, on which alerts and dashboards depend, in order.
func TestWords(t *testing.T) {
	var classes, bounds, titles []string
	for c := range NumClasses {
		classes, bounds, titles = append(classes, c.String()), append(bounds, Classes[c].Bottleneck), append(titles, Classes[c].Title)
	}
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"classes", classes, []string{
			"idle", "tensor_heavy_compute", "tensor_compute", "fp64_hpc_compute", "io_or_data_loading", "memory_bound", "compute_heavy",
			"compute_active", "memory_active", "busy_low_sm_use", "low_utilization", "mixed_or_moderate", "unknown",
		}},
		{"bottlenecks", bounds, []string{"idle", "compute", "compute", "compute", "io", "memory", "compute", "compute", "memory", "mixed", "mixed", "mixed", "unknown"}},
		{"titles", titles, []string{
			"idle", "tensor-heavy compute", "tensor compute", "FP64 / HPC compute", "I/O or data-loading", "memory-bound", "compute-heavy",
			"compute-active", "memory-active", "busy, low SM use", "low utilization", "mixed / moderate", "unknown",
		}},
		{"states", HealthStates[:], []string{"ok", "hot", "warn", "crit", "unknown"}},
		{"severities", Severities[:], []string{"none", "sympathetic", "application", "warning", "fatal"}},
		{"actions", Actions[:], []string{"none", "restart_application", "check_hardware", "reset_gpu", "restart_vm", "reboot_node", "replace"}},
		{"reasons of drops", DropReasons[:], []string{"blank", "not_finite", "out_of_range", "unit_unknown", "stale", "label_too_long"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
}

// TestConditionsAreWhole: each row of the table has its texts, as sentences or phrases, and states
// that a condition can raise; the basic conditions are KempnerPulse's five. The advice for conditions and classes says what to
// measure, and names series that there are.
func TestConditionsAreWhole(t *testing.T) {
	basic := []string{"row_remap_failure", "uncorrectable_remapped_rows", "pcie_replay", "gpu_temperature", "memory_temperature"}
	for c, row := range Conditions {
		if row.Name == "" || row.Title == "" || row.When == "" || strings.HasSuffix(row.When, ".") || !strings.HasSuffix(row.Remedy, ".") {
			t.Errorf("condition %d lacks a text: %+v", c, row)
		}
		if row.States == 0 || row.States&^(RaisesHot|RaisesWarn|RaisesCrit) != 0 || row.Basic != slices.Contains(basic, row.Name) {
			t.Errorf("condition %s has the states %b, basic %t", row.Name, row.States, row.Basic)
		}
		if !strings.Contains(row.Remedy, " Measure ") {
			t.Errorf("the remedy of %s says nothing of what to measure", row.Name)
		}
		for _, name := range regexp.MustCompile(`kpulse_\w+`).FindAllString(row.Remedy, -1) {
			if name != "kpulse_gpu_xid_errors_total" && !slices.ContainsFunc(Fields[:], func(f FieldInfo) bool { return "kpulse_"+f.Name == name }) {
				t.Errorf("the remedy of %s names %s, which is no series", row.Name, name)
			}
		}
		if found, ok := ConditionOf(row.Name); !ok || found != Condition(c) {
			t.Errorf("%s is condition %d, %t", row.Name, found, ok)
		}
	}
	for _, class := range Classes[:ClassUnknown] {
		if !strings.Contains(class.Advice, "easure ") {
			t.Errorf("the advice for %s says nothing of what to measure", class.Name)
		}
	}
	if _, ok := ConditionOf("none"); ok {
		t.Error("none is a condition")
	}
}

func TestHealthSet(t *testing.T) {
	for _, c := range []struct {
		set            HealthSet
		has            []Health
		mildest, worst Health
	}{
		{RaisesHot, []Health{HealthHot}, HealthHot, HealthHot},
		{RaisesWarn, []Health{HealthWarn}, HealthWarn, HealthWarn},
		{RaisesCrit, []Health{HealthCrit}, HealthCrit, HealthCrit},
		{RaisesWarn | RaisesCrit, []Health{HealthWarn, HealthCrit}, HealthWarn, HealthCrit},
		{RaisesHot | RaisesCrit, []Health{HealthHot, HealthCrit}, HealthHot, HealthCrit},
	} {
		for h := range NumHealth {
			if c.set.Has(h) != slices.Contains(c.has, h) {
				t.Errorf("%b has %v: %t", c.set, h, c.set.Has(h))
			}
		}
		if c.set.Worst() != c.worst || c.set.Mildest() != c.mildest {
			t.Errorf("%b is %v to %v, want %v to %v", c.set, c.set.Mildest(), c.set.Worst(), c.mildest, c.worst)
		}
	}
	if HealthSet(0).Has(HealthOK) {
		t.Error("an empty set has a state")
	}
}

// TestFindings sets each condition after the others, and reads all of them back.
func TestFindings(t *testing.T) {
	var f Findings
	of := func(c Condition) Finding { return Finding(c % 3) }
	for _, begin := range []Finding{NotRead, Clear, Raised} {
		for c := range NumConditions {
			f.Set(c, begin)
		}
		for c := range NumConditions {
			f.Set(c, of(c))
		}
		for c := range NumConditions {
			if f.Of(c) != of(c) {
				t.Errorf("condition %d, after %d: %d, want %d", c, begin, f.Of(c), of(c))
			}
		}
	}
}

func TestConditionSet(t *testing.T) {
	set := ConditionSet(1<<CondRowRemapFailure | 1<<CondPCIeReplay | 1<<CondGPUTemperature | 1<<CondProfilingStalled)
	want := []Condition{CondRowRemapFailure, CondPCIeReplay, CondGPUTemperature, CondProfilingStalled}
	if got := slices.Collect(set.All()); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for range ConditionSet(0).All() {
		t.Error("an empty set has a condition")
	}
	var first []Condition
	for c := range set.All() {
		if first = append(first, c); len(first) == 2 {
			break
		}
	}
	if !slices.Equal(first, want[:2]) {
		t.Errorf("%v, want the first two", first)
	}
}
