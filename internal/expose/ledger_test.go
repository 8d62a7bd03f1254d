package expose

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// The label sets of the kept snapshot's rows.
const (
	textBoard         = `hostname="node-a",gpu="0",uuid="GPU-a0"`
	textImplied       = `hostname="node-b",gpu="0",uuid="GPU-b0"`
	textInstance      = textImplied + `,mig_instance="7",mig_profile="3g.20gb"`
	textOtherInstance = textImplied + `,mig_instance="8",mig_profile="3g.20gb"`
	textGoneBoard     = `hostname="node-a",gpu="2",uuid="GPU-a2"`
	textGoneInstance  = textImplied + `,mig_instance="9",mig_profile="1g.10gb"`
	textGoneImplied   = `hostname="node-b",gpu="1",uuid="GPU-b1"`

	textPod   = textBoard + `,workload_namespace="ml",workload_pod="train-0",workload_container="main",workload_kind="Job",workload_name="train",hpc_job=""`
	textJob   = textBoard + `,workload_namespace="",workload_pod="",workload_container="",workload_kind="",workload_name="",hpc_job="4711"`
	textOdd   = textInstance + `,workload_namespace="a\\b",workload_pod="\"q\"\nx",workload_container="c` + "\ufffd" + `",workload_kind="",workload_name="",hpc_job=""`
	textEnded = textBoard + `,workload_namespace="ml",workload_pod="ended",workload_container="",workload_kind="",workload_name="",hpc_job=""`
	textLost  = textGoneBoard + `,workload_namespace="ml",workload_pod="lost",workload_container="",workload_kind="",workload_name="",hpc_job=""`
)

// bottlenecks are the classes in the order of the exposition, each with its bottleneck.
var bottlenecks = [...][2]string{
	{"idle", "idle"},
	{"tensor_heavy_compute", "compute"},
	{"tensor_compute", "compute"},
	{"fp64_hpc_compute", "compute"},
	{"io_or_data_loading", "io"},
	{"memory_bound", "memory"},
	{"compute_heavy", "compute"},
	{"compute_active", "compute"},
	{"memory_active", "memory"},
	{"busy_low_sm_use", "mixed"},
	{"low_utilization", "mixed"},
	{"mixed_or_moderate", "mixed"},
	{"unknown", "unknown"},
}

// classes are the series by class of a row, "0" if seconds has none.
func classes(labels string, bottleneck bool, seconds map[string]string) (lines []string) {
	for _, c := range bottlenecks {
		text := labels + `,class="` + c[0] + `"`
		if bottleneck {
			text += `,bottleneck="` + c[1] + `"`
		}
		value := seconds[c[0]]
		if value == "" {
			value = "0"
		}
		lines = append(lines, text+" "+value)
	}
	return lines
}

// states are the series by state of health of a row.
func states(labels, ok, hot, warn, crit, unknown string) []string {
	return []string{
		labels + `,state="ok" ` + ok,
		labels + `,state="hot" ` + hot,
		labels + `,state="warn" ` + warn,
		labels + `,state="crit" ` + crit,
		labels + `,state="unknown" ` + unknown,
	}
}

func concat(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// seriesOf returns the series of a family, each as "labels value".
func seriesOf(body []byte, family string) (lines []string) {
	for line := range strings.Lines(string(body)) {
		if rest, ok := strings.CutPrefix(line, family+"{"); ok {
			end := strings.LastIndex(rest, "} ")
			lines = append(lines, rest[:end]+strings.TrimSuffix(rest[end+1:], "\n"))
		}
	}
	return lines
}

// keptFamilies are the families of the ledger with their series of the kept snapshot, in the
// order of the exposition.
var keptFamilies = []struct {
	name, kind string
	series     []string
}{
	{"gpu_xid_changes_total", "counter", []string{
		textBoard + " 2", textImplied + " 0", textGoneBoard + " 1", textGoneImplied + " 0",
	}},
	// 2026-11-21T12:00:00.25Z is 1795262400.25.
	{"gpu_xid_last_change_timestamp_seconds", "gauge", []string{
		textBoard + " 1795258800.25", textGoneBoard + " 1795262399.25",
	}},
	{"gpu_present", "gauge", []string{
		textBoard + " 1", textImplied + " 1", textGoneBoard + " 0", textGoneImplied + " 0",
		`hostname="node-a",gpu="1",uuid="" 0`, `hostname="node-a",gpu="3",uuid="" 0`,
	}},
	{"gpu_observed_seconds_total", "counter", []string{
		textBoard + " 100.25", textImplied + " 30", textInstance + " 0.000001", textOtherInstance + " 0",
		textGoneBoard + " 7", textGoneInstance + " 8", textGoneImplied + " 9",
	}},
	{"gpu_real_utilization_seconds_total", "counter", []string{
		textBoard + " 59.400000001", textInstance + " 0.000001", textOtherInstance + " 0",
		textGoneBoard + " 0", textGoneInstance + " 0",
	}},
	{"gpu_real_utilization_known_seconds_total", "counter", []string{
		textBoard + " 90", textInstance + " 0.000001", textOtherInstance + " 0",
		textGoneBoard + " 0", textGoneInstance + " 0",
	}},
	{"gpu_workload_class_seconds_total", "counter", concat(
		classes(textBoard, true, map[string]string{"tensor_heavy_compute": "90", "unknown": "10.25"}),
		classes(textInstance, true, map[string]string{"idle": "0.000001"}),
		classes(textOtherInstance, true, nil),
		classes(textGoneBoard, true, map[string]string{"idle": "7"}),
		classes(textGoneInstance, true, map[string]string{"mixed_or_moderate": "8"}),
	)},
	{"gpu_health_seconds_total", "counter", concat(
		states(textBoard, "100", "0.25", "0", "0", "0"),
		states(textImplied, "0", "0", "0", "0", "30"),
		states(textGoneBoard, "0", "0", "0", "7", "0"),
		states(textGoneImplied, "9", "0", "0", "0", "0"),
	)},
	{"gpu_allocations", "gauge", []string{
		textBoard + " 5", textInstance + " 1", textOtherInstance + " 0",
	}},
	{"allocation_info", "gauge", []string{
		textPod + `,share="equal" 1`, textJob + `,hpc_user="ann",hpc_account="physics",hpc_partition="",share="measured" 1`, textOdd + `,share="equal" 1`,
	}},
	{"allocation_nvml_utilization_ratio", "gauge", []string{textJob + " 0.25"}},
	{"allocation_framebuffer_used_bytes", "gauge", []string{textPod + " 3221225472", textJob + " 0"}},
	{"allocation_seconds_total", "counter", []string{
		textPod + " 50", textJob + " 0", textOdd + " 0", textEnded + " 1.5", textLost + " 7",
	}},
	{"allocation_real_utilization_seconds_total", "counter", []string{
		textPod + " 29.700000001", textJob + " 0", textOdd + " 0", textEnded + " 0", textLost + " 0",
	}},
	{"allocation_real_utilization_known_seconds_total", "counter", []string{
		textPod + " 45", textJob + " 0", textOdd + " 0", textEnded + " 0", textLost + " 0",
	}},
	{"allocation_class_seconds_total", "counter", concat(
		classes(textPod, false, map[string]string{"tensor_heavy_compute": "45", "unknown": "5"}),
		classes(textJob, false, nil),
		classes(textOdd, false, nil),
		classes(textEnded, false, map[string]string{"unknown": "1.5"}),
		classes(textLost, false, map[string]string{"idle": "7"}),
	)},
	{"allocation_energy_joules_total", "counter", []string{
		textPod + " 12345678.900001", textJob + " 0", textEnded + " 0.000005",
	}},
	{"source_unchanged_seconds", "gauge", []string{
		`source="http://node-a:9400/metrics",backend="prometheus" 12.5`,
	}},
	{"source_dropped_allocations_total", "counter", []string{
		`source="http://node-a:9400/metrics",backend="prometheus" 6`,
	}},
}

func TestLedger(t *testing.T) {
	body := render(good(kept()))
	parse(t, body)
	last := bytes.Index(body, []byte("# HELP kpulse_gpu_health_condition "))
	for _, want := range keptFamilies {
		name := "kpulse_" + want.name
		if got := strings.Join(seriesOf(body, name), "\n"); got != strings.Join(want.series, "\n") {
			t.Errorf("%s:\n%s", name, diff(got+"\n", strings.Join(want.series, "\n")+"\n"))
		}
		at := bytes.Index(body, []byte("# HELP "+name+" "))
		if at <= last {
			t.Errorf("%s is not behind the family before", name)
		}
		last = at
		if !bytes.Contains(body, []byte("\n# TYPE "+name+" "+want.kind+"\n")) {
			t.Errorf("%s is no %s", name, want.kind)
		}
	}
	// Families of the reading have no series of devices that left.
	for _, family := range []string{"kpulse_gpu_info", "kpulse_gpu_workload_class"} {
		if text := strings.Join(seriesOf(body, family), "\n"); strings.Contains(text, textGoneBoard) || strings.Contains(text, textGoneInstance) {
			t.Errorf("%s has series of devices that went", family)
		}
	}
}

// TestVerdictsOfAbsentBoards: each board that is not in the reading has a verdict, an action only where
// something is known of it, and no presence if the source lists held boards only, unless it is gone.
func TestVerdictsOfAbsentBoards(t *testing.T) {
	const missed, lost = `hostname="node-a",gpu="1",uuid=""`, `hostname="node-a",gpu="3",uuid=""`
	s := kept()
	verdicts := func() string {
		body := string(renderIn(Form{}, good(s)))
		parse(t, []byte(body))
		var lines []string
		for _, family := range []string{"gpu_health", "gpu_recommended_action", "gpu_present"} {
			for _, line := range seriesOf([]byte(body), "kpulse_"+family) {
				if !strings.HasPrefix(line, textBoard) && !strings.HasPrefix(line, textImplied) {
					lines = append(lines, line)
				}
			}
		}
		return strings.Join(lines, "\n")
	}
	want := strings.Join([]string{
		textGoneBoard + `,state="crit" 1`, textGoneImplied + `,state="unknown" 1`, missed + `,state="unknown" 1`, lost + `,state="crit" 1`,
		textGoneBoard + `,action="replace" 1`, lost + `,action="reboot_node" 1`,
		textGoneBoard + " 0", textGoneImplied + " 0", missed + " 0", lost + " 0",
	}, "\n")
	if got := verdicts(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	s.Ledger.Roster.HeldOnly = true
	if got, want := verdicts(), strings.Join(append(strings.Split(want, "\n")[:6], textGoneBoard+" 0", lost+" 0"), "\n"); got != want {
		t.Errorf("of held boards only\n%s\nwant\n%s", got, want)
	}
	s.Ledger.Absences = nil
	if got := verdicts(); strings.Contains(got, "crit") || strings.Count(got, "unknown") != 4 || strings.Contains(got, "action") {
		t.Errorf("without verdicts\n%s", got)
	}
}

// TestImpliedForATime: the counters of a board that was read once stay while it is implied, and
// its gauges are absent.
func TestImpliedForATime(t *testing.T) {
	s := kept()
	a := &s.Ledger.Devices[rowImplied]
	*a = canonical.Account{Read: true, Observed: 3 * time.Second, Known: time.Second, Utilized: 450 * time.Millisecond}
	a.Classes[canonical.ComputeHeavy], a.Classes[canonical.ClassUnknown] = time.Second, 2*time.Second
	body := render(good(s))
	parse(t, body)
	of := func(family string) (lines []string) {
		for _, line := range seriesOf(body, "kpulse_"+family) {
			if strings.HasPrefix(line, textImplied+" ") || strings.HasPrefix(line, textImplied+",class=") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	for family, want := range map[string][]string{
		"gpu_observed_seconds_total":               {textImplied + " 3"},
		"gpu_real_utilization_known_seconds_total": {textImplied + " 1"},
		"gpu_real_utilization_seconds_total":       {textImplied + " 0.45"},
		"gpu_workload_class_seconds_total":         classes(textImplied, true, map[string]string{"compute_heavy": "1", "unknown": "2"}),
		"gpu_workload_class":                       nil,
		"gpu_real_utilization_ratio":               nil,
		"gpu_real_utilization_coverage_ratio":      nil,
		"gpu_allocations":                          nil,
	} {
		if got := of(family); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %v, want %v", family, got, want)
		}
	}
}

// TestNoLedger: without a ledger its families are absent.
func TestNoLedger(t *testing.T) {
	count := func(s *canonical.Snapshot) string {
		body := render(good(s))
		var there []string
		for _, f := range keptFamilies {
			if bytes.Contains(body, []byte("# HELP kpulse_"+f.name+" ")) {
				there = append(there, f.name)
			}
		}
		return strings.Join(there, " ")
	}
	const always = "source_dropped_allocations_total"
	s := kept()
	s.Ledger, s.Source.ChangedAt = canonical.Ledger{}, time.Time{}
	if got := count(s); got != always {
		t.Errorf("without a ledger there is %s", got)
	}
	s = kept()
	s.Ledger.AllocationRoster, s.Ledger.Allocations = nil, nil
	if got := count(s); strings.Contains(got, "allocation_") || strings.Contains(got, "gpu_allocations") || !strings.Contains(got, "gpu_present") {
		t.Errorf("without allocations there is %s", got)
	}
	s = kept()
	s.Ledger.Roster, s.Ledger.Devices = nil, nil
	if got := count(s); strings.Contains(got, "allocation_info") || strings.Contains(got, "gpu_present") {
		t.Errorf("without a roster there is %s", got)
	}
	// No device was read, and one is remembered.
	s = kept()
	s.Frame.Shape(&canonical.Topology{})
	s.Verdicts = nil
	s.Ledger.Roster = &canonical.Roster{Devices: s.Ledger.Roster.Devices[rowGoneBoard : rowGoneBoard+1]}
	s.Ledger.Devices, s.Ledger.Absences = s.Ledger.Devices[rowGoneBoard:rowGoneBoard+1], s.Ledger.Absences[:1]
	s.Ledger.AllocationRoster, s.Ledger.Allocations = &canonical.AllocationRoster{Roster: s.Ledger.Roster}, nil
	body := render(good(s))
	parse(t, body)
	if got := seriesOf(body, "kpulse_gpu_present"); len(got) != 1 || got[0] != textGoneBoard+" 0" {
		t.Errorf("the last board that went shows as %q", got)
	}
}

func TestLedgerAllocatesNothing(t *testing.T) {
	w, s, other := NewWriter(Form{Full: true}), kept(), holding(rostered("other", 1, board(), unread()))
	write := func() {
		if err := w.Write(io.Discard, s, other); err != nil {
			t.Fatal(err)
		}
	}
	write()
	if n := testing.AllocsPerRun(20, write); n != 0 {
		t.Errorf("%v allocations per exposition", n)
	}
}
