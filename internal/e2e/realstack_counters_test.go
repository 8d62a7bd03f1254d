package e2e

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// exporterLabels matches what differs between two clients of one engine: the value, the exporter's
// hostname, and its texts of XIDs, which we lack.
var exporterLabels = regexp.MustCompile(`,hostname="[^"]*"|,err_msg="[^"]*"|\} .*`)

// upstreamLines returns the lines that are not ours, HELP and TYPE included, without values.
func upstreamLines(body string) (lines []string) {
	for line := range strings.Lines(body) {
		if !strings.Contains(line, "kpulse_") {
			lines = append(lines, exporterLabels.ReplaceAllString(strings.TrimSpace(line), ""))
		}
	}
	return lines
}

// TestRealStackCounters: with one engine and one counters file, the exporter and the program serve
// the same lines except for values: order of families, HELP, TYPE, and every series and label.
func TestRealStackCounters(t *testing.T) {
	t.Parallel()
	n := startRealNode(t, dcgm4, "h100")
	standard, err := os.ReadFile(filepath.Join(n.stack, "configs", "default-counters.csv"))
	if err != nil {
		t.Fatal(err)
	}
	file := writeCounters(t, string(standard)+`DCGM_EXP_XID_ERRORS_COUNT, gauge, XIDs
DCGM_EXP_CLOCK_EVENTS_COUNT,counter,"clock events, of 5 minutes"
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS, gauge, reasons
DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS, gauge, limit
DCGM_FI_PROF_SM_ACTIVE, gauge, SMs
`)
	exporter := n.startExporter(t, file, nil)
	ways := map[string]*child{"dcgm": n.startDCGM(t, "--counters="+file), "nvml": n.startNVML(t, "--counters="+file)}
	for _, c := range ways {
		awaitPage(t, c, "/metrics", 200, `DCGM_EXP_XID_ERRORS_COUNT\{`)
	}
	awaitPage(t, exporter, "/metrics", 200, `DCGM_EXP_XID_ERRORS_COUNT\{`)
	n.override(t, `devices:
  "3": {failure: {mode: ecc_uncorrectable, xid: {code: 48}}}
  "7": {clocks_throttle_reasons: {hw_thermal_slowdown: true}}
`)
	for way, c := range ways {
		var theirs, ours []string
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
			ours = upstreamLines(awaitPage(t, c, "/metrics", 200, `DCGM_EXP_XID_ERRORS_COUNT\{gpu="3",.*xid="48"\} 1\n(?s:.*)clock_event="hw_thermal"`))
			theirs = upstreamLines(awaitPage(t, exporter, "/metrics", 200, `xid="48"\} 1\n(?s:.*)clock_event="hw_thermal"`))
			if slices.Equal(sorted(ours), sorted(theirs)) {
				break
			}
		}
		if missing, more := without(theirs, ours), without(ours, theirs); len(missing)+len(more) > 0 || len(theirs) < 200 {
			t.Errorf("%s: of %d lines we lack %d, such as %.300q, and have %d others, such as %.300q", way, len(theirs), len(missing), missing, len(more), more)
		}
		if !slices.Equal(familiesOf(ours), familiesOf(theirs)) {
			t.Errorf("%s: families in the order\n%v, want\n%v", way, familiesOf(ours), familiesOf(theirs))
		}
	}
}

// baseUnitFields are fields of exporter 4.9, their previous names, and the factor from the old unit
// to the new one (release notes of 4.9.0).
var baseUnitFields = []struct {
	base, before string
	each         float64
}{
	{"DCGM_FI_DEV_SM_CLOCK_HERTZ", "DCGM_FI_DEV_SM_CLOCK", 1e6},
	{"DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", "DCGM_FI_DEV_MEM_CLOCK", 1e6},
	{"DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1e-3},
	{"DCGM_FI_DEV_GPU_UTIL_RATIO", "DCGM_FI_DEV_GPU_UTIL", 1e-2},
	{"DCGM_FI_DEV_MEMORY_UTIL_RATIO", "DCGM_FI_DEV_MEM_COPY_UTIL", 1e-2},
	{"DCGM_FI_DEV_GPU_ENC_UTIL_RATIO", "DCGM_FI_DEV_ENC_UTIL", 1e-2},
	{"DCGM_FI_DEV_GPU_DEC_UTIL_RATIO", "DCGM_FI_DEV_DEC_UTIL", 1e-2},
	{"DCGM_FI_DEV_FB_USED_BYTES", "DCGM_FI_DEV_FB_USED", 1 << 20},
	{"DCGM_FI_DEV_FB_FREE_BYTES", "DCGM_FI_DEV_FB_FREE", 1 << 20},
	{"DCGM_FI_DEV_FB_RESERVED_BYTES", "DCGM_FI_DEV_FB_RESERVED", 1 << 20},
	{"DCGM_FI_DEV_FB_CAPACITY_BYTES", "DCGM_FI_DEV_FB_TOTAL", 1 << 20},
	{"DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", 1024000},
	{"DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", "DCGM_FI_DEV_POWER_VIOLATION", 1e-9},
	{"DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL", "DCGM_FI_DEV_THERMAL_VIOLATION", 1e-9},
	{"DCGM_FI_DEV_GPU_TEMP_CELSIUS", "DCGM_FI_DEV_GPU_TEMP", 1},
	{"DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", "DCGM_FI_DEV_MEMORY_TEMP", 1},
	{"DCGM_FI_DEV_BOARD_POWER_WATTS", "DCGM_FI_DEV_POWER_USAGE", 1},
	{"DCGM_FI_DEV_PCIE_REPLAY_TOTAL", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 1},
	{"DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 1},
	{"DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL", "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", 1},
	{"DCGM_FI_DEV_ROW_REMAP_FAILED", "DCGM_FI_DEV_ROW_REMAP_FAILURE", 1},
	{"DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1},
	{"DCGM_FI_PROF_TENSOR_UTIL_RATIO", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1},
	{"DCGM_FI_PROF_DRAM_UTIL_RATIO", "DCGM_FI_PROF_DRAM_ACTIVE", 1},
}

// TestRealStackBaseUnits: a counters file of exporter 4.9 is served in its units, consistent with
// the older names beside them.
func TestRealStackBaseUnits(t *testing.T) {
	t.Parallel()
	n := startRealNode(t, dcgm4, "h100")
	var lines strings.Builder
	for _, f := range baseUnitFields {
		fmt.Fprintf(&lines, "%s, gauge, new\n%s, gauge, old\n", f.base, f.before)
	}
	file := writeCounters(t, lines.String())
	ways := map[string]*child{"dcgm": n.startDCGM(t, "--counters="+file), "nvml": n.startNVML(t, "--counters="+file)}
	for way, c := range ways {
		// The driver's rates need two samples, and the mock's are 0 now and then.
		body := awaitPage(t, c, "/metrics", 200, `\nDCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND\{[^\n]*\} [1-9](?s:.*)\nDCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND\{gpu="7"`)
		if err := checkExposition([]byte(body)); err != nil {
			t.Errorf("%s: %v", way, err)
		}
		for _, f := range baseUnitFields {
			for gpu := range 8 {
				labels := map[string]string{"gpu": strconv.Itoa(gpu)}
				got, before := theValue(t, body, f.base, labels), theValue(t, body, f.before, labels)
				if want := before * f.each; math.Abs(got-want) > 1e-9*want || want == 0 && f.each != 1 && f.each != 1e-9 && !strings.Contains(f.before, "C_UTIL") && !strings.Contains(f.before, "NVLINK") {
					t.Errorf("%s: GPU %d has %s %v, which is %v of %s", way, gpu, f.base, got, before, f.before)
				}
			}
		}
		if text := c.Logged(); strings.Contains(text, "left out") {
			t.Errorf("%s: %s", way, text)
		}
	}
}

// TestRealStackRenderedHeaders: --compat=4.8 has a HELP, and the exporter's TYPE, for every family of its counters file,
// commented ones included.
func TestRealStackRenderedHeaders(t *testing.T) {
	t.Parallel()
	n := startRealNode(t, dcgm4, "h100")
	standard, err := os.ReadFile(filepath.Join(n.stack, "configs", "default-counters.csv"))
	if err != nil {
		t.Fatal(err)
	}
	file, named := string(standard), map[string]bool{}
	for _, prefix := range []string{"", "# "} {
		for line := range strings.Lines(string(standard)) {
			name, _, _ := strings.Cut(strings.TrimPrefix(line, prefix), ",")
			if name = strings.TrimSpace(name); strings.HasPrefix(name, "DCGM_FI_") && !named[name] {
				named[name] = true
				if prefix != "" {
					file += strings.TrimPrefix(line, prefix)
				}
			}
		}
	}
	exporter := n.startExporter(t, writeCounters(t, file), nil)
	c := n.startDCGM(t, "--passthrough=off", "--compat=4.8")
	theirs := headers(awaitPage(t, exporter, "/metrics", 200, `\nDCGM_FI_PROF_SM_ACTIVE\{`))
	ours := headers(awaitPage(t, c, "/metrics", 200, `\nDCGM_FI_PROF_SM_ACTIVE\{`))
	both := 0
	for _, line := range theirs {
		kind, rest, _ := strings.Cut(strings.TrimPrefix(line, "# "), " ")
		name, _, _ := strings.Cut(rest, " ")
		at := slices.IndexFunc(ours, func(l string) bool { return strings.HasPrefix(l, "# "+kind+" "+name+" ") })
		if at < 0 {
			continue // we have no such reading
		}
		if both++; kind == "TYPE" && ours[at] != line {
			t.Errorf("%q, the exporter says %q", ours[at], line)
		}
	}
	if both < 2*35 {
		t.Errorf("%d lines of both", both)
	}
}

func sorted(lines []string) []string { return slices.Sorted(slices.Values(lines)) }

// without returns the lines of a that are not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool { return slices.Contains(b, line) })
}

// familiesOf lists the families in the order of their TYPE lines.
func familiesOf(lines []string) (families []string) {
	for _, line := range lines {
		if strings.HasPrefix(line, "# TYPE ") {
			families = append(families, line)
		}
	}
	return families
}

// TestRealStackDriverVersion: without nvidia-smi, the driver's version comes from dcgmi.
func TestRealStackDriverVersion(t *testing.T) {
	t.Parallel()
	for _, release := range []string{dcgm4, dcgm3} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			c := startRealNode(t, release, "a100").startDCGM(t)
			awaitPage(t, c, "/metrics", 200, `(?s)(,driver_version="550\.163\.01"\} 1.*){8}`)
		})
	}
}

// TestRealStackPoll: a server with the dcgm backend samples once a second.
func TestRealStackPoll(t *testing.T) {
	t.Parallel()
	c := startRealNode(t, dcgm4, "h100").startDCGM(t)
	body := awaitPage(t, c, "/metrics?series=full", 200, `\nkpulse_gpu_real_utilization_ratio\{`)
	if got := theValue(t, body, "kpulse_source_period_seconds", nil); got != 1 {
		t.Errorf("a sample every %v s", got)
	}
	if !strings.Contains(body, `aggregation="window"`) {
		t.Error("averages over a second are called points")
	}
}

// TestRealStackJobNames: blanks and empty lines in a job file are not part of the name, for the
// exporter and for the program.
func TestRealStackJobNames(t *testing.T) {
	t.Parallel()
	n := startRealNode(t, dcgm4, "h100")
	dir := t.TempDir()
	for gpu, jobs := range map[string]string{"0": "4711\n", "2": "4712\n4713\n", "3": " 4714 \n\n"} {
		if err := os.WriteFile(filepath.Join(dir, gpu), []byte(jobs), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ours := n.startDCGM(t, "--hpc-job-mapping-dir="+dir)
	behind := n.startBehind(t, n.startExporter(t, "", nil, "--hpc-job-mapping-dir="+dir))
	var infos [2][]string
	for i, c := range []*child{ours, behind} {
		body := awaitPage(t, c, "/metrics", 200, `kpulse_allocation_info\{.*hpc_job="4714"`)
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, "kpulse_allocation_info{") {
				infos[i] = append(infos[i], line)
			}
		}
	}
	if !slices.Equal(infos[0], infos[1]) || len(infos[0]) != 4 {
		t.Errorf("we read\n%s\nthe exporter\n%s", strings.Join(infos[0], ""), strings.Join(infos[1], ""))
	}
}
