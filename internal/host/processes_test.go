package host

import (
	"context"
	"errors"
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

const status = "Name:\tpython\nUmask:\t0022\nState:\tS (sleeping)\nUid:\t1000\t1001\t1000\t1001\nGid:\t200\t201\t200\t201\nGroups:\t201 7\n"

// someNames returns the names of one user and one group.
func someNames() *Names {
	one := func(id, name string) func(string) (string, error) {
		return func(got string) (string, error) {
			if got != id {
				return "", errors.New("no such id")
			}
			return name, nil
		}
	}
	return newNames(one("1001", "bob"), one("201", "ml"))
}

func TestDescribe(t *testing.T) {
	long := strings.Repeat("z", 4000)
	for _, c := range []struct {
		name                  string
		status, cmdline, comm string
		names                 *Names
		commandLines          bool
		want                  description
	}{
		{"names", status, "python\x00train.py\x00--token\x00abc\x00", "python\n", someNames(), false, description{"bob", "ml", "python"}},
		{"numbers", status, "python\x00", "python\n", nil, false, description{"1001", "201", "python"}},
		{"unknown ids", strings.ReplaceAll(status, "1\t", "2\t"), "", "x\n", someNames(), false, description{"1002", "202", "x"}},
		{"a name to break terminals", status, "", "(x\n\x1b\u202e)\n", nil, false, description{"1001", "201", "(x \ufffd)"}},
		{"no name", status, "x\x00", "", nil, false, description{"1001", "201", ""}},
		{"a status without ids", "Uid:\tx\n", "x\x00", "x\n", nil, false, description{"", "", "x"}},
		{"command line", status, "python\x00train.py\x00--lr\x000.1\x00", "python\n", someNames(), true, description{"bob", "ml", "python train.py --lr 0.1"}},
		{"title over the arguments", status, "worker: busy\x00\x00\x00\x00", "x\n", nil, true, description{"1001", "201", "worker: busy"}},
		{"no arguments", status, "", "nv queue\n", nil, true, description{"1001", "201", "[nv queue]"}},
		{"nothing but zeros", status, "\x00\x00", "(x\n\x1b)\n", nil, true, description{"1001", "201", "[(x )]"}},
		{"nothing but blanks", status, " \x00\t\x00", "x\n", nil, true, description{"1001", "201", "[x]"}},
		{"too long", status, "x\x00" + long, "", nil, true, description{"1001", "201", "x " + strings.Repeat("z", 251) + "…"}},
		{"cut between characters", status, strings.Repeat("ä", 200), "", nil, true, description{"1001", "201", strings.Repeat("ä", 126) + "…"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			m.write("42/status", c.status)
			m.write("42/cmdline", c.cmdline)
			m.write("42/comm", c.comm)
			if got := describe(m.dir, 42, c.names, c.commandLines); got != c.want {
				t.Errorf("\n got %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestDescribeWhatIsGone(t *testing.T) {
	m := newMachine(t)
	m.write("7/status", status)
	for _, pid := range []int{1, 0, -1, 1 << 40} {
		if got := describe(m.dir, pid, nil, true); got != (description{}) {
			t.Errorf("%d: %q", pid, got)
		}
	}
	// The process ended between two reads.
	if got := describe(m.dir, 7, nil, true); got != (description{user: "1001", group: "201"}) {
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
		NewProcesses("/proc", NewNames(), commandLines).Describe(t.Context(), list)
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
		p := NewProcesses("", nil, true)
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

// A name is looked up once, a missing one again. The cache is bounded.
func TestNamesAreBounded(t *testing.T) {
	looks := 0
	names := newNames(func(string) (string, error) { return "", errors.New("no such user") }, func(id string) (string, error) { looks++; return "g" + id, nil })
	for i := range 2 * maxNames {
		id := strconv.Itoa(i)
		for range 2 {
			if user, group := names.user(id), names.group(id); user != id || group != "g"+id {
				t.Errorf("user and group %s are %q and %q", id, user, group)
			}
		}
	}
	if looks != 2*maxNames || len(names.cache) > maxNames {
		t.Errorf("%d look-ups, %d names are kept", looks, len(names.cache))
	}
}
