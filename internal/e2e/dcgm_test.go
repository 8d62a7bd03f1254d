package e2e

import (
	"context"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
)

// startDCGM runs a proxy on a node whose dcgmi is the fake at exe, with ten samples a
// second unless flags say otherwise.
func startDCGM(t *testing.T, exe string, flags ...string) *child {
	t.Helper()
	cmd := exec.Command(itself(t), append([]string{"--web.listen-address=127.0.0.1:0", "--backend=dcgm", "--node-name=n"}, flags...)...)
	cmd.Env = []string{"PATH=" + filepath.Dir(exe), "KPULSE_POLL=100ms"}
	c, err := startChild(cmd, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop() })
	return c
}

// page requests a path from c.
func page(t *testing.T, c *child, path string) (int, string) {
	t.Helper()
	code, body, err := tryPage(c, path)
	if err != nil {
		t.Fatalf("%v; %s", err, c.Fate())
	}
	return code, body
}

func tryPage(c *child, path string) (code int, body string, err error) {
	res, err := http.Get(c.URL + path)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// awaitPage polls until the answer has the status and matches.
func awaitPage(t *testing.T, c *child, path string, status int, match string) string {
	t.Helper()
	re := regexp.MustCompile(match)
	var code int
	var body string
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		// NVIDIA's exporter cuts an answer off after ten seconds on a busy machine.
		if code, body, err = tryPage(c, path); err == nil && code == status && re.MatchString(body) {
			return body
		}
	}
	t.Fatalf("%s still answers %d (%v), without %s:\n%.1500s; %s", path, code, err, match, body, c.Fate())
	return ""
}

// TestDCGMLostBoards: a board that the host engine calls lost is critical after three readings; of
// one that only has no readings, nothing is known.
func TestDCGMLostBoards(t *testing.T) {
	t.Parallel()
	world := dcgmtest.Scenario{Seed: 7, GPUs: dcgmtest.Boards(3), Failures: []dcgmtest.Failure{{Kind: dcgmtest.GPULost, GPU: 2}}}
	world.GPUs[1].Lost = true
	c := startDCGM(t, dcgmtest.Install(t, world))
	awaitPage(t, c, "/metrics", 200, `kpulse_gpu_power_watts\{[^}]*gpu="0"`)
	awaitHealth(t, c, 1, "crit")
	awaitHealth(t, c, 2, "unknown")
}

func TestDCGMNodeWithoutExporter(t *testing.T) {
	t.Parallel()
	world := dcgmtest.Scenario{Seed: 7, GPUs: dcgmtest.Boards(8)}
	exe := dcgmtest.Install(t, world)
	jobs := t.TempDir()
	if err := os.WriteFile(filepath.Join(jobs, "3"), []byte("4711\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := startDCGM(t, exe, "--hpc-job-mapping-dir="+jobs)
	// The streams arrive independently.
	body := awaitPage(t, c, "/metrics", 200, `(?s)\nkpulse_gpu_temperature_celsius\{.*\nkpulse_gpu_real_utilization_ratio\{`)
	if err := checkExposition([]byte(body)); err != nil {
		t.Error(err)
	}
	s, err := parseExposition([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range []string{"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_SM_ACTIVE", "kpulse_gpu_sm_active_ratio", "kpulse_gpu_info", "kpulse_gpu_temperature_celsius"} {
		if n := len(samplesOf(s, family, nil)); n != 8 {
			t.Errorf("%d samples of %s, want 8", n, family)
		}
	}
	old := map[string]string{"gpu": "3", "UUID": world.GPUs[3].UUID, "modelName": world.GPUs[3].Name, "hostname": "n", "hpc_job": "4711"}
	if len(samplesOf(s, "DCGM_FI_DEV_GPU_TEMP", old)) != 1 {
		t.Error("no DCGM_FI_DEV_GPU_TEMP as the exporter would serve it")
	}
	allocation := map[string]string{"uuid": world.GPUs[3].UUID, "hpc_job": "4711"}
	if len(samplesOf(s, "kpulse_allocation_info", allocation)) != 1 {
		t.Error("the job holds no GPU")
	}
	for _, stream := range []string{"device", "profiling"} {
		if got := samplesOf(s, "kpulse_source_ticks_total", map[string]string{"stream": stream}); len(got) != 1 || got[0] < 1 {
			t.Errorf("ticks of stream %s: %v", stream, got)
		}
	}

	world.Failures = []dcgmtest.Failure{{Kind: dcgmtest.HostEngineDies}, {Kind: dcgmtest.HostEngineDown}}
	world.Write(t, dcgmtest.Beside(exe))
	awaitPage(t, c, "/metrics", 502, `systemctl start nvidia-dcgm`)
	awaitPage(t, c, "/-/ready", 503, `host engine`)
	world.Failures = nil
	world.Write(t, dcgmtest.Beside(exe))
	awaitPage(t, c, "/metrics", 200, `kpulse_source_restarts_total\{[^}]*stream="device"\} [1-9]`)
}

func TestDCGMGoesOnWithoutProfiling(t *testing.T) {
	t.Parallel()
	world := dcgmtest.Scenario{
		GPUs:     dcgmtest.Boards(2),
		Failures: []dcgmtest.Failure{{Kind: dcgmtest.WatchRefused, Profiling: true, Code: -37}},
	}
	exe := dcgmtest.Install(t, world)
	c := startDCGM(t, exe, "--poll=10ms")
	body := awaitPage(t, c, "/metrics", 200, `kpulse_gpu_temperature_celsius`)
	for _, want := range []string{
		`kpulse_source_field_missing{source="dcgmi",backend="dcgm",field="gpu_sm_active_ratio"} 1`,
		`kpulse_gpu_workload_class{hostname="n",gpu="0",uuid="` + world.GPUs[0].UUID + `",class="unknown",bottleneck="unknown"} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(body, "\nkpulse_gpu_real_utilization_ratio") {
		t.Error("real utilization without profiling")
	}
	awaitPage(t, c, "/", 200, `Stream profiling.*dcgmi profile --pause`)
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"--poll is raised", "readings continue without it"} {
		if strings.Count(c.Logged(), want) != 1 {
			t.Errorf("the log should contain once: %s:\n%s", want, c.Logged())
		}
	}
}

func TestDCGMCannotStart(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "dcgmi")
	barred := filepath.Join(t.TempDir(), "dcgmi")
	if err := os.WriteFile(barred, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := dcgmtest.Install(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(8)})
	for _, c := range []struct {
		name, exe string
		flags     []string
		stderr    []string
	}{
		{"missing", empty, nil, []string{"dcgmi", "datacenter-gpu-manager"}},
		{"not executable", barred, nil, []string{"dcgmi was not found", "executable for this user"}},
		{"no such GPU", whole, []string{"--gpus=99"}, []string{"there is no GPU 99", "0,1,2,3,4,5,6,7"}},
		{"no GPU at all", whole, []string{"--gpus=fast"}, []string{`"fast" is not a GPU`, "0,2-3"}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		cmd := exec.CommandContext(ctx, itself(t), append([]string{"--web.listen-address=127.0.0.1:0", "--backend=dcgm"}, c.flags...)...)
		cmd.Env = []string{"PATH=" + filepath.Dir(c.exe)}
		out, _ := cmd.CombinedOutput()
		cancel()
		if code := cmd.ProcessState.ExitCode(); code != 1 {
			t.Errorf("%s: exit code %d, want %d:\n%s", c.name, code, 1, out)
		}
		for _, want := range c.stderr {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: the error lacks %s:\n%s", c.name, want, out)
			}
		}
	}
}

// TestDCGMRecordingPlaysTheSame: a recording of dcgmi yields the same GPU series.
func TestDCGMRecordingPlaysTheSame(t *testing.T) {
	slow.Test(t, "needs a machine that keeps up with ten ticks a second")
	t.Parallel()
	exe := dcgmtest.Install(t, dcgmtest.Scenario{Seed: 5, GPUs: []dcgmtest.GPU{dcgmtest.Boards(2)[0], dcgmtest.Boards(2)[1].Cut(2)}})
	file := filepath.Join(t.TempDir(), "node.rec")
	c := startDCGM(t, exe, "--record="+file, "--series=full")
	awaitPage(t, c, "/metrics", 200, `kpulse_source_ticks_total\{[^}]*stream="device"\} ([5-9]|\d\d)`)
	scrapes := map[string]bool{} // a slow recorder may miss a tick
	for range 5 {
		_, live := page(t, c, "/metrics")
		scrapes[readingsOf(live)] = true
		time.Sleep(150 * time.Millisecond)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	want, matched := slices.Collect(maps.Keys(scrapes))[0], false
	play(t, func() (source.Source, error) { return recording.Open(file, recording.Options{Loop: true}) }, 20*time.Millisecond, 10*time.Second, func(_ time.Time, exposition []byte) {
		matched = matched || scrapes[readingsOf(string(exposition))]
	})
	if !matched || strings.Count(want, "\n") < 50 {
		t.Errorf("no tick of the recording equals a scrape:\n%.2000s", want)
	}
}

// readingsOf returns the series of GPUs at one instant.
func readingsOf(exposition string) string {
	var kept strings.Builder
	for line := range strings.Lines(exposition) {
		if strings.HasPrefix(line, "kpulse_gpu_") && !strings.Contains(line, "_seconds") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
