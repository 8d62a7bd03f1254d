package e2e

import (
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// itself is the program in this test's binary.
func itself(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("kpulse-proxy") // TestMain made it
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// get asks a child and returns the answer's status.
func get(t testing.TB, url string) int {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Error(err)
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}

// TestTerminateDrains: a scrape that is waiting for the upstream when SIGTERM
// comes still gets its reading, and the program ends well. SIGHUP ends nothing.
func TestTerminateDrains(t *testing.T) {
	t.Parallel()
	up := startUpstream(nil)
	defer up.stop()
	c := startProxy(t, itself(t), "--source="+up.url+"/wait?ms=1500", "--poll=0")
	if err := c.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	status := make(chan int, 1)
	go func() { status <- get(t, c.url+"/metrics") }()
	time.Sleep(500 * time.Millisecond)
	if err := c.stop(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if got := <-status; got != http.StatusOK {
		t.Errorf("the scrape under way got %d, want 200", got)
	}
}

// TestSecondSignalEndsAtOnce: nobody has to wait for the drain.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	up := startUpstream(nil)
	defer up.stop()
	c := startProxy(t, itself(t), "--source="+up.url+"/slow", "--poll=0")
	go func() {
		if res, err := http.Get(c.url + "/metrics"); err == nil { // never answered
			res.Body.Close()
		}
	}()
	time.Sleep(300 * time.Millisecond)
	begun := time.Now()
	for range 2 {
		if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
	}
	err := <-c.done
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() == 0 || time.Since(begun) > 5*time.Second {
		t.Errorf("ended after %s with %v, want at once and by the signal", time.Since(begun), err)
	}
}

// TestOversizedBodiesLeaveMemoryFlat: what one body over the limit costs is all
// that many cost. The first may take the limit of 64 MiB and what growing to it
// leaves behind.
func TestOversizedBodiesLeaveMemoryFlat(t *testing.T) {
	t.Parallel()
	up := startUpstream(nil)
	defer up.stop()
	c := startProxy(t, itself(t), "--source="+up.url+"/huge", "--poll=0")
	var peaks []float64
	for range 4 {
		if got := get(t, c.url+"/metrics"); got != http.StatusBadGateway {
			t.Errorf("got %d, want 502", got)
		}
		peaks = append(peaks, peakMemory(t, c))
	}
	t.Logf("peaks of %.0f MB", peaks)
	if first, last := peaks[0], peaks[len(peaks)-1]; last > 800 || last > first*1.25+16 {
		t.Errorf("peaks of %.0f MB after each scrape, want flat and below 800 (the race detector takes three times as much)", peaks)
	}
}

// TestOneCore: that is the default, and GOMAXPROCS counts where it is a number above 0.
func TestOneCore(t *testing.T) {
	for environment, want := range map[string]string{"": "1", "3": "3", "0": "1", "all": "1"} {
		t.Setenv("GOMAXPROCS", environment)
		c := startProxy(t, itself(t), "--backend=replay")
		if _, telemetry := page(t, c, "/-/metrics"); !strings.Contains(telemetry, "\ngo_sched_gomaxprocs_threads "+want+"\n") {
			t.Errorf("GOMAXPROCS=%q: want %s threads in\n%s", environment, want, telemetry)
		}
	}
}
