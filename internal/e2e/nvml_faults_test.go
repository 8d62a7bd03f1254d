package e2e

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/nvml/nvmltest"
)

// TestNVMLFaults makes GPU 1 of two fail while the program runs: GPU 0 is still served, and the
// landing page names the problem.
func TestNVMLFaults(t *testing.T) {
	t.Parallel()
	library := nvmltest.Build(t)
	for _, tt := range []struct {
		name   string
		change func(*nvmltest.Scenario)
		landing,
		metrics string // of GPU 1
	}{
		{"a call hangs", func(s *nvmltest.Scenario) {
			s.Faults = []nvmltest.Fault{{Call: "nvmlDeviceGetPowerUsage", GPU: 1}}
		}, `GPU 1: nvmlDeviceGetPowerUsage hangs`, `kpulse_gpu_present\{[^}]*gpu="1"[^}]*\} 0`},
		{"it is lost", func(s *nvmltest.Scenario) { s.GPUs[1]["lost"] = 1 },
			`GPU 1 is lost`, `kpulse_gpu_present\{[^}]*gpu="1"[^}]*\} 0`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario := filepath.Join(t.TempDir(), "scenario")
			world := nvmltest.H100(2)
			world.Write(t, scenario)
			c := startNVML(t, library, scenario)
			awaitPage(t, c, "/metrics", 200, `kpulse_gpu_power_watts\{[^}]*gpu="1"`)
			tt.change(&world)
			world.Write(t, scenario)
			awaitPage(t, c, "/", 200, tt.landing)
			awaitPage(t, c, "/metrics", 200, tt.metrics)
			awaitPage(t, c, "/metrics", 200, `\nkpulse_gpu_power_watts\{hostname="n",gpu="0".*\n#`) // and none of GPU 1
			world = nvmltest.H100(2)
			world.Write(t, scenario)
			if tt.name != "it is lost" { // a lost GPU is retried after half a minute
				awaitPage(t, c, "/metrics", 200, `kpulse_gpu_power_watts\{[^}]*gpu="1"`)
			}
		})
	}
}

// TestOwnFieldsAreNotPassedThrough: fields that no exporter has are in recordings and in our
// series, but not among the exporter's.
func TestOwnFieldsAreNotPassedThrough(t *testing.T) {
	t.Parallel()
	library, dir := nvmltest.Build(t), t.TempDir()
	scenario, recorded := filepath.Join(dir, "scenario"), filepath.Join(dir, "rec")
	world := nvmltest.H100(2)
	world.GPUs[1]["lost"] = 1
	world.Write(t, scenario)
	check := func(c *child, passed bool) {
		t.Helper()
		const ours = `\nkpulse_gpu_nvlink_limit_bytes_per_second\{[^}]*gpu="0"[^}]*\} [1-9](?s:.*)\nkpulse_gpu_present\{[^}]*gpu="1"[^}]*\} 0\n`
		body := awaitPage(t, c, "/metrics", 200, ours)
		if !strings.Contains(body, "\nDCGM_FI_DEV_GPU_TEMP{") {
			t.Error("no series of the exporter")
		}
		for _, family := range []string{"gpu_lost", "nvlink_limit_bytes_per_second"} {
			if lines := regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?`+family+`[ {].*$`).FindAllString(body, -1); !passed && lines != nil {
				t.Errorf("serves %q", lines)
			}
		}
	}
	c := startNVML(t, library, scenario, "--record="+recorded)
	check(c, false)
	c.Stop()
	check(startProxy(t, itself(t), "--backend=replay", "--source="+recorded), true)
	check(startNVML(t, library, scenario), false)
}

// TestNVMLGivesNothing: if no GPU has a reading, the scrape fails and says why.
func TestNVMLGivesNothing(t *testing.T) {
	t.Parallel()
	library := nvmltest.Build(t)
	for _, tt := range []struct {
		name   string
		change func(*nvmltest.Scenario)
		status int
		body   string
	}{
		{"a call hangs", func(s *nvmltest.Scenario) {
			s.Faults = []nvmltest.Fault{{Call: "nvmlDeviceGetTemperature", GPU: nvmltest.All}}
		}, 504, `GPU 0: nvmlDeviceGetTemperature hangs, GPU 1: nvmlDeviceGetTemperature hangs; .*nvidia-smi`},
		{"nothing is supported", func(s *nvmltest.Scenario) { clear(s.GPUs[0]); clear(s.GPUs[1]) }, 502, `NVML gives no reading of any GPU; .*--backend=prometheus`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario := filepath.Join(t.TempDir(), "scenario")
			world := nvmltest.H100(2)
			tt.change(&world)
			world.Write(t, scenario)
			c := startNVML(t, library, scenario)
			awaitPage(t, c, "/metrics", tt.status, tt.body)
			if code, body := scrapeFor(t, c, 30); code != tt.status {
				t.Errorf("%d %s", code, body)
			}
			awaitPage(t, c, "/-/ready", 503, `.`)
			world.Faults = nil
			world.Write(t, scenario)
			if tt.name != "nothing is supported" { // unsupported calls are not repeated
				awaitPage(t, c, "/metrics", 200, `kpulse_gpu_power_watts`)
			}
		})
	}
}

// TestNVMLStartHangs: the program listens, reports the call that it waits for, and ends on SIGTERM;
// it reads as soon as the driver answers.
func TestNVMLStartHangs(t *testing.T) {
	t.Parallel()
	library := nvmltest.Build(t)
	for _, recovers := range []bool{true, false} {
		scenario := filepath.Join(t.TempDir(), "scenario")
		world := nvmltest.H100(1)
		world.Faults = []nvmltest.Fault{{Call: "nvmlInit_v2", GPU: nvmltest.All}}
		world.Write(t, scenario)
		c := startNVML(t, library, scenario)
		awaitPage(t, c, "/metrics", 504, `nvmlInit_v2 has not returned for \d+s; see dmesg`)
		if code := get(t, c.URL+"/-/healthy"); code != 200 {
			t.Errorf("healthy: %d", code)
		}
		if recovers {
			world.Faults = nil
			world.Write(t, scenario)
			awaitPage(t, c, "/metrics", 200, `kpulse_gpu_real_utilization_ratio`)
			continue
		}
		begun := time.Now()
		if err := c.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		select {
		case <-c.Done:
			c.Done <- nil // for the cleanup
			t.Logf("ended %v after SIGTERM", time.Since(begun))
		case <-time.After(patience):
			t.Error("SIGTERM does not end a program whose driver hangs")
		}
	}
}

// TestNVMLOnce: the first reading has values that take two samples.
func TestNVMLOnce(t *testing.T) {
	t.Parallel()
	library, scenario := nvmltest.Build(t), filepath.Join(t.TempDir(), "scenario")
	world := nvmltest.H100(1)
	world.GPUs[0]["gpm.2"] = 87.65
	world.Write(t, scenario)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, itself(t), "--backend=nvml", "--once")
	cmd.Env = []string{"LD_LIBRARY_PATH=" + filepath.Dir(library), nvmltest.ScenarioEnv + "=" + scenario}
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), " 88% ") {
		t.Errorf("%v\n%s%s", err, &out, &log)
	}
}

// TestNVMLVersions: source_info has the versions of driver and NVML, and GPM only if it is
// supported.
func TestNVMLVersions(t *testing.T) {
	t.Parallel()
	library := nvmltest.Build(t)
	for gpm, version := range map[bool]string{true: "driver 580.105.08, NVML [0-9.]+, GPM", false: "driver 580.105.08, NVML [0-9.]+"} {
		scenario := filepath.Join(t.TempDir(), "scenario")
		world := nvmltest.H100(1)
		if !gpm {
			world.GPUs[0]["gpm"] = 0
		}
		world.Write(t, scenario)
		c := startNVML(t, library, scenario)
		body := awaitPage(t, c, "/metrics", 200, `(?m)^kpulse_source_info\{source="nvml",backend="nvml",aggregation="window",version="`+version+`"\} 1$`)
		if gpm != strings.Contains(body, "kpulse_gpu_sm_active_ratio{") {
			t.Errorf("GPM %t, but not SM activity", gpm)
		}
	}
}

// TestNVMLWithoutEvents: landing page and log say that a driver's library cannot report XIDs;
// everything else is read.
func TestNVMLWithoutEvents(t *testing.T) {
	t.Parallel()
	library := nvmltest.BuildWithout(t, "nvmlEventSetWait_v2", "nvmlEventSetWait")
	scenario := filepath.Join(t.TempDir(), "scenario")
	nvmltest.H100(1).Write(t, scenario)
	c := startNVML(t, library, scenario)
	awaitPage(t, c, "/metrics", 200, `kpulse_gpu_temperature_celsius\{`)
	awaitPage(t, c, "/", 200, `NVML does not report XIDs: nvmlEventSetWait`)
	if n := strings.Count(c.Logged(), "does not report XIDs"); n != 1 {
		t.Errorf("the log reports it %d times:\n%s", n, c.Logged())
	}
}
