package e2e

import (
	"context"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/nvml/nvmltest"
)

// startNVML runs a proxy on a machine whose driver's library is the fake, which
// says what the scenario file says.
func startNVML(t *testing.T, library, scenario string, flags ...string) *child {
	t.Helper()
	cmd := exec.Command(itself(t), append([]string{"--web.listen-address=127.0.0.1:0", "--backend=nvml", "--node-name=n"}, flags...)...)
	cmd.Env = []string{"LD_LIBRARY_PATH=" + filepath.Dir(library), nvmltest.ScenarioEnv + "=" + scenario}
	c, err := startChild(cmd, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.stop() })
	return c
}

// TestNVMLEqualsTheExporter gives the library and an exporter the same readings
// and compares what becomes of them.
func TestNVMLEqualsTheExporter(t *testing.T) {
	t.Parallel()
	library := nvmltest.Build(t)
	truths := nvmltest.H100(2)
	scenario := filepath.Join(t.TempDir(), "scenario")
	nvmltest.FromTruth(truths).Write(t, scenario)
	c := startNVML(t, library, scenario)
	body := awaitPage(t, c, "/metrics", 200, `(?s)kpulse_gpu_real_utilization_ratio.*kpulse_gpu_nvlink_bytes_per_second|kpulse_gpu_nvlink_bytes_per_second.*kpulse_gpu_real_utilization_ratio`)
	if err := checkExposition([]byte(body)); err != nil {
		t.Error(err)
	}
	p := startProgram(t, "--node-name=n")
	answer, _ := p.scrape(t, nvmltest.Exposition("n", truths))
	want, got := instant(t, answer), instant(t, []byte(body))
	if len(want) < 100 {
		t.Fatalf("the exporter gives %d series", len(want))
	}
	for name, v := range want {
		g, ok := got[name]
		// Counters of energy and the like go on between two readings.
		if !ok || math.Abs(g-v) > 1e-6*math.Abs(v) {
			t.Errorf("%s is %v (there: %t), of the exporter %v", name, g, ok, v)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s comes of the library alone", name)
		}
	}
}

// instant returns the series of GPUs that say how they are, but not what was
// counted over time.
func instant(t *testing.T, body []byte) series {
	t.Helper()
	s, err := parseExposition(body)
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(s, func(name string, _ float64) bool {
		family := labelsOf(name)["__name__"]
		return !strings.HasPrefix(family, "kpulse_gpu_") || strings.HasSuffix(family, "_seconds_total") && family != "kpulse_gpu_throttled_seconds_total" || strings.Contains(family, "timestamp") ||
			family == "kpulse_gpu_xid_changes_total"
	})
	return s
}

func TestNVMLCannotStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, itself(t), "--web.listen-address=127.0.0.1:0", "--backend=nvml")
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+t.TempDir())
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), "--backend=") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
