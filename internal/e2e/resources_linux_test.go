package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// TestMemoryLimitFollowsCgroup: GOMEMLIMIT is 85 % of the limit of the cgroup, or of one
// around it, unless the variable is set.
func TestMemoryLimitFollowsCgroup(t *testing.T) {
	const limit = 512 << 20
	inner := limitedCgroup(t, limit)
	for environment, want := range map[string]float64{"": 0.85 * limit, "100MiB": 100 << 20} {
		cmd := exec.Command("/bin/sh", "-c", `echo $$ > "$0"; exec kpulse-proxy --backend=replay --web.listen-address=127.0.0.1:0`, filepath.Join(inner, "cgroup.procs"))
		cmd.Env = append(os.Environ(), "GOMEMLIMIT="+environment)
		c, err := startChild(cmd, filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		_, telemetry := page(t, c, "/-/metrics")
		c.Stop()
		_, rest, _ := strings.Cut(telemetry, "\ngo_gc_gomemlimit_bytes ")
		text, _, _ := strings.Cut(rest, "\n")
		if got, err := strconv.ParseFloat(text, 64); err != nil || got < want-1 || got > want+1 {
			t.Errorf("GOMEMLIMIT=%q: /-/metrics says %q, want %v", environment, text, want)
		}
	}
}

// TestMemoryLimitOfTheChart: the largest answer that is read of an exporter, with as many clients as are answered at a time,
// fits into the chart's memory limit.
func TestMemoryLimitOfTheChart(t *testing.T) {
	slow.Test(t, "reads 63 MiB for 40 clients")
	limits, _ := readYAML(t, chart+"/values.yaml")["resources"].(map[string]any)["limits"].(map[string]any)
	mebibytes, err := strconv.ParseFloat(strings.TrimSuffix(limits["memory"].(string), "Mi"), 64)
	if err != nil {
		t.Fatal(err)
	}
	var body bytes.Buffer
	for f := range 60 {
		for i := range 4000 {
			fmt.Fprintf(&body, "DCGM_FI_DEV_MADE_UP_%d{gpu=\"%d\",UUID=\"GPU-%08x-0000-0000-0000-000000000000\",device=\"nvidia%d\",modelName=\"NVIDIA H100 80GB HBM3\",GPU_I_PROFILE=\"1g.10gb\",GPU_I_ID=\"%d\",Hostname=\"node-0\",container=\"main\",namespace=\"team-%d\",pod=\"training-with-a-long-name-%d\"} %d.5\n",
				f, i/250, i/250, i/250, i%250, i%7, i, i%100)
		}
	}
	if size := body.Len() >> 20; size < 60 || size >= 64 {
		t.Fatalf("the body has %d MiB", size)
	}
	up := startUpstream(func() ([]byte, error) { return body.Bytes(), nil })
	defer up.stop()
	t.Setenv("GOMEMLIMIT", fmt.Sprintf("%.0fMiB", 0.85*mebibytes))
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--source.timeout=100s")
	defer c.Stop()
	scrapes(t, c, 40, 5, true)
	if peak := peakMemory(t, c); peak > mebibytes {
		t.Errorf("the proxy took %.0f MiB, and the limit is %.0f", peak, mebibytes)
	} else {
		t.Logf("%.0f of %.0f MiB", peak, mebibytes)
	}
}

// limitedCgroup returns a cgroup inside one with a memory limit. The test is skipped where it
// cannot create one.
func limitedCgroup(t *testing.T, limit int) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil || strings.Contains(string(text), ":memory:") {
		t.Skip("needs cgroups of version 2 for memory; host.TestMemoryLimit reads made-up ones")
	}
	const root, file = "/sys/fs/cgroup", "memory.max"
	_, own, _ := strings.Cut(string(text), "0::")
	own, _, _ = strings.Cut(own, "\n")
	outer := filepath.Join(root, own, "kpulse-"+strconv.Itoa(os.Getpid()))
	inner := filepath.Join(outer, "inner")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Skipf("needs the right to create cgroups, as root: %v", err)
	}
	t.Cleanup(func() {
		for _, dir := range []string{inner, outer} {
			var err error
			for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				if err = os.Remove(dir); err == nil {
					break
				}
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	if err := os.WriteFile(filepath.Join(outer, file), []byte(strconv.Itoa(limit)), 0); err != nil {
		t.Skipf("needs the right to limit the memory of a cgroup: %v", err)
	}
	return inner
}

// TestUnknownVariableIsWarnedOf: every mode warns of a mistyped variable, and does not show its
// value.
func TestUnknownVariableIsWarnedOf(t *testing.T) {
	t.Setenv("KPULSE_SOURC", "http://name:secret@node:9400/metrics")
	checkWarning := func(mode, log string) {
		if strings.Count(log, "did you mean KPULSE_SOURCE?") != 1 || !strings.Contains(log, "KPULSE_SOURC ") || strings.Contains(log, "secret") {
			t.Errorf("%s: the log does not name the variable once, or has its value:\n%s", mode, log)
		}
	}
	c := startProxy(t, itself(t), "--backend=replay")
	awaitLog(t, c, "did you mean KPULSE_SOURCE?")
	checkWarning("serve", c.Logged())
	for _, mode := range []string{"--once", "--once --export", "--config.show", "check health"} {
		var stderr strings.Builder
		cmd := exec.CommandContext(t.Context(), itself(t), append(strings.Fields(mode), "--backend=replay")...)
		cmd.Stderr = &stderr
		_ = cmd.Run() // the demo has GPUs that are crit
		checkWarning(mode, stderr.String())
	}
}
