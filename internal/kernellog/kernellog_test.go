package kernellog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a log under test, with one feed for each list of boards.
type bench struct {
	t     *testing.T
	log   *Log
	feeds []*Feed
	frame canonical.Frame

	mu     sync.Mutex
	logged bytes.Buffer
}

// Write collects what is logged.
func (b *bench) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.logged.Write(p)
}

// open opens a log of a machine that has been up for an hour.
func open(t *testing.T, path string, feeds int) *bench {
	t.Helper()
	proc := t.TempDir()
	if err := os.WriteFile(proc+"/uptime", []byte("3600.00 7200.00\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t}
	l, err := Open(Options{Path: path, Proc: proc, MaxAge: 24 * time.Hour, Hostname: "node", Logger: slog.New(slog.NewTextHandler(b, nil))})
	if err != nil {
		t.Fatal(err)
	}
	b.log = l
	for range feeds {
		b.feeds = append(b.feeds, l.Feed(func(d *canonical.Device) bool { return d.Hostname == "node" }))
	}
	return b
}

// run reads the log until the test ends.
func (b *bench) run() {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- b.log.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
}

// take takes what a feed has for boards, as text.
func (b *bench) take(feed int, topology *canonical.Topology) (got []string) {
	b.frame.Topology, b.frame.XIDEvents = topology, b.frame.XIDEvents[:0]
	b.feeds[feed].Take(&b.frame)
	for _, e := range b.frame.XIDEvents {
		if e.Reset {
			got = append(got, topology.At(e.Device).GPU+":reset")
			continue
		}
		got = append(got, fmt.Sprintf("%s:%d×%d", topology.At(e.Device).GPU, e.Code, e.Count))
	}
	return got
}

// await takes until a feed has given n events.
func (b *bench) await(feed int, topology *canonical.Topology, n int) (got []string) {
	b.t.Helper()
	b.until(func() bool { got = append(got, b.take(feed, topology)...); return len(got) >= n }, fmt.Sprintf("%d events", n))
	return got
}

// counted waits until so many XIDs are counted and the log is read to its end: before that,
// a feed holds them back.
func (b *bench) counted(xids uint64) {
	b.t.Helper()
	b.until(func() bool { return b.log.Counts().XIDs == xids && b.log.telling.Load() }, fmt.Sprintf("%d XIDs", xids))
}

func (b *bench) until(done func() bool, what string) {
	b.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("waited for %s; counts %+v", what, b.log.Counts())
		}
	}
}

// boards returns a topology with boards of this machine at 0000:10:00, 0000:20:00, ….
func boards(n int) *canonical.Topology {
	t := &canonical.Topology{Hostname: "node"}
	for i := range n {
		t.Devices = append(t.Devices, canonical.Device{
			Hostname: "node", GPU: fmt.Sprint(i), UUID: fmt.Sprint("GPU-", i), PCIBusID: fmt.Sprintf("00000000:%X0:00.0", i+1), Board: i,
		})
	}
	return t
}

func kmsg(since time.Duration, text string) string {
	return fmt.Sprintf("4,1,%d,-;%s\n", since.Microseconds(), text)
}

func xidLine(board, code int) string {
	return fmt.Sprintf("NVRM: Xid (PCI:0000:%d0:00): %d, pid=%d, name=p, text", board+1, code, 10*code)
}

func write(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "kmsg")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// TestRecordsFromBefore: XIDs that are already in this boot's log count, with their times,
// except those from before the driver was loaded again.
func TestRecordsFromBefore(t *testing.T) {
	path := write(t, kmsg(time.Minute, xidLine(0, 79))+
		kmsg(2*time.Minute, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.65.06")+
		kmsg(50*time.Minute, xidLine(1, 48))+" SUBSYSTEM=pci\n"+kmsg(51*time.Minute, "eth0: up")+"no record\n"+
		kmsg(9*time.Hour, xidLine(0, 63))) // the clocks do not agree: not in the future
	b := open(t, path, 1)
	begun := time.Now()
	b.run()
	if got, want := b.await(0, boards(2), 4), []string{"0:reset", "1:reset", "1:48×1", "0:63×1"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := begun.Sub(b.frame.XIDEvents[2].At); got < 9*time.Minute || got > 11*time.Minute {
		t.Errorf("10 minutes ago is %s ago", got)
	}
	if at := b.frame.XIDEvents[3].At; at.After(time.Now()) {
		t.Errorf("%s is in the future", at)
	}
	// While we read, loading the driver drops nothing: the sources see for themselves that it
	// was gone.
	appendTo(t, path, kmsg(0, xidLine(0, 79))+kmsg(0, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.65.06"))
	b.await(0, boards(2), 1)
	e := b.frame.XIDEvents[0]
	if e.Code != 79 || e.PID != 790 || e.Process != "p" || e.Text != "text" || time.Since(e.At) > time.Hour/2 {
		t.Errorf("%+v", e)
	}
}

func TestOldRecordsAreLeftOut(t *testing.T) {
	path := write(t, kmsg(time.Minute, xidLine(0, 79))+kmsg(50*time.Minute, xidLine(0, 48)))
	b := open(t, path, 1)
	b.log.opts.MaxAge = 30 * time.Minute
	b.run()
	if got, want := b.await(0, boards(1), 1), []string{"0:48×1"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestEachSourceGetsEachOnce: each source gets the XIDs of its boards on this machine, and none
// of another node.
func TestEachSourceGetsEachOnce(t *testing.T) {
	path := write(t, "")
	b := open(t, path, 2)
	first, second := boards(2), boards(1)
	second.Devices[0].Hostname, second.Devices[0].PCIBusID = "other", first.Devices[1].PCIBusID
	second.Absent = []canonical.Device{{Hostname: "node", GPU: "7", PCIBusID: "0000:80:00.0"}}
	b.run()
	appendTo(t, path, kmsg(0, xidLine(1, 13))+kmsg(0, xidLine(7, 79))+kmsg(0, xidLine(1, 13)))
	b.counted(3)
	if got, want := b.take(0, first), []string{"1:13×2"}; !slices.Equal(got, want) {
		t.Errorf("the first source got %v, want %v", got, want)
	}
	if got, want := b.take(1, second), []string{"7:79×1"}; !slices.Equal(got, want) {
		t.Errorf("the second got %v, want %v: the board at the same address is another node's", got, want)
	}
	for feed, topology := range []*canonical.Topology{first, second} {
		if got := b.take(feed, topology); got != nil {
			t.Errorf("feed %d gets again: %v", feed, got)
		}
	}
	if n := b.log.Counts().Unmatched; n != 0 {
		t.Errorf("%d are counted as of no board", n)
	}
}

// TestBoardsThatNobodyReads: their XIDs are listed once, with the severities of the table
// of codes.
func TestBoardsThatNobodyReads(t *testing.T) {
	path := write(t, "")
	b := open(t, path, 2)
	b.run()
	whole := boards(2)
	b.take(0, whole)
	appendTo(t, path, kmsg(0, xidLine(1, 79))+kmsg(0, xidLine(1, 45))+kmsg(0, xidLine(4, 48)))
	b.counted(3)
	left := boards(1) // one fell off the bus
	if got := b.take(0, left); got != nil {
		t.Errorf("got %v", got)
	}
	b.take(1, left)
	b.take(0, whole)
	var got []string
	for _, e := range b.log.Events(nil) {
		got = append(got, fmt.Sprintf("%s %s %d %v %v", e.Hostname, e.PCIBusID, e.Code, e.Severity, e.Action))
	}
	want := []string{"node 0000:20:00 79 fatal reboot_node", "node 0000:20:00 45 sympathetic none", "node 0000:50:00 48 fatal reset_gpu"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if n := b.log.Counts().Unmatched; n != 3 {
		t.Errorf("%d are counted", n)
	}
}

// TestFlood: 100,000 lines do not pile up, take no more memory than a few, and are all
// counted.
func TestFlood(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	b := open(t, path, 1)
	b.run()
	w, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	const lines = 100_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range lines / 1000 {
		var text strings.Builder
		for j := range 1000 {
			text.WriteString(kmsg(0, fmt.Sprintf("NVRM: Xid (PCI:0000:10:00): 95, pid=%d, name=p, line %d", i*1000+j, j)))
		}
		if _, err := w.WriteString(text.String()); err != nil {
			t.Fatal(err)
		}
	}
	b.counted(lines)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	b.take(0, boards(1))
	total := uint64(0)
	for _, e := range b.frame.XIDEvents {
		total += e.Count
	}
	if len(b.frame.XIDEvents) > maxQueue || total != lines {
		t.Errorf("%d events of %d XIDs", len(b.frame.XIDEvents), total)
	}
}

// TestQueueIsBounded: codes and boards beyond the limit are dropped and counted.
func TestQueueIsBounded(t *testing.T) {
	path := write(t, "")
	b := open(t, path, 1)
	var text strings.Builder
	const lines = maxQueue + 50
	for i := range lines {
		text.WriteString(kmsg(0, xidLine(i/canonical.HighestXID, i%canonical.HighestXID+1)))
	}
	appendTo(t, path, text.String())
	b.run()
	b.counted(lines)
	if got := b.take(0, boards(2)); len(got) != maxQueue || b.log.Counts().Dropped != 50 {
		t.Errorf("%d are told and %d dropped", len(got), b.log.Counts().Dropped)
	}
}

func TestSwitchesAreCounted(t *testing.T) {
	line := func(code int, rest string) string {
		return kmsg(0, fmt.Sprintf("nvidia-nvswitch3: SXid (PCI:0000:05:00.0): %d, %s", code, rest))
	}
	b := open(t, write(t, line(12028, "Non-fatal, Link 32")+line(12028, "Severity 0 Engine")+line(24007, "Fatal, Link 1")+line(12028, "Non-fatal, Link 2")), 0)
	b.run()
	b.until(func() bool { return b.log.Counts().SXIDs == 3 }, "three SXIDs")
	want := []canonical.SXIDCount{
		{Hostname: "node", PCIBusID: "0000:05:00", Code: 12028, Count: 2}, {Hostname: "node", PCIBusID: "0000:05:00", Code: 24007, Fatal: true, Count: 1},
	}
	for youth, young := range []bool{true, false, false} { // the last time with the youth of the first
		b.log.opts.Youth = func() time.Duration { return []time.Duration{time.Hour, 0, time.Hour}[youth] }
		shown := slices.Clone(want)
		for i := range shown {
			if young {
				shown[i].Count = 0
			}
		}
		if got := b.log.Switches(nil); !slices.Equal(got, shown) {
			t.Errorf("%v, want %v", got, shown)
		}
	}
	events := b.log.Events(nil)
	if len(events) != 3 || events[1].Severity != canonical.SeverityFatal || events[2].Severity == canonical.SeverityFatal ||
		events[0].PCIBusID != "0000:05:00" || events[0].Text != "Non-fatal, Link 32" {
		t.Errorf("%+v", events)
	}
	if n := b.log.Counts().Malformed; n != 0 {
		t.Errorf("%d are malformed", n)
	}
}

// TestWhatIsNoXID: such lines are counted, warned of once, and change nothing.
func TestWhatIsNoXID(t *testing.T) {
	b := open(t, write(t,
		"12,1,1,-;"+xidLine(0, 79)+"\n12,1,1,-;"+xidLine(0, 79)+"\n"+ // from a program
			kmsg(0, "NVRM: Xid : 32, Channel ID 0000000d")+"4,x;"+xidLine(0, 79)+"\n"+
			kmsg(0, "nvidia-nvswitch0: SXid (PCI:05): 1, Fatal")+
			kmsg(0, xidLine(0, 48))), 1)
	b.run()
	if got, want := b.await(0, boards(1), 1), []string{"0:48×1"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := b.log.Counts(), (Counts{XIDs: 1, Malformed: 3, Foreign: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range []string{"a program wrote it", "cannot be read"} {
		if n := strings.Count(b.logged.String(), text); n != 1 {
			t.Errorf("%q is logged %d times:\n%s", text, n, b.logged.String())
		}
	}
}

// TestOverrunGoesOn: the kernel says once that records are lost, and then returns the next.
func TestOverrunGoesOn(t *testing.T) {
	b := open(t, write(t, kmsg(0, xidLine(0, 48))), 1)
	lost := false
	b.log.file.system = func(fd int, buf []byte) (int, error) {
		if !lost {
			lost = true
			return -1, syscall.EPIPE
		}
		return syscall.Read(fd, buf)
	}
	b.run()
	b.await(0, boards(1), 1)
	if got, want := b.log.Counts(), (Counts{XIDs: 1, Overruns: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestReadFailure(t *testing.T) {
	b := open(t, write(t, ""), 1)
	b.log.file.system = func(int, []byte) (int, error) { return -1, syscall.EIO }
	if err := b.log.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "restart kpulse-proxy to read XIDs") {
		t.Errorf("%v", err)
	}
}

func TestOpenSaysWhatToDo(t *testing.T) {
	if _, err := Open(Options{Path: filepath.Join(t.TempDir(), "none")}); err == nil || !strings.Contains(err.Error(), "leave --kernel-log out") {
		t.Errorf("%v", err)
	}
}

// TestNoneIsTold: while the log is read, boards of this machine get a count of none, in order
// with the counts of other witnesses.
func TestNoneIsTold(t *testing.T) {
	b := open(t, write(t, ""), 1)
	frame := canonical.Frame{Topology: boards(3)}
	frame.Topology.Devices[1].Hostname = "other"
	none := func(want ...canonical.XIDCount) {
		t.Helper()
		frame.XIDs = append(frame.XIDs[:0], canonical.XIDCount{Device: 0, Witness: canonical.WitnessDriver}, canonical.XIDCount{Device: 1, Code: 13, Count: 1})
		b.feeds[0].Take(&frame)
		if !slices.Equal(frame.XIDs, want) {
			t.Errorf("%v, want %v", frame.XIDs, want)
		}
	}
	driver, other := canonical.XIDCount{Device: 0, Witness: canonical.WitnessDriver}, canonical.XIDCount{Device: 1, Code: 13, Count: 1}
	none(driver, other)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.log.Run(ctx) }()
	b.until(b.log.telling.Load, "the log to be read")
	none(driver, canonical.XIDCount{Device: 0, Witness: canonical.WitnessKernel}, other, canonical.XIDCount{Device: 2, Witness: canonical.WitnessKernel})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	none(driver, other)
}

// TestNothingCostsNothing: without XIDs, nothing is allocated.
func TestNothingCostsNothing(t *testing.T) {
	b := open(t, write(t, ""), 1)
	defer b.log.file.close()
	frame := canonical.Frame{Topology: boards(8)}
	b.log.catchUp()
	b.feeds[0].Take(&frame)
	if n := testing.AllocsPerRun(100, func() { frame.XIDs = frame.XIDs[:0]; b.feeds[0].Take(&frame) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	line := []byte(strings.TrimSpace(kmsg(0, "eth0: link is up, and other things that are none of ours")))
	if n := testing.AllocsPerRun(100, func() { b.log.line(line) }); n != 0 {
		t.Errorf("%v allocations for a line of others", n)
	}
}

// TestFatalSwitches: a fatal SXID is a fault of the switch until an operator resolves it. The next one
// is another.
func TestFatalSwitches(t *testing.T) {
	line := func(text string) string { return kmsg(0, "nvidia-nvswitch0: SXid (PCI:0000:03:00.0): "+text) }
	path := write(t, line("22013, Non-fatal, Link 43 Minion Link DLREQ interrupt")+line("20034, Fatal, Link 27 LTSSM Fault Up")+line("20034, Fatal, Link 28"))
	b := open(t, path, 1)
	b.run()
	b.until(func() bool { return b.log.Counts().SXIDs == 3 && b.log.telling.Load() }, "three SXIDs")
	b.take(0, boards(1))
	if s := b.frame.Switches; len(s) != 2 || s[0].Code != 20034 || s[0].PCIBusID != "0000:03:00" || s[1].Code != 0 || s[0].Hostname != "node" {
		t.Errorf("%+v", s)
	}
	if b.log.Resolve("0000:84:00.0") || !b.log.Resolve("00000000:03:00.0") || b.log.Resolve("0000:03:00") {
		t.Error("one switch had something to resolve, once")
	}
	if b.take(0, boards(1)); len(b.frame.Switches) != 1 {
		t.Errorf("resolved, and %+v", b.frame.Switches)
	}
	appendTo(t, path, line("20034, Fatal, Link 27"))
	b.until(func() bool { return len(b.log.Faults(nil)) == 1 }, "another fault")
}

// TestFaultsOfSwitchesAreKept: each change is told, and what an earlier run knew and resolved is no fault again when
// the log is read anew.
func TestFaultsOfSwitchesAreKept(t *testing.T) {
	path := write(t, kmsg(0, "nvidia-nvswitch0: SXid (PCI:0000:03:00.0): 20034, Fatal, Link 27")+kmsg(0, "nvidia-nvswitch1: SXid (PCI:0000:04:00.0): 20034, Fatal, Link 1"))
	var kept []canonical.SwitchFault
	b := open(t, path, 1)
	b.log.opts.Keep = func(now []canonical.SwitchFault) { kept = slices.Clone(now) } // under the log's lock
	b.run()
	b.until(func() bool { return len(b.log.Faults(nil)) == 2 }, "two faults")
	b.log.Resolve("0000:03:00.0")
	again := open(t, path, 1)
	again.log.faults = kept
	again.run()
	again.until(func() bool { return again.log.Counts().SXIDs == 2 && again.log.telling.Load() }, "two SXIDs")
	if got := again.log.Faults(nil); len(got) != 1 || got[0].PCIBusID != "0000:04:00" || len(kept) != 2 || !kept[0].Resolved {
		t.Errorf("%+v; kept %+v", got, kept)
	}
}

// TestTheLatestOfEqualRecordsCounts: while the program was down a code was resolved, and came again. Lines of others that
// are too long for any of the driver are passed over.
func TestTheLatestOfEqualRecordsCounts(t *testing.T) {
	xid := func(ago time.Duration) string { return kmsg(time.Hour-ago, "NVRM: Xid (PCI:0000:10:00): 95, pid=1") }
	path := write(t, xid(25*time.Minute)+"6,1,1,-;"+strings.Repeat("x", 3*bufferSize)+"\n"+xid(time.Minute))
	b := open(t, path, 1)
	b.run()
	b.counted(2)
	b.take(0, boards(1))
	if e := b.frame.XIDEvents; len(e) != 1 || e[0].Count != 2 || time.Since(e[0].At) > 10*time.Minute {
		t.Errorf("%+v", e)
	}
}

// TestRotatedFiles: a file of syslog is followed when it is rotated, and when it is cut.
func TestRotatedFiles(t *testing.T) {
	line := func(code string) string {
		return "Jul 25 16:46:04 n1 kernel: [91134.101988] NVRM: Xid (PCI:0000:10:00): " + code + ", pid=1\n"
	}
	path := write(t, "")
	b := open(t, path, 1)
	var looks atomic.Int64
	b.log.file.system = func(fd int, buf []byte) (int, error) { looks.Add(1); return syscall.Read(fd, buf) }
	b.run()
	b.until(b.log.telling.Load, "the log to be read")
	want := uint64(0)
	for i, rotate := range []func() error{
		func() error { return nil },
		func() error {
			err := errors.Join(os.Rename(path, path+".1"), os.WriteFile(path, nil, 0o600))
			time.Sleep(2 * lookAgain)
			appendTo(t, path+".1", line("119")) // before the logger opens the new file
			want++
			b.counted(want)
			return err
		},
		func() error { return errors.Join(os.Rename(path, path+".2"), os.WriteFile(path, nil, 0o600)) },
		func() error { return os.Truncate(path, 0) },
	} {
		if err := rotate(); err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			n := looks.Load() // a file that was cut and is longer already shows nothing
			b.until(func() bool { return looks.Load() >= n+2 }, "two looks at the file that was cut")
		}
		appendTo(t, path, line("79"))
		want++
		b.counted(want)
		clear(b.log.lost) // the next is another loss
	}
}

// TestOffTheBusWithoutAnXID: such a line counts as an XID 79, once beside a real one. An assertion that
// asks for a reset is an event alone.
func TestOffTheBusWithoutAnXID(t *testing.T) {
	path := write(t, kmsg(0, `NVRM: The NVIDIA GPU 0000:10:00.0\x0aNVRM: (PCI ID: 10de:26b5) installed in this system has\x0aNVRM: fallen off the bus and is not responding to commands.`)+
		kmsg(0, "NVRM: The NVIDIA probe routine failed for 1 device(s).")+
		kmsg(0, "NVRM: GPU 0000:20:00.0: GPU has fallen off the bus.")+kmsg(0, "NVRM: Xid (PCI:0000:20:00): 79, GPU has fallen off the bus.")+
		kmsg(0, "NVRM: GPU4 nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from status 0000:8a:00 kernel_channel.c:2827"))
	b := open(t, path, 1)
	b.run()
	if got, want := b.await(0, boards(2), 2), []string{"0:79×1", "1:79×1"}; !slices.Equal(got, want) || b.log.Counts().XIDs != 2 {
		t.Errorf("%v, want %v; counts %+v", got, want, b.log.Counts())
	}
	if e := b.log.Events(nil); len(e) != 1 || e[0].Kind != canonical.EventDriver || e[0].PCIBusID != "0000:8a:00" || !strings.Contains(e[0].Text, "NV_ERR_RESET_REQUIRED") {
		t.Errorf("%+v", e)
	}
}

// TestLinesOfSyslog: the forms of syslog and dmesg are read too, each with its own time.
func TestLinesOfSyslog(t *testing.T) {
	now := time.Now()
	path := write(t, now.Add(-time.Hour).Format("Jan _2 15:04:05")+" n1 kernel: [ 3134.101988] NVRM: Xid (PCI:0000:10:00): 120, pid='<unknown>', name=<unknown>, GSP Error: Task 1\n"+
		now.Add(-2*time.Hour).Format("[Mon Jan _2 15:04:05 2006]")+" NVRM: Xid (PCI:0000:20:00): 119, pid='<unknown>', name=<unknown>, Timeout waiting for RPC from GSP!\n"+
		now.Add(-3*time.Hour).Format(time.RFC3339Nano)+" n1 kernel: NVRM: Xid (PCI:0000:30:00): 48, pid=7, name=train\n"+
		"[ 1800.308145] NVRM: Xid (PCI:0000:40:00): 79, GPU has fallen off the bus.\n"+
		"Jul 25 16:45:58 n1 train[7]: NVRM: Xid (PCI:0000:10:00): 79, what a program says\n"+
		"NVRM: fallen off the bus and is not responding to commands.\n")
	b := open(t, path, 1) // the machine has been up for an hour
	b.run()
	if got, want := b.await(0, boards(4), 4), []string{"0:120×1", "1:119×1", "2:48×1", "3:79×1"}; !slices.Equal(got, want) || b.log.Counts().XIDs != 4 {
		t.Errorf("%v, want %v; counts %+v", got, want, b.log.Counts())
	}
	for i, hours := range []float64{1, 2, 3, 0.5} {
		if at := now.Sub(b.frame.XIDEvents[i].At).Hours(); at < hours-0.01 || at > hours+0.01 {
			t.Errorf("event %d was %v hours ago, want %v", i, at, hours)
		}
	}
}

// TestFormsOfText: lines of the kernel as rsyslog, journalctl and dmesg write them, each about the loss of a board. One
// in another form is told.
func TestFormsOfText(t *testing.T) {
	const xid, probe, id, lost = "NVRM: Xid (PCI:0000:10:00): 79, GPU has fallen off the bus.\n", "NVRM: The NVIDIA GPU 0000:10:00.0\n",
		"NVRM: (PCI ID: 10de:26b5) installed in this system has\n", "NVRM: fallen off the bus and is not responding to commands.\n"
	now := time.Now()
	syslog, space := now.Format("Jan _2 15:04:05")+" n1 kernel: ", strings.Repeat(" ", 15)
	for what, text := range map[string]string{
		"rsyslog": syslog + xid, "journalctl -o short-precise": now.Format("Jan _2 15:04:05.000000") + " n1 kernel: " + xid,
		"journalctl -o short-iso": now.Format("2006-01-02T15:04:05-0700") + " n1 kernel: " + xid, "dmesg --time-format=iso": now.Format("2006-01-02T15:04:05,000000-07:00 ") + xid,
		"dmesg -x": "kern  :err   : [ 1800.308145] " + xid, "dmesg -r": "<3>[ 1800.308145] " + xid, "dmesg with callers": "[ 1800.308145] [  T123] " + xid,
		"a record of dmesg": "[ 1800.308145] " + probe + space + id + space + lost, "a record of rsyslog": syslog + probe + syslog + id + syslog + lost,
		"a record escaped by rsyslog": syslog + strings.ReplaceAll(probe+id+lost, "\nNVRM", "#012NVRM"),
	} {
		b := open(t, write(t, text), 1)
		b.run()
		if got := b.await(0, boards(1), 1); !slices.Equal(got, []string{"0:79×1"}) || b.log.Counts().XIDs != 1 {
			t.Errorf("%s: %v", what, got)
		}
	}
	b := open(t, write(t, "13:00 "+xid+kmsg(0, xid[:len(xid)-1])), 1)
	b.run()
	if got := b.await(0, boards(1), 1); len(got) != 1 || b.log.Counts().Foreign != 1 {
		t.Errorf("another form: %v, %+v", got, b.log.Counts())
	}
}

// TestFatalRecordSurvivesAFlood: a full queue drops what is not fatal.
func TestFatalRecordSurvivesAFlood(t *testing.T) {
	var text strings.Builder
	for n := range maxQueue + 100 {
		text.WriteString(kmsg(0, fmt.Sprintf("NVRM: Xid (PCI:%04x:77:00): 43, pid=1, name=x", n)))
	}
	b := open(t, write(t, text.String()+kmsg(0, xidLine(0, 79))+text.String()), 1)
	b.run()
	b.counted(2*(maxQueue+100) + 1)
	if got := b.take(0, boards(1)); !slices.Equal(got, []string{"0:79×1"}) {
		t.Errorf("%v", got)
	}
}
