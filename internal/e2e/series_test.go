package e2e

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/expose"
)

// The sources whose series are counted: the demo, with the readings of all counters, and a capture
// of the exporter's default counters.
var (
	allCounters     = []string{"--backend=replay", "--poll=24h"}
	defaultCounters = []string{"--source=" + captureDir + "/default-counters.prom", "--poll=0"}
)

// TestSeriesPerGPU checks the number of our series per GPU and per allocation in SERIES.md and
// README.md, in lean and full form. A partitioned GPU is not counted, and the demo's are averaged:
// an active clock event adds a series for its duration.
func TestSeriesPerGPU(t *testing.T) {
	t.Parallel()
	lean, held := seriesPerGPU(t, allCounters)
	full, all := seriesPerGPU(t, append(slices.Clone(allCounters), "--series=full"))
	leanDefaults, _ := seriesPerGPU(t, defaultCounters)
	fullDefaults, _ := seriesPerGPU(t, append(slices.Clone(defaultCounters), "--series=full"))
	want := fmt.Sprintf("A GPU with all counters has %.0f `kpulse_*` series instead of %.0f, one with the exporter's default counters %.0f instead of %.0f, "+
		"and a pod or job on a GPU %.0f instead of %.0f, plus one for each class after its first.",
		lean, full, leanDefaults, fullDefaults, held, all)
	short := fmt.Sprintf("%.0f `kpulse_*` series for each GPU with the exporter's default counters, %.0f with all", leanDefaults, lean)
	for page, want := range map[string]string{seriesPage: want, readme: short} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), want) {
			t.Errorf("%s lacks: %s", page, want)
		}
	}
}

// budgets are the most series in the lean form: of GPU 0 with the exporter's default counters and with
// all, of an allocation of one class, and of a node with each, without streams.
var budgets = struct{ defaults, all, allocation, node int }{36, 46, 6, 14}

// TestSeriesBudgets: the lean form keeps to the budgets, at the start and with one class, one state
// and one holder.
func TestSeriesBudgets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		flags []string
		gpu   int
	}{{defaultCounters, budgets.defaults}, {allCounters, budgets.all}} {
		if n := sum(seriesOfOne(t, test.flags)); n > test.gpu {
			t.Errorf("%s: %d series of GPU 0, want at most %d", test.flags, n, test.gpu)
		}
		if _, held := seriesPerGPU(t, test.flags); held > float64(budgets.allocation) {
			t.Errorf("%s: %g series of an allocation, want at most %d", test.flags, held, budgets.allocation)
		}
		n := 0
		for line := range strings.Lines(awaitPage(t, startProxy(t, itself(t), test.flags...), "/metrics", 200, "kpulse_gpu_info")) {
			if strings.HasPrefix(line, canonical.Prefix) && !ofGPU.MatchString(line) {
				n++
			}
		}
		if n > budgets.node {
			t.Errorf("%s: %d series of the node, want at most %d", test.flags, n, budgets.node)
		}
	}
}

// ofGPU matches a series of a GPU, an instance or an allocation.
var ofGPU = regexp.MustCompile(`^kpulse_(gpu|allocation)_\w+\{hostname="[^"]*",gpu="([^"]*)",uuid="[^"]*"(,mig_instance="[^"]*")?(?:,mig_profile="[^"]*")?(,workload_namespace=[^}]*)?`)

// seriesPerGPU returns the average number of our series per unpartitioned GPU, and per allocation.
func seriesPerGPU(t *testing.T, flags []string) (ofEach, held float64) {
	t.Helper()
	c := startProxy(t, itself(t), flags...)
	text := awaitPage(t, c, "/metrics", 200, "kpulse_gpu_info")
	count, holders, cut, series := map[string]int{}, map[string]bool{}, map[string]bool{}, 0
	for line := range strings.Lines(text) {
		m := ofGPU.FindStringSubmatch(line)
		switch {
		case m == nil:
		case m[1] == "allocation":
			series++
			if strings.HasPrefix(line, "kpulse_allocation_info{") {
				holders[line] = true
			}
		case m[3] != "":
			cut[m[2]] = true
		default:
			count[m[2]]++
		}
	}
	all := 0
	for gpu, n := range count {
		if !cut[gpu] {
			all += n
		} else {
			delete(count, gpu)
		}
	}
	return float64(all) / float64(len(count)), float64(series) / float64(max(1, len(holders)))
}

// seriesKinds are the purposes of a GPU's series in the lean form, in the order of the table in
// rules/README.md. Each has the listed families, or those for which is returns true.
var seriesKinds = []struct {
	what, why string
	families  []string
	is        func(*expose.Series) bool
}{
	{what: "Identity", why: "texts that rarely change are labels here instead of on each series; `present` is 0 for a lost GPU", families: []string{"gpu_info", "gpu_fabric_info", "gpu_present"}},
	{what: "State", why: "one series for each enumeration, or none", families: []string{"gpu_workload_class", "gpu_health", "gpu_health_condition", "gpu_clock_event_active", "gpu_recommended_action"}},
	{what: "Scores", why: "`health_conditions_read` distinguishes a healthy GPU from one that could not be checked", families: []string{"gpu_real_utilization_ratio", "gpu_real_utilization_coverage_ratio", "gpu_health_conditions_read"}},
	{what: "Seconds", why: "utilization over any range", families: []string{"gpu_observed_seconds_total", "gpu_real_utilization_seconds_total", "gpu_real_utilization_known_seconds_total"}},
	{what: "Seconds by class and state", why: "each from its first second on, as 0 for a minute, for exact shares", families: []string{"gpu_workload_class_seconds_total", "gpu_health_seconds_total"}},
	{what: "XIDs", why: "a code from its first error on, as 0 for a minute", families: []string{"gpu_xid_last_change_timestamp_seconds", "gpu_xid_errors_total"}},
	{what: "Counters of the exporter", why: "from 0: they outlive the proxy", is: func(s *expose.Series) bool { return s.Type == canonical.Counter }},
	{what: "Readings of the exporter", why: "one name and unit for all versions; a reading that the exporter does not give is absent", is: func(s *expose.Series) bool { return s.Type == canonical.Gauge }},
}

// TestSeriesTable checks the table in rules/README.md against the series of one GPU in the lean
// form, by family, and against what remains with the page's exclusions.
func TestSeriesTable(t *testing.T) {
	t.Parallel()
	count := func(flags []string, more ...string) map[string]int {
		return seriesOfOne(t, append(slices.Clone(flags), more...))
	}
	defaults, all := count(defaultCounters), count(allCounters)
	kinds := map[string]int{}
	for _, s := range expose.SeriesTable() {
		for i, k := range slices.Backward(seriesKinds) { // the first match
			if slices.Contains(k.families, strings.TrimPrefix(s.Name, canonical.Prefix)) || k.families == nil && k.is(&s) {
				kinds[s.Name] = i
			}
		}
	}
	var table strings.Builder
	table.WriteString("| series of a GPU | default counters | all counters | series, without `kpulse_gpu_` | why |\n|---|--:|--:|---|---|\n")
	for i, k := range seriesKinds {
		of := [2]int{}
		var names []string
		for _, family := range slices.Sorted(maps.Keys(all)) {
			if kinds[family] != i {
				continue
			}
			name := "`" + strings.TrimPrefix(family, "kpulse_gpu_") + "`"
			if n := max(defaults[family], all[family]); n > 1 {
				name += fmt.Sprintf(" × %d", n)
			}
			names = append(names, name)
			of[0], of[1] = of[0]+defaults[family], of[1]+all[family]
		}
		fmt.Fprintf(&table, "| %s | %d | %d | %s | %s |\n", k.what, of[0], of[1], strings.Join(names, ", "), k.why)
	}
	for family := range defaults {
		if all[family] == 0 {
			t.Errorf("%s is only in the default counters, so the table lacks it", family)
		}
	}
	page, err := os.ReadFile(rulesReadme)
	if err != nil {
		t.Fatal(err)
	}
	var excluded []string
	for _, m := range regexp.MustCompile("(?m)^  `(--series.exclude=)'([^']+)'`$").FindAllStringSubmatch(string(page), -1) {
		excluded = append(excluded, m[1]+m[2])
	}
	if len(excluded) != 2 {
		t.Fatalf("%s names the exclusions %q, want 2", rulesReadme, excluded)
	}
	for _, row := range []struct {
		what  string
		flags []string
	}{
		{"**All of these**", nil},
		{"… without seconds by class and state", excluded[:1]},
		{"… without the exporter's readings", excluded[1:]},
		{"… without either", excluded},
		{"… with `--series=full`", []string{"--series=full"}},
	} {
		fmt.Fprintf(&table, "| %s | %d | %d | | |\n", row.what, sum(count(defaultCounters, row.flags...)), sum(count(allCounters, row.flags...)))
	}
	checkTable(t, rulesReadme, "series-of-a-gpu", table.String())
}

const rulesReadme = root + "rules/README.md"

// seriesOfOne returns the number of our series of GPU 0, by family.
func seriesOfOne(t *testing.T, flags []string) map[string]int {
	t.Helper()
	c := startProxy(t, itself(t), flags...)
	text := awaitPage(t, c, "/metrics", 200, "kpulse_gpu_info")
	count := map[string]int{}
	for line := range strings.Lines(text) {
		if m := ofGPU.FindStringSubmatch(line); m != nil && m[1] == "gpu" && m[2] == "0" {
			name, _, _ := strings.Cut(line, "{")
			count[name]++
		}
	}
	return count
}

func sum(of map[string]int) (n int) {
	for _, each := range of {
		n += each
	}
	return n
}
