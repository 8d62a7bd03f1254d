package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// shownNode is a kpulse-proxy for the dashboard: it serves two GPUs, nothing, or hangs.
type shownNode struct {
	*httptest.Server
	mode atomic.Int32
}

const (
	serves int32 = iota
	breaks
	hangs
)

func startNode(t *testing.T) *shownNode {
	n := &shownNode{}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n.mode.Load() {
		case breaks:
			panic(http.ErrAbortHandler)
		case hangs:
			<-r.Context().Done()
		case serves:
			fmt.Fprintf(w, `DCGM_FI_DEV_GPU_TEMP{gpu="0"} 17
kpulse_gpu_info{hostname="dgx-7",gpu="0",uuid="GPU-aa",model="NVIDIA H200"} 1
kpulse_gpu_info{hostname="dgx-7",gpu="1",uuid="GPU-bb",model="NVIDIA H200"} 1
kpulse_gpu_real_utilization_ratio{hostname="dgx-7",gpu="0",uuid="GPU-aa"} 0.423
kpulse_gpu_health{hostname="dgx-7",gpu="1",uuid="GPU-bb",state="crit"} 1
kpulse_allocation_info{hostname="dgx-7",gpu="0",uuid="GPU-aa",workload_namespace="ml",workload_pod="train-7",hpc_job=""} 1
kpulse_source_up{source="s",backend="dcgm"} 1
kpulse_source_period_seconds{source="s",backend="dcgm"} 0.2
kpulse_source_last_read_timestamp_seconds{source="s",backend="dcgm"} %.3f
`, float64(time.Now().UnixMilli())/1e3)
		}
	}))
	t.Cleanup(func() { n.Listener.Close(); n.CloseClientConnections(); n.Close() })
	return n
}

func TestDashboard(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	tm := newTerminal(t, [2]string{"120", "40"}, nil, itself(t), "--tui", "--tui.url="+n.URL+"/metrics")
	tm.until("dgx-7", "42.3%", "CRIT")

	for _, view := range []struct{ key, shows string }{
		{"4", "train-7"}, {"5", "REMARK"}, {"?", "Keys"}, {"i", "Readings"}, {"e", "TIME"}, {"1", "NVIDIA H200"},
	} {
		tm.keys(view.key)
		tm.until(view.shows)
	}
	// A burst is one write; each letter counts.
	tm.keys(":focus 1", "Enter")
	tm.until("GPU-bb")
	tm.keys(":focus 0", "Enter")
	tm.until("GPU-aa", "train-7")
	tm.await("GPU 99 is not visible", func() bool { // the footer shows it for a while only
		tm.keys(":focus 99", "Enter")
		return strings.Contains(tm.screen(), "GPU 99 is not visible")
	})
	tm.keys("1", "/real>40", "Enter")
	tm.until("42.3%", "1 of 2")
	tm.keys("Escape")
	tm.until("CRIT")
	// With its bytes split, an arrow would be the letters after its escape.
	tm.keys("Down", "Up", "Right", "Left", ":nodes", "Enter")
	tm.until("REMARK")

	for _, size := range [][2]int{{40, 10}, {20, 5}, {200, 50}, {60, 12}, {120, 40}} {
		tm.tmux("resize-window", "-x", strconv.Itoa(size[0]), "-y", strconv.Itoa(size[1]))
	}
	tm.until("REMARK")
	tm.tmux("resize-window", "-x", "20", "-y", "5")
	tm.until("need 40×10")
	tm.tmux("resize-window", "-x", "120", "-y", "40")
	tm.until("REMARK", "● up")

	// A node that hangs does not block keys, and does not appear as up.
	n.mode.Store(hangs)
	tm.keys("1")
	tm.until("NVIDIA H200")
	tm.await("stale badge", func() bool { return strings.Contains(tm.screen(), "▲") && !strings.Contains(tm.screen(), "live") })
	tm.await("end of the old readings", func() bool { return !strings.Contains(tm.screen(), "42.3%") })
	n.mode.Store(breaks)
	n.CloseClientConnections()
	tm.keys("5")
	tm.until("EOF")
	n.mode.Store(serves)
	tm.until("● up")
	tm.keys("1")
	tm.until("42.3%", "live")

	tm.suspend()
	tm.until("42.3%", "live")
	tm.terminate()
}

// terminate ends the program with SIGTERM and checks that it restores the terminal.
func (tm *terminal) terminate() {
	tm.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(tm.tmux("display-message", "-p", "#{pane_pid}")))
	if err != nil {
		tm.t.Fatal(err)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		tm.t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.Fields(string(children))[0])
	if err != nil {
		tm.t.Fatal(err)
	}
	if err := syscall.Kill(child, syscall.SIGTERM); err != nil {
		tm.t.Fatal(err)
	}
	tm.until("EXIT 0")
	if tm.is("alternate_on") != "0" || tm.is("cursor_flag") != "1" || tm.is("mouse_any_flag") != "0" {
		tm.t.Errorf("left behind: alternate screen %s, cursor %s, mouse %s", tm.is("alternate_on"), tm.is("cursor_flag"), tm.is("mouse_any_flag"))
	}
}

// coloured matches codes of foreground and background colours, except the terminal's default.
var coloured = regexp.MustCompile(`\x1b\[([0-9]+;)*(3[0-8]|4[0-8]|9[0-7]|10[0-7])(;|m)`)

func TestDashboardColors(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	for _, test := range []struct {
		env  string
		want bool
	}{{"NO_COLOR=1", false}, {"NO_COLOR=yes", false}, {"NO_COLOR=", true}} {
		tm := newTerminal(t, [2]string{"80", "24"}, []string{test.env, "COLORTERM=truecolor"}, itself(t), "--tui", "--tui.url="+n.URL+"/metrics")
		tm.until("dgx-7", "42.3%")
		if got := coloured.MatchString(tm.tmux("capture-pane", "-pe")); got != test.want {
			t.Errorf("with %s colours are %v, want %v", test.env, got, test.want)
		}
		for _, line := range strings.Split(tm.screen(), "\n") {
			if utf8.RuneCountInString(line) > 80 {
				t.Errorf("with %s, a line has %d cells: %q", test.env, utf8.RuneCountInString(line), line)
			}
		}
	}
}

// TestDashboardColorsFollowTheTerminal: a terminal of 256 or 16 colours gets only those, and none
// that it would show in another hue.
func TestDashboardColorsFollowTheTerminal(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	full, indexed, basic := regexp.MustCompile(`[34]8;2;`), regexp.MustCompile(`[34]8;5;`), regexp.MustCompile(`\x1b\[([0-9]+;)*(3[0-7]|9[0-7]|4[0-7])m`)
	labels, selection := regexp.MustCompile(`38;5;246m`), regexp.MustCompile(`48;5;237m`) // gray, not lavender and navy
	reversed, papers := regexp.MustCompile(`\x1b\[([0-9]+;)*7m`), regexp.MustCompile(`\x1b\[([0-9]+;)*4[0-7]m`)
	for _, test := range []struct {
		env          string
		want, absent []*regexp.Regexp
	}{
		{"TERM=xterm COLORTERM= TMUX=", []*regexp.Regexp{basic, reversed}, []*regexp.Regexp{indexed, full, papers}},
		{"TERM=xterm-256color COLORTERM=", []*regexp.Regexp{labels, selection}, []*regexp.Regexp{full, basic}},
		{"TERM=tmux-256color COLORTERM=", []*regexp.Regexp{labels, selection}, []*regexp.Regexp{full, basic}},
		{"TERM=xterm-256color COLORTERM=truecolor", []*regexp.Regexp{full}, []*regexp.Regexp{indexed, basic}},
	} {
		tm := newTerminal(t, [2]string{"80", "24"}, []string{test.env}, itself(t), "--tui", "--tui.url="+n.URL+"/metrics")
		tm.until("dgx-7", "42.3%")
		screen := tm.tmux("capture-pane", "-pe")
		for _, want := range test.want {
			if !want.MatchString(screen) {
				t.Errorf("%s: no %s", test.env, want)
			}
		}
		for _, absent := range test.absent {
			if found := absent.FindString(screen); found != "" {
				t.Errorf("%s: %q is %s", test.env, found, absent)
			}
		}
	}
}

// TestDashboardDrawsASCII: an ASCII locale and a console get ASCII, and quitting at once leaves nothing in the shell.
func TestDashboardDrawsASCII(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	for _, env := range []string{"LC_ALL=C TERM=xterm-256color", "TERM=linux", "TERM=vt220"} {
		tm := newTerminal(t, [2]string{"100", "30"}, []string{env}, itself(t), "--tui", "--tui.url="+n.URL+"/metrics")
		tm.until("dgx-7", "42.3%", "+- GPU 0", "X CRIT")
		if screen := tm.screen(); strings.ContainsFunc(screen, func(c rune) bool { return c > 0x7e }) {
			t.Errorf("%s: beyond ASCII:\n%s", env, screen)
		}
		tm.keys("q")
		tm.until("EXIT 0")
	}
	hasty := newTerminal(t, [2]string{"100", "30"}, []string{"TERM=xterm-256color"}, itself(t), "--tui", "--tui.url="+n.URL+"/metrics")
	hasty.keys("q")
	hasty.until("EXIT 0")
	hasty.keys(" last") // the terminal's late answers precede it
	hasty.until("last")
	if screen := strings.Fields(strings.Replace(hasty.screen(), "EXIT 0", "", 1)); strings.Join(screen, "") != "last" && strings.Join(screen, "") != "qlast" {
		t.Errorf("left in the shell: %q", screen)
	}
}

// TestDashboardOnADumbTerminal: a terminal that would print escape codes gets none.
func TestDashboardOnADumbTerminal(t *testing.T) {
	t.Parallel()
	tm := newTerminal(t, [2]string{"80", "24"}, []string{"TERM=dumb"}, itself(t), "--tui", "--backend=replay")
	tm.until("TERM=dumb", "--once", "EXIT 1")
}

// TestDashboardAttaches: beside a proxy that listens, the dashboard shows it; without one, it reads
// the source.
func TestDashboardAttaches(t *testing.T) {
	t.Parallel()
	proxy := startProxy(t, itself(t), "--backend=replay", "--node-name=attached-here")
	address := strings.TrimPrefix(proxy.URL, "http://")
	tm := newTerminal(t, [2]string{"100", "30"}, nil, itself(t), "--tui", "--web.listen-address="+address)
	tm.until("attached-here", "live")
	if err := proxy.Stop(); err != nil {
		t.Error(err)
	}
	tm.until("refused")

	alone := newTerminal(t, [2]string{"100", "30"}, nil, itself(t), "--tui", "--backend=replay", "--node-name=alone", "--web.listen-address="+address)
	alone.until("alone", "live")
	alone.keys("q")
	alone.until("EXIT 0")
	if alone.is("alternate_on") != "0" {
		t.Error("the alternate screen is still on")
	}
}
