package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/e2e/ports"
)

// readingsOfGPU returns a pattern for a line of one of our families about a GPU.
func readingsOfGPU(family string, gpu int, rest string) string {
	return fmt.Sprintf(`(?m)^kpulse_%s\{hostname="n",gpu="%d",%s`, family, gpu, rest)
}

// awaitAll waits, for each way separately, until its answer has all of the lines.
func awaitAll(t *testing.T, ways map[string]*child, lines ...string) {
	t.Helper()
	var all sync.WaitGroup
	for way, c := range ways {
		all.Go(func() {
			missing := lines
			for end := time.Now().Add(patience); time.Now().Before(end) && len(missing) > 0; time.Sleep(200 * time.Millisecond) {
				_, body := page(t, c, "/metrics")
				missing = nil
				for _, line := range lines {
					if !regexp.MustCompile(line).MatchString(body) {
						missing = append(missing, line)
					}
				}
			}
			for _, line := range missing {
				t.Errorf("%s: no %s", way, line)
			}
		})
	}
	all.Wait()
}

// threeWays returns the three ways to read a node with a running engine.
func (n *realNode) threeWays(t *testing.T, flags ...string) map[string]*child {
	t.Helper()
	return map[string]*child{
		"exporter": n.startBehind(t, n.startExporter(t, countersOf(t, legacyNames), nil), flags...),
		"dcgm":     n.startDCGM(t, flags...),
		"nvml":     n.startNVML(t, flags...),
	}
}

// TestRealStackFaults: each way shows the beginning and the end of boards' faults.
func TestRealStackFaults(t *testing.T) {
	t.Parallel()
	n := startRealNode(t, dcgm4, "h100")
	ways := n.threeWays(t)
	healthy := readingsOfGPU("gpu_temperature_celsius", 7, `.*\} 61$`)
	awaitAll(t, ways, healthy, readingsOfGPU("gpu_real_utilization_ratio", 2, ``))

	n.override(t, `devices:
  "2": {failure: {mode: lost}}
  "3": {failure: {mode: ecc_uncorrectable, xid: {code: 48}}}
  "5": {ecc: {errors: {volatile: {double_bit: {total: 4}}}}, utilization: {gpu: 12}}
  "6": {nvlink_error: {rate: 50}}
  "7": {thermal: {temperature_gpu_c: 99}, clocks_throttle_reasons: {hw_thermal_slowdown: true}}
`)
	awaitAll(t, ways,
		readingsOfGPU("gpu_present", 2, `.*\} 0$`),
		readingsOfGPU("gpu_present", 3, `.*\} 1$`),
		readingsOfGPU("gpu_xid_last", 3, `.*\} 48$`),
		readingsOfGPU("gpu_nvml_utilization_ratio", 5, `.*\} 0.12$`),
		readingsOfGPU("gpu_ecc_errors_total", 5, `.*severity="uncorrectable",scope="volatile"\} 4$`),
		readingsOfGPU("gpu_health_condition", 5, `.*condition="ecc_double_bit",state="crit"\} 1$`),
		readingsOfGPU("gpu_nvlink_errors_total", 6, `.*\} [1-9]`),
		readingsOfGPU("gpu_health_condition", 6, `.*condition="nvlink_errors",state="warn"\} 1$`),
		readingsOfGPU("gpu_temperature_celsius", 7, `.*\} 99$`),
		readingsOfGPU("gpu_health_condition", 7, `.*condition="gpu_temperature",state="hot"\} 1$`),
		readingsOfGPU("gpu_clock_event_active", 7, `.*reason="hw_thermal"\} 1$`),
	)
	for way, c := range ways {
		_, body := page(t, c, "/metrics")
		if line := regexp.MustCompile(readingsOfGPU("gpu_temperature_celsius", 2, `.*`)).FindString(body); line != "" {
			t.Errorf("%s: a board that is lost has %s", way, line)
		}
	}

	n.override(t, "devices: {}\n")
	awaitAll(t, ways, healthy, readingsOfGPU("gpu_present", 2, `.*\} 1$`), readingsOfGPU("gpu_temperature_celsius", 2, `.*\} 61$`),
		readingsOfGPU("gpu_clock_event_active", 7, `.*reason="hw_thermal"\} 0$`))
}

// TestRealStackEngine: the host engine of each release is stopped, restarted, frozen and thawed.
func TestRealStackEngine(t *testing.T) {
	t.Parallel()
	for _, release := range []string{dcgm4, dcgm3} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			n := startRealNode(t, release, "a100")
			c := n.startDCGM(t)
			reads := readingsOfGPU("gpu_temperature_celsius", 0, `.*\} 61$`)
			awaitPage(t, c, "/metrics", 200, reads)

			n.engine.stop(t)
			body := awaitPage(t, c, "/metrics", 502, `host engine`)
			if !strings.Contains(body, "systemctl start nvidia-dcgm") {
				t.Errorf("no remedy: %s", body)
			}
			n.startEngine(t)
			awaitPage(t, c, "/metrics", 200, reads)

			n.engine.freeze()
			awaitPage(t, c, "/metrics", 502, ``)
			n.engine.thaw()
			awaitPage(t, c, "/metrics", 200, reads)
		})
	}
}

// TestRealStackNoEngine: --once waits until dcgmi gives up, and reports the cause and the remedy.
func TestRealStackNoEngine(t *testing.T) {
	t.Parallel()
	for _, release := range []string{dcgm4, dcgm3} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			n := newRealNode(t, release, "t4")
			stdout, stderr, err := n.run(t, "--backend=dcgm", "--once", "--dcgm.host="+ports.Closed)
			for _, words := range []string{"the host engine does not answer", "unable to establish a connection", "systemctl start nvidia-dcgm"} {
				if err == nil || stdout != "" || !strings.Contains(stderr, words) {
					t.Fatalf("%v, without %q: %q, %q", err, words, stdout, stderr)
				}
			}
		})
	}
}

// TestRealStackJobs: the exporter and the program read the same jobs from job files.
func TestRealStackJobs(t *testing.T) {
	t.Parallel()
	jobs := t.TempDir()
	for gpu, text := range map[string]string{"0": "4711\n", "1": "4712\n4713\n", "3": "\n", "4": "  4714 \n"} {
		writeFile(t, filepath.Join(jobs, gpu), text)
	}
	n := startRealNode(t, dcgm4, "l40s")
	ways := map[string]*child{
		"exporter": n.startBehind(t, n.startExporter(t, "", []string{"DCGM_HPC_JOB_MAPPING_DIR=" + jobs})),
		"dcgm":     n.startDCGM(t, "--hpc-job-mapping-dir="+jobs),
		"nvml":     n.startNVML(t, "--hpc-job-mapping-dir="+jobs),
	}
	awaitAll(t, ways, readingsOfGPU("gpu_temperature_celsius", 7, ``), `(?m)^kpulse_allocation_info\{.*hpc_job="4713",[^}]*\} 1$`)
	held := regexp.MustCompile(`(?m)^kpulse_allocation_info\{hostname="n",gpu="(\d)".*hpc_job="([^"]*)"[^}]*\} 1$`)
	for way, c := range ways {
		_, body := page(t, c, "/metrics")
		var got []string
		for _, m := range held.FindAllStringSubmatch(body, -1) {
			got = append(got, m[1]+" "+m[2])
		}
		if strings.Join(got, ", ") != "0 4711, 1 4712, 1 4713, 4 4714" {
			t.Errorf("%s: jobs %q", way, got)
		}
	}
}

// TestRealStackHostname: our series do not take over localhost, which the exporter reports as the
// node's name.
func TestRealStackHostname(t *testing.T) {
	t.Parallel()
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	n := newRealNode(t, dcgm4, "t4")
	n.startEngineTCP(t, "localhost")
	exporter := n.startExporter(t, "", []string{"NODE_NAME="})
	upstream := awaitPage(t, exporter, "/metrics", 200, `DCGM_FI_DEV_GPU_TEMP\{`)
	if !strings.Contains(upstream, `ostname="localhost"`) {
		t.Errorf("the exporter reports another name: %.600s", upstream)
	}
	c := startProxy(t, itself(t), "--series=full", "--source="+exporter.URL+"/metrics")
	body := awaitPage(t, c, "/metrics", 200, `\nkpulse_gpu_temperature_celsius\{`)
	if got := hostnamesOf(t, body); len(got) != 1 || !got[machine] {
		t.Errorf("hostnames %v, want %s", got, machine)
	}
}

// hostnamesOf returns the values of hostname in our GPU series.
func hostnamesOf(t *testing.T, body string) map[string]bool {
	t.Helper()
	s, err := parseExposition([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for name := range s {
		if ls := labelsOf(name); strings.HasPrefix(ls["__name__"], "kpulse_gpu_") {
			all[ls["hostname"]] = true
		}
	}
	return all
}
