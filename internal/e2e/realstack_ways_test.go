package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// dcgmField is a DCGM field with numbers about a GPU.
type dcgmField struct {
	legacy, renamed string // its names up to DCGM 4.5, and from 4.6 on
	why             string // why it is not read, "" if it is
}

// dcgmFields returns all of them, from testdata/realstack/fields.tsv.
func dcgmFields(t *testing.T) (all []dcgmField) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "realstack", "fields.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if line[0] != '#' {
			all = append(all, dcgmField{legacy: cells[1], renamed: cells[2], why: cells[3]})
		}
	}
	return all
}

// countersOf writes a counters file for the exporter, which accepts up to 128 lines.
func countersOf(t *testing.T, choose func(dcgmField) string) string {
	t.Helper()
	var text strings.Builder
	for _, f := range dcgmFields(t) {
		if name := choose(f); name != "" {
			fmt.Fprintf(&text, "%s, gauge, A field.\n", name)
		}
	}
	text.WriteString("DCGM_FI_DRIVER_VERSION, label, Driver version.\n")
	file := filepath.Join(t.TempDir(), "counters.csv")
	writeFile(t, file, text.String())
	return file
}

// The fields that we read, under the names that exporters up to 4.8 ship, and under those of DCGM
// 4.6.
func legacyNames(f dcgmField) string {
	if f.why != "" {
		return ""
	}
	return f.legacy
}

func newNames(f dcgmField) string {
	if f.why != "" {
		return ""
	}
	return f.renamed
}

// absence is an expected series that some ways do not provide.
type absence struct {
	series   *regexp.Regexp
	ways     string
	profiles string // "" means all
	why      string
}

const (
	beforeHopper = "a100 l40s t4"
	blackwell    = "b200 gb200 gb300"
	dmon         = "dcgm dcgm3"
	exporters    = "exporter renamed"
	links5       = `gpu_nvlink_errors_total{kind="(rx_\w+|tx_\w+|recovery_\w+|integrity|symbol|effective)"}|gpu_nvlink_bit_error_ratio.*`
	everywhere   = exporters + " " + dmon + " nvml"
)

func whole(series string) *regexp.Regexp { return regexp.MustCompile("^(" + series + ")$") }

// absences is complete: a series that a row says is absent must be absent, so the table stays true.
var absences = []absence{
	{whole(`gpu_(\w+_active|sm_occupancy|real_utilization)_ratio`), everywhere, beforeHopper,
		"before Hopper, profiling needs NVIDIA's closed module, which the stack lacks"},
	{whole(`gpu_pcie_(transmit|receive)_bytes_per_second`), exporters + " " + dmon, beforeHopper, "the same"},
	{whole(`gpu_nvlink_(transmit|receive)_bytes_per_second`), dmon + " nvml", beforeHopper, "the same"},
	{whole(`gpu_nvlink_limit_bytes_per_second`), exporters, "", "DCGM has no such field"},
	{whole(`gpu_nvlink_limit_bytes_per_second`), dmon, "", "nvidia-smi reports it, which the stack lacks"},
	{whole(`gpu_throttled_seconds_total{reason="(sw_thermal|hw_thermal|hw_power_brake)"}`), everywhere, "",
		"the mock driver has these under the ids of other fields"},
	{whole(`gpu_temperature_margin_celsius`), everywhere, "a100 t4", "newer boards have it"},
	{whole(links5), exporters + " " + dmon, blackwell,
		"with NVLink 5, the mock driver refuses the counters of all links together, which DCGM requests"},
	{whole(`gpu_nvlink_links_active`), exporters + " " + dmon, "", "DCGM reports it per link, in rows that these counters and dmon do not request"},
	{whole(`gpu_nvlink_bit_error_ratio.*`), dmon, "", "dmon prints three decimals, too few for such a ratio"},
	{whole(links5 + `|gpu_temperature_margin_celsius|gpu_fabric_(health|health_mask|manager_status|error|info.*)|gpu_sram_threshold_exceeded`), "dcgm3", "", "3.3.9 has no such fields"},
	{whole(`gpu_xid_last`), exporters + " dcgm nvml", "", "DCGM 4.6 and the driver report nothing before the first XID; 3.3.9 reports 0"},
	{whole(`gpu_(\w+_active|sm_occupancy|real_utilization)_ratio|gpu_(pcie|nvlink)_(transmit|receive)_bytes_per_second`), "dcgm3", blackwell,
		"DCGM 3.3.9 has no profiling for boards that it does not know"},
}

// absenceOf returns the absence of a series for a way and a profile's boards, or nil.
func absenceOf(series, way, profile string) *absence {
	for i, a := range absences {
		if slices.Contains(strings.Fields(a.ways), way) && (a.profiles == "" || slices.Contains(strings.Fields(a.profiles), profile)) &&
			a.series.MatchString(series) {
			return &absences[i]
		}
	}
	return nil
}

// ofTime matches series of time, not of the board.
var ofTime = regexp.MustCompile(`^gpu_(health|observed|real_utilization|real_utilization_known|workload_class)_seconds_total|^gpu_xid_last_change`)

// atRest matches series for which 0 is the same as absence.
var atRest = regexp.MustCompile(`^gpu_(workload_class|health|health_condition|clock_event_active|recommended_action)\b`)

// boardSeries returns our series of one board in an answer, without kpulse_ and the device's
// labels, with their own labels sorted.
func boardSeries(s series, uuid string) map[string]float64 {
	all := map[string]float64{}
	for name, v := range s {
		ls := labelsOf(name)
		family, ours := strings.CutPrefix(ls["__name__"], "kpulse_")
		if !ours || ls["uuid"] != uuid {
			continue
		}
		var own []string
		for _, label := range slices.Sorted(maps.Keys(ls)) {
			if !slices.Contains([]string{"__name__", "hostname", "gpu", "uuid"}, label) {
				own = append(own, fmt.Sprintf("%s=%q", label, ls[label]))
			}
		}
		if own != nil {
			family += "{" + strings.Join(own, ",") + "}"
		}
		if !ofTime.MatchString(family) {
			all[family] = v
		}
	}
	return all
}

// startWays returns the ways to read a profile's boards: the exporter with the names up to 4.8 and
// with those of DCGM 4.6, dcgmi of both releases, and the driver.
func startWays(t *testing.T, profile string) (ways map[string]*child, boards []boardYAML) {
	t.Helper()
	n, old := startRealNode(t, dcgm4, profile), startRealNode(t, dcgm3, profile)
	return map[string]*child{
		"exporter": n.startBehind(t, n.startExporter(t, countersOf(t, legacyNames), nil)),
		"renamed":  n.startBehind(t, n.startExporter(t, countersOf(t, newNames), nil)),
		"dcgm":     n.startDCGM(t, "--dcgm.fields=all"),
		"dcgm3":    old.startDCGM(t, "--dcgm.fields=all"),
		"nvml":     n.startNVML(t),
	}, n.boards(t)
}

// differencesFromTruth lists where the answer of a way differs from the truth of its boards.
func differencesFromTruth(s series, way string, boards []boardYAML) (wrong []string) {
	for _, b := range boards {
		uuid, _ := b.at("uuid").(string)
		got, expected := boardSeries(s, uuid), b.expected(way)
		expected["gpu_health_conditions_read"] = want{float64(len(conditionsOf(got))), 0}
		for _, name := range slices.Sorted(maps.Keys(expected)) {
			w := expected[name]
			v, there := got[name]
			row := absenceOf(name, way, b.profile)
			switch {
			case there && row != nil:
				wrong = append(wrong, fmt.Sprintf("gpu %d: %s is %v, though it should be absent: %s", b.index, name, v, row.why))
			case !there && row == nil && !(w.value == 0 && atRest.MatchString(name)):
				wrong = append(wrong, fmt.Sprintf("gpu %d: no %s, want %v", b.index, name, w.value))
			case there && row == nil && !w.ok(v):
				wrong = append(wrong, fmt.Sprintf("gpu %d: %s is %v, want %v", b.index, name, v, w.value))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(got)) {
			if _, known := expected[name]; !known && !(got[name] == 0 && atRest.MatchString(name)) {
				wrong = append(wrong, fmt.Sprintf("gpu %d: %s is %v, which has no row in truths or absences", b.index, name, got[name]))
			}
		}
	}
	return wrong
}

// conditionsOf returns the health conditions for which a board has a series.
func conditionsOf(board map[string]float64) map[string]bool {
	conditions := map[string]bool{}
	for name := range board {
		if labels, is := strings.CutPrefix(name, `gpu_health_condition{condition="`); is {
			condition, _, _ := strings.Cut(labels, `"`)
			conditions[condition] = true
		}
	}
	return conditions
}

// awaitTruth scrapes a way until its answer is the truth, and fails t if it never is.
func awaitTruth(t *testing.T, c *child, way string, boards []boardYAML) {
	t.Helper()
	var wrong []string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		code, body := page(t, c, "/metrics")
		s, err := parseExposition([]byte(body))
		switch {
		case code != 200:
			wrong = []string{fmt.Sprintf("status %d: %s", code, body)}
		case err != nil:
			wrong = []string{err.Error()}
		default:
			wrong = differencesFromTruth(s, way, boards)
		}
		if wrong == nil {
			return
		}
	}
	t.Errorf("%s of %s:\n%s", way, boards[0].profile, strings.Join(wrong[:min(len(wrong), 60)], "\n"))
}

// TestRealStackWays: with each of the exporter, dcgmi and the driver, our series state the truth
// about the boards of each profile, in all series.
func TestRealStackWays(t *testing.T) {
	t.Parallel()
	for _, profile := range profiles {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			ways, boards := startWays(t, profile)
			var all sync.WaitGroup
			for way, c := range ways {
				all.Go(func() { awaitTruth(t, c, way, boards) })
			}
			all.Wait()
			for _, way := range strings.Fields(exporters) {
				checkUnknown(t, ways[way], way)
			}
		})
	}
}

var vendorName = regexp.MustCompile(`<code>(DCGM_\w+|dcgm_\w+)</code>`)

// checkUnknown: the landing page lists no untranslated family, since each field that is not read
// has a reason.
func checkUnknown(t *testing.T, c *child, way string) {
	t.Helper()
	_, body := page(t, c, "/")
	_, unread, _ := strings.Cut(body, "<dt>Not translated</dt>")
	for _, m := range vendorName.FindAllStringSubmatch(unread, -1) {
		t.Errorf("%s: %s is not translated", way, m[1])
	}
}
