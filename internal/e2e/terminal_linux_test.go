package e2e

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// cpuOfTerminal returns the target of a terminal that shows a new reading of some GPUs each period.
func cpuOfTerminal(gpus int, period time.Duration, goal float64) costTarget {
	return costTarget{
		what: fmt.Sprintf("terminal: CPU, %d GPUs every %v", gpus, period), unit: "% of a core",
		goal: limits{goal}, worst: limits{3 * goal},
		measure: func(r *rig) []measured {
			return r.each(func(binary string) measured {
				show := startTerminal(r.t, binary, gpus, period)
				return measure(3, func() float64 { return 100 * show(4*time.Second) })
			})
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
func startTerminal(t *testing.T, binary string, gpus int, period time.Duration) func(time.Duration) float64 {
	p := startOnPTY(t, nil, binary, "--tui", "--tui.url="+startPages(t, gpus, period))
	p.await(t, "GPU-Util")
	c := &child{Cmd: p.cmd}
	time.Sleep(2 * time.Second) // the first readings allocate
	return func(span time.Duration) float64 {
		return cpuOf(t, c, func() { time.Sleep(span) }) / span.Seconds()
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

// nodePage writes a proxy's page of GPUs at an instant: each works in waves at its own pace.
func nodePage(w io.Writer, gpus int, period time.Duration, at time.Time) {
	fmt.Fprintf(w, `kpulse_source_up{source="s",backend="dcgm"} 1
kpulse_source_period_seconds{source="s",backend="dcgm"} %g
kpulse_source_last_read_timestamp_seconds{source="s",backend="dcgm"} %.3f
`, period.Seconds(), float64(at.UnixMilli())/1e3)
	for i := range gpus {
		wave := 0.5 + 0.45*math.Sin(float64(at.UnixMilli())/1e3/float64(5+i%7)+float64(i))
		labels := fmt.Sprintf(`hostname="dgx-%02d",gpu="%d",uuid="GPU-%04d"`, i/8, i%8, i)
		fmt.Fprintf(w, "kpulse_gpu_info{%s,model=\"NVIDIA H200\"} 1\nkpulse_gpu_real_utilization_ratio{%s} %g\n", labels, labels, wave)
		fmt.Fprintf(w, "kpulse_gpu_workload_class{%s,class=\"%s\",bottleneck=\"compute\"} 1\nkpulse_gpu_health{%s,state=\"ok\"} 1\n", labels, canonical.Classes[i%4].Name, labels)
		for f := range canonical.NumFields {
			info := &canonical.Fields[f]
			more := ""
			if info.Labels != "" {
				more = "," + info.Labels
			}
			fmt.Fprintf(w, "%s%s{%s%s} %g\n", canonical.Prefix, info.Name, labels, more, wave*map[canonical.Unit]float64{canonical.Ratio: 1, canonical.Watts: 600, canonical.Celsius: 80, canonical.Bytes: 1e11, canonical.BytesPerSecond: 1e10, canonical.Hertz: 2e9}[info.Unit])
		}
	}
}
