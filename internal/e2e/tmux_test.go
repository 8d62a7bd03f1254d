package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// terminal is a real terminal, in tmux, with a server of its own.
type terminal struct {
	t      *testing.T
	socket string
}

// newTerminal runs a command line in a terminal, which finally shows its exit code. The program does
// not read the settings that the user of this machine saved. Without tmux in the PATH the test is
// skipped, or fails with KPULSE_REQUIRE_TMUX.
func newTerminal(t *testing.T, size [2]string, env []string, command ...string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("KPULSE_REQUIRE_TMUX") != "" {
			t.Fatal(err)
		}
		t.Skip("no tmux in the PATH; apt-get install tmux")
	}
	dir, err := os.MkdirTemp("", "kp") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	tm := &terminal{t, filepath.Join(dir, "s")}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", tm.socket, "kill-server").Run()
		_ = os.RemoveAll(dir)
	})
	line := "env LC_ALL=C.UTF-8 XDG_CONFIG_HOME=" + dir + " " + strings.Join(append(env, command...), " ") + `; echo "EXIT $?"; exec cat`
	tm.tmux("-f", "/dev/null", "new-session", "-d", "-x", size[0], "-y", size[1], line)
	return tm
}

// tmux runs a command of tmux and returns its output.
func (tm *terminal) tmux(args ...string) string {
	tm.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", tm.socket}, args...)...).CombinedOutput()
	if err != nil {
		tm.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// keys presses keys, in one write.
func (tm *terminal) keys(keys ...string) { tm.tmux(append([]string{"send-keys"}, keys...)...) }

// screen returns the text on the terminal.
func (tm *terminal) screen() string { return tm.tmux("capture-pane", "-p") }

// is returns the value of a tmux variable.
func (tm *terminal) is(variable string) string {
	return strings.TrimSpace(tm.tmux("display-message", "-p", "#{"+variable+"}"))
}

// until waits until all texts are on the screen.
func (tm *terminal) until(texts ...string) {
	tm.t.Helper()
	tm.await(strings.Join(texts, " and "), func() bool {
		screen := tm.screen()
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// await waits until holds returns true.
func (tm *terminal) await(what string, holds func() bool) {
	tm.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			tm.t.Fatalf("no %s on the screen:\n%s", what, tm.screen())
		}
	}
}

// suspend presses Ctrl-Z, checks that the shell has the terminal, and resumes the dashboard.
func (tm *terminal) suspend() {
	tm.t.Helper()
	pid, err := strconv.Atoi(tm.is("pane_pid"))
	if err != nil {
		tm.t.Fatal(err)
	}
	tm.keys("C-z")
	tm.await("shell", func() bool { return tm.is("alternate_on") == "0" && tm.is("cursor_flag") == "1" })
	// The dashboard gives the terminal back before it listens for SIGCONT: a signal in between is
	// lost.
	tm.await("dashboard", func() bool {
		if err := syscall.Kill(-pid, syscall.SIGCONT); err != nil {
			tm.t.Fatal(err)
		}
		return tm.is("alternate_on") == "1"
	})
}
