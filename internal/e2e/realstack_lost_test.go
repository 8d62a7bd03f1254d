package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// lostBefore is two boards that the driver has lost before the start.
const lostBefore = `devices:
  "2": {failure: {mode: lost}}
  "5": {failure: {mode: fallen_off_bus}}
`

// present returns a pattern for kpulse_gpu_present of a board with any uuid.
func present(gpu, value int) string {
	return fmt.Sprintf(`kpulse_gpu_present\{hostname="n",gpu="%d",uuid="[^"]*"\} %d\n`, gpu, value)
}

// TestRealLostBeforeTheStart: a GPU lost before the host engine and the program started is not
// present, in each way that reports it, without --expected-gpus.
func TestRealLostBeforeTheStart(t *testing.T) {
	t.Parallel()
	for way, release := range map[string]string{"dcgm 4": dcgm4, "dcgm 3": dcgm3, "nvml": ""} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			n := newRealNode(t, release, "h100")
			n.override(t, lostBefore)
			flags, start := []string{"--backend=nvml"}, n.startNVML
			if release != "" {
				n.startEngine(t)
				flags, start = []string{"--backend=dcgm", "--dcgm.host=" + n.address}, n.startDCGM
			}
			c := start(t)
			body := awaitPage(t, c, "/metrics", 200, `(?s)`+present(2, 0)+`.*`+present(5, 0))
			if err := checkExposition([]byte(body)); err != nil {
				t.Error(err)
			}
			body = awaitPage(t, c, "/metrics", 200, `(?s)(\nkpulse_gpu_temperature_celsius\{[^\n]*){6}`)
			if n := strings.Count(body, "\nkpulse_gpu_temperature_celsius{"); n != 6 {
				t.Errorf("%d GPUs are read", n)
			}
			for _, gpu := range []int{0, 1, 3, 4, 6, 7} {
				awaitPage(t, c, "/metrics", 200, present(gpu, 1))
			}
			awaitPage(t, c, "/", 200, `(?s)(<dt>Lost</dt><dd class="down">GPU 2 of n|<dt>Missing</dt><dd class="down">GPU 2 of n).*GPU 5 of n`)
			out, errs, err := n.run(t, append(flags, "--once", "--node-name=n")...)
			if err != nil || !strings.Contains(out, "\nlost: GPU 2") || !strings.Contains(out, "\nlost: GPU 5") {
				t.Errorf("%v: %s\n%s", err, out, errs)
			}
			// A lost GPU must not get a job: the proxy tells the scheduler, and so does a one-off
			// reading.
			awaitHealth(t, c, 2, "crit")
			awaitHealth(t, c, 5, "crit")
			n.checkHealth(t, 2, 2, "--url="+c.URL, "--show-all")
			n.checkHealth(t, 2, 1, "--url="+c.URL, "--gpus=0,1,5")
			n.checkHealth(t, 2, 2, append(flags, "--show-all", "--timeout=2m")...)
		})
	}
}

// checkHealth runs check health, and checks its exit code and the number of lost GPUs. The mock
// driver's other GPUs warn: each has a row whose repair waits for a reset.
func (n *realNode) checkHealth(t *testing.T, exit, gone int, flags ...string) {
	t.Helper()
	out, errs, err := n.run(t, append([]string{"check", "health"}, flags...)...)
	code := 0
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		code = failed.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if code != exit || strings.Count(out, "  no longer seen") != gone {
		t.Errorf("check health %s: exit %d, want %d with %d gone:\n%s%s", flags, code, exit, gone, out, errs)
	}
}

// TestRealGPUThatComesBack: a GPU lost before the start is read once it is back.
func TestRealGPUThatComesBack(t *testing.T) {
	t.Parallel()
	n := newRealNode(t, "", "h100")
	n.override(t, lostBefore)
	c := n.startNVML(t)
	awaitPage(t, c, "/metrics", 200, present(5, 0))
	awaitHealth(t, c, 2, "crit")
	awaitHealth(t, c, 5, "crit")
	n.checkHealth(t, 2, 2, "--url="+c.URL, "--show-all")
	n.override(t, "devices: {}\n")
	awaitPage(t, c, "/metrics", 200, `(?s)`+present(2, 1)+`.*`+present(5, 1)) // it is retried after half a minute
	n.checkHealth(t, 1, 0, "--url="+c.URL, "--show-all")
}

// TestRealWithoutSwitches: the host engine's NvSwitch module is not loaded, so discovery fails
// after its list of GPUs. The GPUs are read.
func TestRealWithoutSwitches(t *testing.T) {
	t.Parallel()
	for release, flags := range map[string][]string{dcgm4: {"--denylist-modules", "1"}, dcgm3: nil} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			n := startRealNode(t, release, "h100", flags...)
			c := n.startDCGM(t)
			awaitPage(t, c, "/metrics", 200, `(?s)`+present(0, 1)+`.*`+present(7, 1))
		})
	}
}

// TestRealWithoutDriver: a host engine started without a driver sees no GPU. The engine is not at
// fault, so the remedy is not to start it. Restarted with a driver, it has GPUs.
func TestRealWithoutDriver(t *testing.T) {
	t.Parallel()
	for _, release := range []string{dcgm4, dcgm3} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			n := newRealNode(t, release, "h100")
			n.driverless = true
			n.startEngine(t)
			c := n.startDCGM(t)
			body := awaitPage(t, c, "/metrics", 502, `the driver.*nvidia-smi -L`)
			if strings.Contains(body, "went away") || strings.Contains(body, "start it") {
				t.Error(body)
			}
			n.checkHealth(t, 3, 0, "--backend=dcgm", "--dcgm.host="+n.address)

			n.engine.stop(t)
			n.driverless = false
			n.startEngine(t)
			awaitPage(t, c, "/metrics", 200, present(7, 1))
		})
	}
}
