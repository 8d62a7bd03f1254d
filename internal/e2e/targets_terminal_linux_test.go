package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// terminalTargets are the costs of the dashboard on a terminal of 160 × 45.
var terminalTargets = []costTarget{
	cpuOfTerminal(16, 500*time.Millisecond, 1), cpuOfTerminal(16, 100*time.Millisecond, 3), cpuOfTerminal(64, 500*time.Millisecond, 2),
	{"terminal: first frame with readings, 16 GPUs", "ms", limits{100}, limits{300},
		"The time is counted from the start of a process, and other programs share the machine.",
		func(r *rig) measured { return measure(9, func() float64 { return firstFrame(r.t, r.binary) })[:1] }}, // the fastest: on a busy machine the others wait for a core
	{"terminal: RSS after an hour, 64 GPUs", "MB", limits{40}, limits{60},
		"Over half of it is pages of the program file, which are resident. The rest is an hour of 64 GPUs, because the dashboard can go back in time.",
		func(r *rig) measured { return measured{r.hour()[0] + r.hour()[1]} }},
	{"terminal: RSS after an hour, 64 GPUs, without pages of the program file", "MB", limits{20}, limits{30}, "An hour of 64 GPUs is kept, because the dashboard can go back in time.",
		func(r *rig) measured { return measured{r.hour()[1]} }},
}

// hour returns the result of hourRSS, measured once for all targets.
func (r *rig) hour() [2]float64 {
	if r.afterHour == [2]float64{} {
		r.afterHour[0], r.afterHour[1] = hourRSS(r.t, r.binary)
	}
	return r.afterHour
}

// cpuOfTerminal returns the target of a terminal that shows a new reading of some GPUs each period.
func cpuOfTerminal(gpus int, period time.Duration, goal float64) costTarget {
	return costTarget{
		what: fmt.Sprintf("terminal: CPU, %d GPUs every %v", gpus, period), unit: "% of a core",
		goal: limits{goal}, worst: limits{3 * goal},
		reason: "A reading is a page of some 60 series a GPU that is parsed, and a frame of 7,200 cells that is drawn and compared with the last.",
		measure: func(r *rig) measured {
			show := startTerminal(r, gpus, period)
			return measure(3, func() float64 { return 100 * show(4*time.Second) })
		},
	}
}

// pty is a pseudo-terminal, and what was written to it.
type pty struct {
	master *os.File
	cmd    *exec.Cmd

	mu  sync.Mutex
	out bytes.Buffer
}

// startOnPTY starts a command on a terminal of 160 × 45 with all colours.
func startOnPTY(t *testing.T, env []string, command ...string) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{master: master, cmd: exec.Command(command[0], command[1:]...)}
	var number, unlock uint32
	size := [4]uint16{45, 160}
	for _, request := range []struct {
		code uintptr
		with unsafe.Pointer
	}{{syscall.TIOCSPTLCK, unsafe.Pointer(&unlock)}, {syscall.TIOCGPTN, unsafe.Pointer(&number)}, {syscall.TIOCSWINSZ, unsafe.Pointer(&size)}} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request.code, uintptr(request.with)); errno != 0 {
			t.Fatal(errno)
		}
	}
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = tty, tty, tty
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.cmd.Env = append(append(os.Environ(), "TERM=xterm-256color", "COLORTERM=truecolor", "LC_ALL=C.UTF-8", "XDG_CONFIG_HOME="+t.TempDir()), env...)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.drain()
	t.Cleanup(p.stop)
	return p
}

func (p *pty) drain() {
	for b := make([]byte, 64<<10); ; {
		n, err := p.master.Read(b)
		p.mu.Lock()
		p.out.Write(b[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *pty) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	_ = p.master.Close()
}

// await waits until the output contains a text.
func (p *pty) await(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		found := bytes.Contains(p.out.Bytes(), []byte(text))
		p.mu.Unlock()
		if found {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no %q on the terminal:\n%s", text, p.out.Bytes())
		}
	}
}

// startPages serves the current nodePage, with a new reading each period.
func startPages(t *testing.T, gpus int, period time.Duration) (url string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		nodePage(w, gpus, period, time.Now().Truncate(period))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/metrics"
}

// startTerminal starts the dashboard for a node with a new reading each period, and returns a
// function that measures its CPU time over a span, as a share of a core.
func startTerminal(r *rig, gpus int, period time.Duration) func(time.Duration) float64 {
	p := startOnPTY(r.t, nil, r.binary, "--tui", "--tui.url="+startPages(r.t, gpus, period))
	p.await(r.t, "GPU-Util")
	c := &child{Cmd: p.cmd}
	time.Sleep(2 * time.Second) // the first readings allocate
	return func(span time.Duration) float64 {
		return cpuOf(r.t, c, func() { time.Sleep(span) }) / span.Seconds()
	}
}

// firstFrame returns the milliseconds until the dashboard shows readings.
func firstFrame(t *testing.T, binary string) float64 {
	url := startPages(t, 16, time.Second)
	begun := time.Now()
	p := startOnPTY(t, nil, binary, "--tui", "--tui.url="+url)
	defer p.stop()
	p.await(t, "GPU-Util")
	return float64(time.Since(begun).Microseconds()) / 1e3
}

// hourRSS returns the dashboard's memory in MB after an hour: pages of the program's file, which
// the system shares and reclaims, and its own. dashboardHour, in another file, plays the hour at
// once.
func hourRSS(t *testing.T, binary string) (file, own float64) {
	ours := startOnPTY(t, nil, binary, "--tui", "--tui.url="+startPages(t, 64, 500*time.Millisecond))
	defer ours.stop()
	ours.await(t, "GPU-Util")
	time.Sleep(2 * time.Second)
	path, err := exec.LookPath("dashboard-hour")
	if err != nil {
		t.Fatal(err)
	}
	done := filepath.Join(t.TempDir(), "done")
	hour := startOnPTY(t, []string{"GOGC=15", "GOMAXPROCS=1"}, path, done) // the program's own settings
	defer hour.stop()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(done); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the hour does not end:\n%s", hour.out.Bytes())
		}
	}
	time.Sleep(3 * time.Second) // frames are drawn
	return residentPart(t, ours, "RssFile"), residentPart(t, hour, "RssAnon")
}

// residentPart returns a part of the memory of a process, in MiB.
func residentPart(t *testing.T, p *pty, kind string) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(kind + `:\s+(\d+) kB`).FindSubmatch(status)
	kb, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb / 1024
}
