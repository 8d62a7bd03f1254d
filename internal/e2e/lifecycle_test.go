package e2e

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// get requests a URL and returns the status of the answer.
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

// startGate starts an exporter that signals the first request, and answers once it is opened.
func startGate(t *testing.T) (url string, asked chan struct{}, open func()) {
	asked, gate := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(asked) })
	open = sync.OnceFunc(func() { close(gate) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once()
		select {
		case <-gate:
			io.WriteString(w, oneGPU)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { open(); server.Close() })
	return server.URL + "/metrics", asked, open
}

// TestTerminateDrains: a scrape that waits for the upstream when SIGTERM arrives still gets its
// reading, and the program exits with 0. SIGHUP does not end the program.
func TestTerminateDrains(t *testing.T) {
	t.Parallel()
	url, asked, open := startGate(t)
	c := startProxy(t, itself(t), "--source="+url, "--poll=0", "--source.timeout=1h")
	if err := c.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	status := make(chan int, 1)
	go func() { status <- get(t, c.URL+"/metrics") }()
	await(t, "the scrape is under way", asked)
	if err := c.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	awaitLog(t, c, "running scrapes may finish")
	open()
	if err := c.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if got := <-status; got != http.StatusOK {
		t.Errorf("the scrape under way got %d, want 200", got)
	}
}

// TestSecondSignalEndsAtOnce: a second signal ends the program without waiting for the drain.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	url, asked, _ := startGate(t)
	c := startProxy(t, itself(t), "--source="+url, "--poll=0", "--source.timeout=1h")
	go func() {
		if res, err := http.Get(c.URL + "/metrics"); err == nil { // never answered
			res.Body.Close()
		}
	}()
	await(t, "a scrape is under way", asked)
	if err := c.Cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	var err error
	for ended := false; !ended; {
		// Not SIGINT, which is ignored if the tests run in the background.
		_ = c.Cmd.Process.Signal(syscall.SIGTERM) // it may just have ended
		select {
		case err = <-c.Done:
			ended = true
		case <-time.After(300 * time.Millisecond):
		}
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if ok {
		status, _ := exit.Sys().(syscall.WaitStatus)
		ok = status.Signaled()
	}
	if !ok || !strings.Contains(c.Logged(), "running scrapes may finish") {
		t.Errorf("ended with %v, want after the first signal, and by the second:\n%s", err, c.Logged())
	}
}

// TestOneCore: GOMAXPROCS is 1 by default; a variable above 0 overrides it.
func TestOneCore(t *testing.T) {
	for environment, want := range map[string]string{"": "1", "3": "3", "0": "1", "all": "1"} {
		t.Setenv("GOMAXPROCS", environment)
		c := startProxy(t, itself(t), "--backend=replay")
		if _, telemetry := page(t, c, "/-/metrics"); !strings.Contains(telemetry, "\ngo_sched_gomaxprocs_threads "+want+"\n") {
			t.Errorf("GOMAXPROCS=%q: want %s threads in\n%s", environment, want, telemetry)
		}
	}
}

func await(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("this does not happen: ", what)
	}
}
