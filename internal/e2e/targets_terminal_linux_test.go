package e2e

import (
	"bytes"
	"fmt"
	"math"
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

// TestTargetsTerminal measures what the terminal costs, on a terminal of 160 × 45 as most
// are, beside the goals. `make bench` runs it.
func TestTargetsTerminal(t *testing.T) {
	if os.Getenv("KPULSE_BENCH") == "" {
		t.Skip("run by make bench")
	}
	t.Logf("%-47s %9s %9s %9s", "what", "measured", "goal", "at most")
	row := func(what string, measured, goal, worst float64) {
		verdict := ""
		if measured > goal {
			verdict = "goal missed"
		}
		t.Logf("%-47s %9.2f %9.2f %9.2f %s", what, measured, goal, worst, verdict)
		if measured > worst {
			t.Errorf("%s is %.2f, and must never be above %.2f", what, measured, worst)
		}
	}
	binary := buildProxy(t)
	for _, test := range []struct {
		gpus   int
		period time.Duration
		goal   float64
	}{{16, 500 * time.Millisecond, 1}, {16, 100 * time.Millisecond, 3}, {64, 500 * time.Millisecond, 2}} {
		row(fmt.Sprintf("CPU, %% of a core, %d GPUs every %v", test.gpus, test.period), terminalCPU(t, binary, test.gpus, test.period), test.goal, 3*test.goal)
	}
	row("first frame with readings in ms, 16 GPUs", firstFrame(t, binary), 100, 300)
	file, own := hourRSS(t, binary)
	row("RSS in MB after an hour, 64 GPUs", file+own, 40, 60)
	row("of it without pages of the program's file", own, 30, 40)
}

// pty is a terminal of our own, and what was written to it.
type pty struct {
	master *os.File
	cmd    *exec.Cmd

	mu  sync.Mutex
	out bytes.Buffer
}

// startOnPTY starts a command on a terminal of 160 × 45 that shows all colours.
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

// await waits until a text was written.
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

// startPages serves nodePage as of now, with a new reading each period.
func startPages(t *testing.T, gpus int, period time.Duration) (url string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		nodePage(w, gpus, period, time.Now().Truncate(period))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/metrics"
}

// terminalCPU returns the processor time that the terminal takes with a node that has a new
// reading each period, in percent of a core: the median of three times four seconds.
func terminalCPU(t *testing.T, binary string, gpus int, period time.Duration) float64 {
	p := startOnPTY(t, nil, binary, "--tui", "--tui.url="+startPages(t, gpus, period))
	defer p.stop()
	p.await(t, "GPU-Util")
	c := &child{Cmd: p.cmd}
	time.Sleep(2 * time.Second) // the first readings are allocated
	return 100 * median(3, func() float64 {
		const long = 4 * time.Second
		return cpuOf(t, c, func() { time.Sleep(long) }) / long.Seconds()
	})
}

// firstFrame returns after how many milliseconds the terminal shows readings: the fastest of nine
// starts, as a busy machine has each wait for its turn.
func firstFrame(t *testing.T, binary string) float64 {
	url := startPages(t, 16, time.Second)
	fastest := math.Inf(1)
	for range 9 {
		begun := time.Now()
		p := startOnPTY(t, nil, binary, "--tui", "--tui.url="+url)
		p.await(t, "GPU-Util")
		fastest = min(fastest, float64(time.Since(begun).Microseconds())/1e3)
		p.stop()
	}
	return fastest
}

// hourRSS returns the memory in MB that the terminal has after an hour: pages of the program's
// file, which the system shares and takes back, and its own. The hour is played at once by
// dashboardHour, which is in another file.
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
	hour := startOnPTY(t, []string{"GOGC=15", "GOMAXPROCS=1"}, path, done) // as ours has them
	defer hour.stop()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(done); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the hour is not over:\n%s", hour.out.Bytes())
		}
	}
	time.Sleep(3 * time.Second) // frames are drawn of it
	return residentPart(t, ours, "RssFile"), residentPart(t, hour, "RssAnon")
}

// residentPart returns a part of the memory of a process in MB.
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
