package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/nvml/nvmltest"
)

// TestNVMLFaults makes GPU 1 of two fail while the program runs: GPU 0 is still served, and the
// landing page names the problem. Only a GPU that the driver calls lost is critical at once: of one
// whose driver does not answer, nothing is known.
func TestNVMLFaults(t *testing.T) {
	t.Parallel()
	library := nvmltest.Build(t)
	for _, tt := range []struct {
		name   string
		change func(*nvmltest.Scenario)
		landing,
		metrics string // of GPU 1
		health string
	}{
		{"a call hangs", func(s *nvmltest.Scenario) {
			s.Faults = []nvmltest.Fault{{Call: "nvmlDeviceGetPowerUsage", GPU: 1}}
		}, `GPU 1: nvmlDeviceGetPowerUsage hangs`, `kpulse_gpu_present\{[^}]*gpu="1"[^}]*\} 0`, "unknown"},
		{"it is lost", func(s *nvmltest.Scenario) { s.GPUs[1]["lost"] = 1 },
			`GPU 1 is lost`, `kpulse_gpu_present\{[^}]*gpu="1"[^}]*\} 0`, "crit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario := filepath.Join(t.TempDir(), "scenario")
			world := nvmltest.H100(2)
			world.Write(t, scenario)
			c := startNVML(t, library, scenario, "--poll=100ms")
			awaitPage(t, c, "/metrics", 200, `kpulse_gpu_power_watts\{[^}]*gpu="1"`)
			tt.change(&world)
			world.Write(t, scenario)
			awaitPage(t, c, "/", 200, tt.landing)
			awaitPage(t, c, "/metrics", 200, tt.metrics)
			awaitHealth(t, c, 1, tt.health)
			awaitPage(t, c, "/metrics", 200, `\nkpulse_gpu_power_watts\{hostname="n",gpu="0".*\n#`) // and none of GPU 1
			world = nvmltest.H100(2)
			world.Write(t, scenario)
			if tt.name != "it is lost" { // a lost GPU is retried after half a minute
				awaitPage(t, c, "/metrics", 200, `kpulse_gpu_power_watts\{[^}]*gpu="1"`)
			}
		})
	}
}

// awaitHealth polls until the health of a missing GPU is as wanted; ten readings later it still is.
func awaitHealth(t *testing.T, c *child, gpu int, health string) {
	t.Helper()
	want := fmt.Sprintf(`\nkpulse_gpu_health\{hostname="n",gpu="%d",uuid="[^"]*",state="%s"\} 1\n`, gpu, health)
	awaitPage(t, c, "/metrics", 200, want)
	ticks := regexp.MustCompile(`kpulse_source_ticks_total\{[^}]*stream="device"\} (\d+)`)
	count := func() int {
		_, body := page(t, c, "/metrics")
		m := ticks.FindStringSubmatch(body)
		if m == nil {
			t.Fatalf("no ticks in\n%s", body)
		}
		n, _ := strconv.Atoi(m[1])
		return n
	}
	for first, end := count(), time.Now().Add(patience); count() < first+10 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
	}
	awaitPage(t, c, "/metrics", 200, want)
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
