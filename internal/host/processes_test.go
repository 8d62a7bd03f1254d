package host

import (
	"context"
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const status = "Name:\tpython\nUmask:\t0022\nState:\tS (sleeping)\nUid:\t1000\t1001\t1000\t1001\nGid:\t200\t201\t200\t201\nGroups:\t201 7\n"

// someNames are those of a machine with one user and one group.
func someNames() *Names {
	one := func(id, name string) func(string) (string, bool) {
		return func(got string) (string, bool) {
			if got != id {
				return "", false
			}
			return name, true
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
		want                  Process
	}{
		{"whole", status, "python\x00train.py\x00--token\x00abc\x00", "python\n", someNames(), Process{"bob", "ml", "python train.py --token ***"}},
		{"numbers", status, "python\x00", "", nil, Process{"1001", "201", "python"}},
		{"no names", strings.ReplaceAll(status, "1\t", "2\t"), "x", "", someNames(), Process{"1002", "202", "x"}},
		{"title over the arguments", status, "worker: token=abc\x00\x00\x00\x00", "", nil, Process{"1001", "201", "worker: token=***"}},
		{"no arguments", status, "", "nv queue\n", nil, Process{"1001", "201", "[nv queue]"}},
		{"nothing but zeros", status, "\x00\x00", "(x\n\x1b)\n", nil, Process{"1001", "201", "[(x )]"}},
		{"no status", "", "x\x00", "x\n", nil, Process{"", "", "x"}},
		{"short status", "Uid:\t1\nGid:\n", "x\x00", "x\n", nil, Process{"", "", "x"}},
		// Of an argument that is not read to its end one cannot tell what it is.
		{"too long", status, "x\x00" + long + "\x00sk-" + long, "", nil, Process{"1001", "201", "x " + strings.Repeat("z", 251) + "…"}},
		{"a secret at the end", status, "x\x00--token\x00" + long + "\x00" + strings.Repeat("--a\x00", 20) + "ghp_" + long, "", nil, Process{"1001", "201", "x --token ***" + strings.Repeat(" --a", 20) + " …"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			m.write("42/status", c.status)
			m.write("42/cmdline", c.cmdline)
			m.write("42/comm", c.comm)
			if got := NewProcesses(m.fs(), c.names).describe(t.Context(), 42); got != c.want {
				t.Errorf("\n got %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestDescribeWhatIsGone(t *testing.T) {
	m := newMachine(t)
	m.write("7/status", status)
	p := NewProcesses(m.fs(), nil)
	for _, pid := range []int{1, 0, -1, 1 << 40} {
		if got := p.describe(t.Context(), pid); got != (Process{}) {
			t.Errorf("%d: %q", pid, got)
		}
	}
	// It went between two reads.
	if got := p.describe(t.Context(), 7); got != (Process{User: "1001", Group: "201"}) {
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
	got := NewProcesses(os.DirFS("/proc"), NewNames()).describe(t.Context(), os.Getpid())
	if got.User != me || got.Group == "" || !strings.Contains(got.Command, ".test") {
		t.Errorf("%q, want the user %q", got, me)
	}
}

// TestNamesThatHang has a directory that answers after a minute.
func TestNamesThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		names := newNames(func(id string) (string, bool) {
			looks.Add(1)
			time.Sleep(time.Minute)
			return "user" + id, true
		}, nil)
		begun := time.Now()
		for i, c := range []struct {
			after time.Duration
			want  string
			takes time.Duration
		}{
			{0, "5", 100 * time.Millisecond},
			{0, "5", 0}, // it has been waited for
			{50 * time.Second, "5", 0},
			{10 * time.Second, "user5", 0},
			{8 * time.Minute, "user5", 0},
			{2 * time.Minute, "5", 100 * time.Millisecond}, // asked for anew
		} {
			time.Sleep(c.after)
			asked := time.Now()
			if got := names.user(t.Context(), "5"); got != c.want || time.Since(asked) != c.takes {
				t.Errorf("%d, at %s: %q after %s, want %q after %s", i, asked.Sub(begun), got, time.Since(asked), c.want, c.takes)
			}
		}
		if n := looks.Load(); n != 2 {
			t.Errorf("%d look-ups, want 2", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		asked := time.Now()
		if got := names.user(ctx, "6"); got != "6" || time.Since(asked) != 0 {
			t.Errorf("%q after %s", got, time.Since(asked))
		}
		time.Sleep(2 * time.Minute) // let the look-ups end
	})
}

// TestNamesAreBounded runs on a simulated clock, so that no look-up comes too late.
func TestNamesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := newNames(func(id string) (string, bool) { return "u" + id, true }, func(id string) (string, bool) { return "g" + id, true })
		var all sync.WaitGroup
		for part := range 4 {
			all.Go(func() {
				for i := range maxNames {
					id := strconv.Itoa(part*maxNames + i)
					if got := names.user(t.Context(), id); got != "u"+id {
						t.Errorf("user %s is %q", id, got)
					}
				}
			})
		}
		all.Wait()
		if got := names.group(t.Context(), "1"); got != "g1" {
			t.Errorf("group 1 is %q", got)
		}
		if len(names.kept) > maxNames {
			t.Errorf("%d names are kept", len(names.kept))
		}
	})
}
