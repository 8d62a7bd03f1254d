package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
	"github.com/kpulse/kpulse-proxy/internal/source/nvml/nvmltest"
)

// countersFile has renamed fields, a label, counters of the exporter's own, and a field that no
// backend provides.
const countersFile = `# a comment
DCGM_FI_DEV_GPU_TEMP,gauge,"Temperature, of the GPU (in C)."
DCGM_FI_PROF_SM_UTIL_RATIO, gauge, SMs
DCGM_FI_DEV_XID_ERRORS, gauge, last XID
DCGM_FI_DEV_SLOWDOWN_TEMP, gauge, where it slows down
DCGM_FI_DEV_VGPU_LICENSE_STATUS, gauge, vGPU License status
DCGM_EXP_XID_ERRORS_COUNT, gauge, XIDs of 5 minutes
DCGM_EXP_XID_ERRORS_TOTAL, counter, XIDs
DCGM_EXP_CLOCK_EVENTS_COUNT, gauge, clock events
DCGM_FI_DRIVER_VERSION, label, Driver Version
`

// writeCounters returns the path of a counters file.
func writeCounters(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "counters.csv")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// headers returns the HELP and TYPE lines of families that are not ours.
func headers(body string) (lines []string) {
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "# ") && !strings.Contains(line, "kpulse_") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// ourSeries returns our GPU series without values, except conditions, which change from reading to
// reading.
func ourSeries(body string) (series []string) {
	for line := range strings.Lines(body) {
		name, _, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, "kpulse_gpu_") && !strings.Contains(name, "health_condition") {
			series = append(series, name)
		}
	}
	slices.Sort(series)
	return series
}

// TestCounters: the file selects DCGM's families, not ours.
func TestCounters(t *testing.T) {
	t.Parallel()
	exe := dcgmtest.Install(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(2)})
	const whole = `(?m)^kpulse_gpu_real_utilization_ratio\{.*gpu="1".* \d`
	// Classes and states of the lean form depend on the reading.
	without := startDCGM(t, exe, "--series=full")
	c := startDCGM(t, exe, "--series=full", "--counters="+writeCounters(t, countersFile))
	awaitPage(t, c, "/metrics", 200, `(?m)^DCGM_FI_DEV_SLOWDOWN_TEMP\{gpu="1",.*\} 89$`)
	var all, body string
	awaitTrue(t, "the same series of ours with and without the file", func() bool { // each stream comes when it comes
		all, body = awaitPage(t, without, "/metrics", 200, whole), awaitPage(t, c, "/metrics", 200, whole)
		return slices.Equal(ourSeries(all), ourSeries(body)) && strings.Contains(all, "DCGM_FI_DEV_POWER_USAGE{")
	})
	if err := checkExposition([]byte(body)); err != nil {
		t.Error(err)
	}
	allowed := []string{
		"# HELP DCGM_FI_DEV_GPU_TEMP Temperature, of the GPU (in C).", "# TYPE DCGM_FI_DEV_GPU_TEMP gauge",
		"# HELP DCGM_FI_PROF_SM_UTIL_RATIO SMs", "# TYPE DCGM_FI_PROF_SM_UTIL_RATIO gauge",
		"# HELP DCGM_FI_DEV_SLOWDOWN_TEMP where it slows down", "# TYPE DCGM_FI_DEV_SLOWDOWN_TEMP gauge",
		"# HELP DCGM_EXP_XID_ERRORS_COUNT XIDs of 5 minutes", "# TYPE DCGM_EXP_XID_ERRORS_COUNT gauge",
	}
	got := headers(body)
	for _, line := range allowed {
		if !slices.Contains(got, line) {
			t.Errorf("no line %s", line)
		}
	}
	if strings.Contains(body, "DCGM_FI_DEV_POWER_USAGE") {
		t.Error("serves what the file does not name")
	}
	if n := len(ourSeries(all)); n < 50 {
		t.Errorf("%d series of ours", n)
	}
	awaitPage(t, c, "/", 200, `(?s)Not available.*DCGM_FI_DEV_VGPU_LICENSE_STATUS`)
	if n := strings.Count(c.Logged(), "lines of the counters file are left out"); n != 1 || !strings.Contains(c.Logged(), "DCGM_FI_DEV_VGPU_LICENSE_STATUS") {
		t.Errorf("the log lists %d times which lines are left out:\n%s", n, c.Logged())
	}
}

// TestCountersOfNVML: each XID that the driver reports is counted, and labels come from the driver.
func TestCountersOfNVML(t *testing.T) {
	t.Parallel()
	library := nvmltest.Build(t)
	scenario := filepath.Join(t.TempDir(), "scenario")
	s := nvmltest.H100(2)
	s.XIDs = []nvmltest.XID{{GPU: 1, Code: 13}, {GPU: 1, Code: 13}, {GPU: 1, Code: 79}}
	s.Write(t, scenario)
	c := startNVML(t, library, scenario, "--counters="+writeCounters(t, countersFile))
	body := awaitPage(t, c, "/metrics", 200, `(?m)^DCGM_EXP_XID_ERRORS_COUNT\{gpu="1",.*,window_size_in_ms="300000",xid="79"\} 1$`)
	for _, want := range []string{
		`(?m)^DCGM_EXP_XID_ERRORS_COUNT\{gpu="0",.*,window_size_in_ms="300000"\} 0$`,
		`(?m)^DCGM_EXP_XID_ERRORS_COUNT\{gpu="1",.*,window_size_in_ms="300000",xid="13"\} 2$`,
		`(?m)^DCGM_EXP_XID_ERRORS_TOTAL\{gpu="1",.*DCGM_FI_DRIVER_VERSION="[0-9.]+",xid="13"\} 2$`,
		`(?m)^DCGM_FI_DEV_XID_ERRORS\{gpu="1",.*,err_code="79"\} 79$`,
	} {
		if !regexp.MustCompile(want).MatchString(body) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
}

// TestCountersRefused: a mistake in the file ends the program with the line number.
func TestCountersRefused(t *testing.T) {
	t.Parallel()
	file := writeCounters(t, "DCGM_FI_DEV_GPU_TEMP, gauge, x\nDCGM_FI_DEV_POWER_USAGE, gaug, y\n")
	missing := filepath.Join(t.TempDir(), "none.csv")
	for _, test := range []struct {
		flags []string
		code  int
		says  string
	}{
		{[]string{"--backend=dcgm", "--counters=" + file}, 1, file + `:2: DCGM_FI_DEV_POWER_USAGE has the type "gaug"; write gauge or counter`},
		{[]string{"--backend=dcgm", "--once", "--counters=" + missing}, 1, missing + ": no such file"},
		{[]string{"--counters=" + file}, 2, "--counters is not for the prometheus backend"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		cmd := exec.CommandContext(ctx, itself(t), append(test.flags, "--web.listen-address=127.0.0.1:0")...)
		out, _ := cmd.CombinedOutput()
		cancel()
		if code := cmd.ProcessState.ExitCode(); code != test.code || !strings.Contains(string(out), test.says) {
			t.Errorf("%v: exit code %d, want %d:\n%s", test.flags, code, test.code, out)
		}
	}
}
