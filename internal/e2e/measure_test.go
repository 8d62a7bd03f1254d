package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// measured holds the results of a measurement's rounds, in ascending order.
type measured []float64

// measure returns the results of f in some rounds. f compares within a round, so a noisy machine
// disturbs both sides equally.
func measure(rounds int, f func() float64) measured {
	m := make(measured, rounds)
	for i := range m {
		m[i] = f()
	}
	slices.Sort(m)
	return m
}

// quartile returns the first (1), the median (2) or the third (3) of the rounds.
func (m measured) quartile(n int) float64 { return m[(len(m)-1)*n/4] }

// timeOf returns the CPU seconds that this process, with its garbage collector, takes for n calls
// of f.
func timeOf(n int, f func()) float64 {
	begun := processorTime()
	for range n {
		f()
	}
	return (processorTime() - begun).Seconds()
}

func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// buildProxy builds the program as released: the test's own binary is larger.
func buildProxy(t *testing.T) string {
	binary := filepath.Join(t.TempDir(), "kpulse-proxy")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "../../cmd/kpulse-proxy")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// scrapes scrapes a child n times with each of several clients, and returns all latencies.
func scrapes(t testing.TB, c *child, clients, n int, gzip bool) []time.Duration {
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			transport := &http.Transport{DisableCompression: true}
			defer transport.CloseIdleConnections()
			for range n {
				begun := time.Now()
				if err := scrapeOnce(transport, c.URL, gzip); err != nil {
					t.Error(err)
					return
				}
				took := time.Since(begun)
				mu.Lock()
				all = append(all, took)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return all
}

func scrapeOnce(transport http.RoundTripper, url string, gzip bool) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url+"/metrics", http.NoBody)
	if err != nil {
		return err
	}
	if gzip {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// keptScrape returns a function that scrapes c on a connection kept open until t ends.
func keptScrape(t testing.TB, c *child, gzip bool) func() {
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return func() {
		if err := scrapeOnce(transport, c.URL, gzip); err != nil {
			t.Error(err)
		}
	}
}

// cpuOf returns the CPU seconds that a child uses during f.
func cpuOf(t testing.TB, c *child, f func()) float64 {
	before := cpuTime(t, c)
	f()
	return float64(cpuTime(t, c)-before) / 1e9
}

// cpuTime returns the CPU time in nanoseconds that a child has used, from its threads' schedstat.
func cpuTime(t testing.TB, c *child) (total int64) {
	tasks := fmt.Sprintf("/proc/%d/task", c.Cmd.Process.Pid)
	threads, err := os.ReadDir(tasks)
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		b, err := os.ReadFile(tasks + "/" + thread.Name() + "/schedstat")
		if err != nil {
			continue // the thread has just ended
		}
		ns, _ := strconv.ParseInt(strings.Fields(string(b))[0], 10, 64)
		total += ns
	}
	return total
}

// peakMemory returns the peak resident memory of a child so far, in MiB.
func peakMemory(t *testing.T, c *child) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb / 1024
}
