package host

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const status = "Name:\tpython\nUmask:\t0022\nState:\tS (sleeping)\nUid:\t1000\t0\t1000\t1001\nGid:\t200\t4000001\t200\t201\nGroups:\t201 7\n"

func TestDescribe(t *testing.T) {
	long := strings.Repeat("z", 4000)
	for _, c := range []struct {
		name                  string
		status, cmdline, comm string
		commandLines          bool
		want                  description
	}{
		{"names", status, "python\x00train.py\x00--token\x00abc\x00", "python\n", false, description{"root", "4000001", "python"}},
		{"a name to break terminals", status, "", "(x\n\x1b\u202e)\n", false, description{"root", "4000001", "(x \ufffd)"}},
		{"no name", status, "x\x00", "", false, description{"root", "4000001", ""}},
		{"a status without ids", "Uid:\tx\n", "x\x00", "x\n", false, description{"", "", "x"}},
		{"command line", status, "python\x00train.py\x00--lr\x000.1\x00", "python\n", true, description{"root", "4000001", "python train.py --lr 0.1"}},
		{"title over the arguments", status, "worker: busy\x00\x00\x00\x00", "x\n", true, description{"root", "4000001", "worker: busy"}},
		{"no arguments", status, "", "nv queue\n", true, description{"root", "4000001", "[nv queue]"}},
		{"nothing but zeros", status, "\x00\x00", "(x\n\x1b)\n", true, description{"root", "4000001", "[(x )]"}},
		{"nothing but blanks", status, " \x00\t\x00", "x\n", true, description{"root", "4000001", "[x]"}},
		{"too long", status, "x\x00" + long, "", true, description{"root", "4000001", "x " + strings.Repeat("z", 251) + "…"}},
		{"cut between characters", status, strings.Repeat("ä", 200), "", true, description{"root", "4000001", strings.Repeat("ä", 126) + "…"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			m.write("42/status", c.status)
			m.write("42/cmdline", c.cmdline)
			m.write("42/comm", c.comm)
			if got := describe(m.dir, 42, c.commandLines); got != c.want {
				t.Errorf("\n got %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestDescribeWhatIsGone(t *testing.T) {
	m := newMachine(t)
	m.write("7/status", status)
	for _, pid := range []int{1, 0, -1, 1 << 40} {
		if got := describe(m.dir, pid, true); got != (description{}) {
			t.Errorf("%d: %q", pid, got)
		}
	}
	// The process ended between two reads.
	if got := describe(m.dir, 7, true); got != (description{user: "root", group: "4000001"}) {
		t.Errorf("%q", got)
	}
}

func TestDescribeThisProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc here")
	}
	me := strconv.Itoa(os.Geteuid())
	if u, err := user.Current(); err == nil {
		me = u.Username
	}
	for _, commandLines := range []bool{false, true} {
		list := []canonical.Process{{PID: os.Getpid()}}
		for end := time.Now().Add(time.Minute); list[0].Command == "" && time.Now().Before(end); { // a busy machine may take longer than is waited for
			NewProcesses("/proc", commandLines).Describe(t.Context(), list)
		}
		got := list[0]
		if got.User != me || got.Group == "" || !strings.Contains(got.Command, "host.test") || strings.Contains(got.Command, "-test.") != commandLines {
			t.Errorf("%+v, want the user %q", got, me)
		}
	}
}

// TestDescribeOneThatHangs: a process whose memory is locked delays the others briefly, and
// only once.
func TestDescribeOneThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		p := NewProcesses("", true)
		p.describe = func(pid int) description {
			if pid == 1 {
				<-gate
			}
			return description{"6", "2", fmt.Sprint("run ", pid)}
		}
		commands := func(ctx context.Context, pids ...int) (commands []string) {
			list := make([]canonical.Process, len(pids))
			for i, pid := range pids {
				list[i].PID = pid
			}
			p.Describe(ctx, list)
			for _, d := range list {
				commands = append(commands, d.Command)
			}
			return commands
		}
		for i := range 3 {
			begun := time.Now()
			if got := commands(t.Context(), 0, 1, 2, 2, 1); !slices.Equal(got, []string{"run 0", "", "run 2", "run 2", ""}) {
				t.Errorf("%q", got)
			}
			if d := time.Since(begun); d > 0 != (i == 0) || d > processPatience {
				t.Errorf("call %d took %v", i, d)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got := commands(ctx, 1, 3); got[0] != "" || got[1] != "" {
			t.Errorf("%q", got)
		}
		close(gate)
		synctest.Wait()
		if got := commands(t.Context(), 1); got[0] != "run 1" {
			t.Errorf("once it is unlocked: %q", got)
		}
	})
}
