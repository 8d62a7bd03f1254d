package e2e

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestDashboardGoesOnInAnotherSize: resumed by a shell, the dashboard has the terminal's new size,
// although only the shell was notified of the change.
func TestDashboardGoesOnInAnotherSize(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	tm := newTerminal(t, [2]string{"160", "45"}, nil, "bash", "--norc", "-i")
	tm.keys(itself(t)+" --tui --tui.url="+n.URL+"/metrics", "Enter")
	tm.until("42.3%", "5 nodes")
	tm.keys("C-z")
	tm.until("Stopped")
	tm.tmux("resize-window", "-x", "80", "-y", "24")
	tm.keys("fg", "Enter")
	tm.await("a frame of 80 × 24", func() bool {
		lines := strings.Split(strings.TrimRight(tm.screen(), "\n"), "\n")
		return strings.HasPrefix(lines[0], "  fleet") && len(lines) == 24 && strings.HasPrefix(lines[23], " ? help")
	})
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
