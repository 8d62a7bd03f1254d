//go:build linux

package dcgm

import (
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

func TestKilledChildIsStartedAgain(t *testing.T) {
	w := newWorld(t, dcgmtest.Scenario{})
	w.untilWhole()
	pid := w.starts(",1523")[0].PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another child", func() bool { return len(w.starts(",1523")) == 2 })
	w.until("ticks of the other child", func(*raw.Batch, error) bool { return w.stream(device).Restarts == 1 && w.stream(device).Failure == nil })
	w.untilWhole()
	if n := w.stream(profiling).Restarts; n != 0 {
		t.Errorf("the other stream was restarted %d times", n)
	}
	if exists(pid) {
		t.Error("the child was not reaped")
	}
	if n := w.log.count("WARN", "device", "killed"); n != 1 {
		t.Errorf("%d lines in the log", n)
	}
}

// A child that hangs is killed and restarted. The failure is reported before the
// kill, which takes a while if the child ignores SIGTERM. TestReceiver checks the
// time to detection, which depends on the load here.
func TestHang(t *testing.T) {
	t.Parallel()
	var worlds []*world
	for _, deaf := range []bool{true, false} {
		w := newWorld(t, dcgmtest.Scenario{Failures: []dcgmtest.Failure{{Kind: dcgmtest.Hang, Command: "dmon", After: 5, IgnoreTerm: deaf}}})
		w.backoff = func(int) time.Duration { return time.Hour }
		w.starting.Do(w.start)
		worlds = append(worlds, w)
	}
	for i, w := range worlds { // all hang at the same time
		e := w.untilFailure()
		last := func(fields string) int { // the first may have requested an unknown field
			tries := w.starts(fields)
			return tries[len(tries)-1].PID
		}
		// The failure is of the stream that hangs last; on a busy machine the other was killed by then.
		if i == 0 && !runs(last(",203,")) && !runs(last(",1002,")) {
			t.Error("the failure was reported after the child was killed")
		}
		if e.Failure != source.Broken || !strings.Contains(e.Cause, "hangs, no row for ") ||
			!strings.Contains(e.Remedy, "discovery") || !strings.Contains(e.Remedy, "raise --poll") {
			t.Errorf("%s: %v", e.Failure, e)
		}
	}
	for _, w := range worlds {
		if d, p := w.stream(device), w.stream(profiling); d.Ticks != 5 || p.Ticks != 5 {
			t.Errorf("%d and %d ticks of 5 samples", d.Ticks, p.Ticks)
		}
		w.set()
		w.renew()
		w.untilWhole()
		for _, s := range slices.Concat(w.starts(",203,")[:1], w.starts(",1002,")[:1]) {
			eventually(t, "the end of the child", func() bool { return !exists(s.PID) })
		}
	}
}

func TestHostEngineRestart(t *testing.T) {
	w := newWorld(t, dcgmtest.Scenario{})
	w.untilWhole()
	w.set(dcgmtest.Failure{Kind: dcgmtest.HostEngineDies}, dcgmtest.Failure{Kind: dcgmtest.HostEngineDown})
	for range 3 {
		e := w.untilFailure()
		if e.Failure != source.HostEngineUnavailable || !strings.Contains(e.Remedy, "systemctl start nvidia-dcgm") {
			t.Errorf("%s: %v", e.Failure, e)
		}
	}
	w.set()
	w.untilWhole()
	if w.stream(device).Restarts < 1 || w.stream(device).Failure != nil || w.stream(profiling).Failure != nil {
		t.Errorf("%+v", w.Streams(nil))
	}
}

// TestRefused and TestReturns check the failure of each code.
func TestProfilingRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dcgmtest.Scenario{Failures: []dcgmtest.Failure{{Kind: dcgmtest.WatchRefused, Profiling: true, Code: -37}}})
	w.until("the third refusal", func(b *raw.Batch, err error) bool {
		if err != nil {
			t.Errorf("the device fields failed too: %v", err)
		}
		if has(b, "SMACT") {
			t.Error("a profiling field")
		}
		return w.stream(profiling).Restarts >= 2
	})
	if e := w.stream(profiling).Failure; e == nil || e.Failure != source.ReservationDenied || e.Remedy == "" || !strings.Contains(e.Cause, "profiling fields") {
		t.Errorf("failure %v", e)
	}
	w.set()
	w.untilWhole()
	if f := w.stream(profiling).Failure; f != nil {
		t.Errorf("still %v", f)
	}
	if said, again := w.log.count("WARN", "profiling"), w.log.count("delivers again"); said != 1 || again != 1 || w.log.count("")-w.log.count("which is left out")-w.log.count("they are left out") != 2 {
		t.Errorf("said %d times, again %d times", said, again)
	}
	if w.stream(device).Restarts != 0 {
		t.Error("the device stream was started again")
	}
}

// A reading that waits for the profiling stream is released when that fails.
func TestWaitingReadingIsReleased(t *testing.T) {
	w := newWorld(t, dcgmtest.Scenario{}, func(o *Options) { o.Period = time.Hour })
	w.starting.Do(func() {}) // no children
	w.adopt(viewOf(boardsOf(uuid0)))
	f := &feeder{stream: device}
	tk := f.tick(0, "POWER=1")
	tk.epoch = 1
	w.ring.push(tk)
	if w.next(&w.last) {
		t.Error("it did not wait")
	}
	w.failed(w.all[profiling], &source.Error{Failure: source.ReservationDenied})
	w.until("the reading", func(b *raw.Batch, _ error) bool { return has(b, "POWER") })
}

func TestUnknownFieldIsLeftOut(t *testing.T) {
	w := newWorld(t, dcgmtest.Scenario{Failures: []dcgmtest.Failure{{Kind: dcgmtest.UnknownField, Field: 1523}, {Kind: dcgmtest.UnknownField, Field: 1507}}})
	w.untilWhole()
	device := w.starts("-e 100,")
	last := strings.Join(device[len(device)-1].Args, " ")
	if len(device) != 3 || strings.Contains(last, "1523") || strings.Contains(last, "1507") || !strings.Contains(last, ",449") {
		t.Errorf("starts %v", device)
	}
	if one, other := w.log.count("field=1523"), w.log.count("field=1507"); one != 1 || other != 1 {
		t.Errorf("logged %d and %d times", one, other)
	}
	if n := w.stream(0).Restarts; n != 0 { // it had not started before
		t.Errorf("%d restarts", n)
	}
}

// Whatever happens to dcgmi, the error is typed, has a remedy, and passes.
func TestFailuresAreTyped(t *testing.T) {
	tests := []struct {
		name    string
		failure dcgmtest.Failure
		want    source.Failure
		says    string
	}{
		{"no host engine", dcgmtest.Failure{Kind: dcgmtest.HostEngineDown}, source.HostEngineUnavailable, "systemctl start nvidia-dcgm"},
		{"no data", dcgmtest.Failure{Kind: dcgmtest.NoData, Command: "dmon"}, source.Broken, "dcgmi discovery -l"},
		{"dies", dcgmtest.Failure{Kind: dcgmtest.HostEngineDies, After: 2}, source.HostEngineUnavailable, "journalctl"},
		{"killed", dcgmtest.Failure{Kind: dcgmtest.Die, After: 2}, source.Broken, "killed"},
		{"some exit", dcgmtest.Failure{Kind: dcgmtest.Exit, Code: 3, Text: "terrible things\n"}, source.Broken, `status 3: "terrible things"`},
		{"a shell's signal", dcgmtest.Failure{Kind: dcgmtest.Exit, Code: 137}, source.Broken, "killed"},
		{"no library", dcgmtest.Failure{Kind: dcgmtest.Exit, Code: 127, Text: "dcgmi: error while loading shared libraries: libdcgm.so.4\n"}, source.HostEngineUnavailable, "ldd"},
		{"wrapped", dcgmtest.Failure{Kind: dcgmtest.Exit, Code: 1, Text: "Error: Unable to connect to host engine. Host engine connection invalid/disconnected.\n"}, source.HostEngineUnavailable, "--backend=prometheus"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, dcgmtest.Scenario{Failures: []dcgmtest.Failure{tt.failure}})
			e := w.untilFailure()
			if e.Failure != tt.want || !strings.Contains(e.Error(), tt.says) || e.Remedy == "" || strings.ContainsAny(e.Error(), "\n\r") {
				t.Errorf("%s: %v; want %s with %q", e.Failure, e, tt.want, tt.says)
			}
			w.set()
			w.untilWhole()
		})
	}
}

// Pauses grow with every failure in a row, separately for each stream.
func TestPausesGrow(t *testing.T) {
	w := newWorld(t, dcgmtest.Scenario{Failures: []dcgmtest.Failure{{Kind: dcgmtest.HostEngineDown}}})
	var mu sync.Mutex
	asked := map[int]int{}
	w.backoff = func(n int) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		asked[n]++
		if n == 4 {
			return time.Hour
		}
		return time.Millisecond
	}
	times := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return asked[n]
	}
	w.untilFailure()
	eventually(t, "the fourth failures", func() bool { return times(4) == 2 })
	for n := 1; n < 4; n++ {
		if times(n) != 2 {
			t.Errorf("%d streams paused after failure %d", times(n), n)
		}
	}
}

func TestUnsupportedIsNotTriedAgain(t *testing.T) {
	w := newWorld(t, dcgmtest.Scenario{Failures: []dcgmtest.Failure{{Kind: dcgmtest.Exit, Code: 254, Text: "An error occurred trying to parse the command line.\n"}}})
	w.backoff = func(int) time.Duration {
		t.Error("it is retried")
		return time.Hour
	}
	for range 3 {
		if e := w.untilFailure(); e.Failure != source.Unsupported {
			t.Errorf("%s: %v", e.Failure, e)
		}
	}
	if n := len(w.starts("-e 100,")); n != 1 {
		t.Errorf("started %d times", n)
	}
}
