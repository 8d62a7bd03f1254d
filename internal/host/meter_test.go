package host

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// machine is a /proc in a directory.
type machine struct {
	t   testing.TB
	dir string
}

func newMachine(t testing.TB) machine { return machine{t, t.TempDir()} }

func (m machine) fs() fs.FS { return os.DirFS(m.dir) }

func (m machine) write(name, text string) {
	m.t.Helper()
	file := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// stat is a /proc/stat with a line for all CPUs and two for the ones there are.
func stat(all string) string {
	return "cpu  " + all + "\ncpu0 1 1 1 1 1 1 1 1 0 0\ncpu3 1 1 1 1 1 1 1 1 0 0\nintr 5 4 3\nctxt 9\nbtime 1\n"
}

const meminfo = "MemTotal:       24684084 kB\nMemFree:        23465704 kB\nMemAvailable:   24243512 kB\nBuffers: 17148 kB\nHugePages_Total:       0\n"

var none = math.NaN()

func same(a, b float64) bool { return a == b || a != a && b != b }

func check(t *testing.T, what string, got, want Usage) {
	t.Helper()
	if !same(got.CPUs, want.CPUs) || !same(got.CPUUtilization, want.CPUUtilization) ||
		!same(got.MemoryTotal, want.MemoryTotal) || !same(got.MemoryAvailable, want.MemoryAvailable) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// TestUtilization reads the same machine again and again.
func TestUtilization(t *testing.T) {
	m := newMachine(t)
	meter := NewMeter(m.fs())
	defer meter.Close()
	for _, c := range []struct {
		what, line string
		want       float64
	}{
		// user nice system idle iowait irq softirq steal guest guest_nice
		{"first", "100 10 50 1000 40 5 5 0 0 0", none},
		{"no tick has passed", "100 10 50 1000 40 5 5 0 0 0", none},
		{"user 10, idle 30", "110 10 50 1030 40 5 5 0 0 0", 0.25},
		{"one of each of eight: six busy", "111 11 51 1031 41 6 6 1 0 0", 0.75},
		{"guest is in user: user 4, idle 4", "115 11 51 1035 41 6 6 1 4 0", 0.5},
		{"all idle or waiting", "115 11 51 1135 141 6 6 1 4 0", 0},
		{"all busy", "215 11 51 1135 141 6 6 1 4 0", 1},
		{"iowait runs backwards: user 1, idle 1", "216 11 51 1136 100 6 6 1 4 0", 0.5},
		{"broken", "216 x 51 1136 100 6 6 1 4 0", none},
		{"after it, user 3, idle 1", "219 11 51 1137 100 6 6 1 4 0", 0.75},
		{"too short", "219 11 51", none},
		{"too large", "99999999999999999999 11 51 1137 100 6 6 1 4 0", none},
		{"sums that overflow", "9223372036854775808 11 9223372036854775808 1138 100 6 6 1 4 0", none},
		{"negative", "-1 11 51 1137 100 6 6 1 4 0", none},
		{"an old kernel: user 1, system 1", "220 11 52 1137", 1},
	} {
		m.write("stat", stat(c.line))
		got := meter.Read()
		check(t, c.what, got, Usage{2, c.want, none, none})
	}
}

func TestMemoryAndCPUs(t *testing.T) {
	for _, c := range []struct {
		what, stat, meminfo string
		want                Usage
	}{
		{"whole", stat("1 1 1 1 1 1 1 1 0 0"), meminfo, Usage{2, none, 25276502016, 24825356288}},
		{"an old kernel", stat("1 1 1 1"), "MemTotal: 1 kB\nMemFree: 1 kB\n", Usage{2, none, 1024, none}},
		{"another unit", "", "MemTotal: 1 MB\nMemAvailable: 5\n", Usage{none, none, none, none}},
		{"nothing but a heading", "cpu  1 2 3 4 5 6 7 8 9 10\n", "", Usage{none, none, none, none}},
		{"garbage", "\x00\xff\n\n", "MemTotal\nMemTotal:\nMemAvailable: kB kB\n", Usage{none, none, none, none}},
		{"no end of line", "cpu  1 2 3 4\ncpu0 1 2 3 4", "MemTotal: 2 kB", Usage{1, none, 2048, none}},
	} {
		m := newMachine(t)
		m.write("stat", c.stat)
		m.write("meminfo", c.meminfo)
		meter := NewMeter(m.fs())
		check(t, c.what, meter.Read(), c.want)
		meter.Close()
	}
}

func TestMeterWithoutFiles(t *testing.T) {
	m := newMachine(t)
	meter := NewMeter(m.fs())
	defer meter.Close()
	check(t, "nothing there", meter.Read(), Usage{none, none, none, none})
	// What comes later is found.
	m.write("meminfo", meminfo)
	check(t, "meminfo", meter.Read(), Usage{none, none, 25276502016, 24825356288})
	check(t, "no fs of files", NewMeter(unreadable{}).Read(), Usage{none, none, none, none})
}

// unreadable has files that can be opened and not be read.
type unreadable struct{}

func (unreadable) Open(name string) (fs.File, error) {
	return fstest.MapFS{name: &fstest.MapFile{Mode: fs.ModeDir}}.Open(name)
}

// TestLargeStat has the CPUs of a machine on which a first buffer is too small.
func TestLargeStat(t *testing.T) {
	var text strings.Builder
	text.WriteString("cpu  1 2 3 4 5 6 7 8 0 0\n")
	for i := range 1024 {
		fmt.Fprintf(&text, "cpu%d 123456 7 8 9 10 11 12 13 0 0\n", i)
	}
	text.WriteString("intr" + strings.Repeat(" 0", 60_000) + "\n")
	m := newMachine(t)
	m.write("stat", text.String())
	meter := NewMeter(m.fs())
	defer meter.Close()
	if got := meter.Read().CPUs; got != 1024 {
		t.Errorf("%g CPUs, want 1024", got)
	}
	m.write("stat", strings.Repeat("cpu\n", maxSize/4+1))
	if got := meter.Read().CPUs; got == got {
		t.Errorf("%g CPUs in a file without end", got)
	}
}

func TestMeterAllocatesNothing(t *testing.T) {
	m := newMachine(t)
	m.write("stat", stat("1 1 1 1 1 1 1 1 0 0"))
	m.write("meminfo", meminfo)
	meter := NewMeter(m.fs())
	defer meter.Close()
	meter.Read()
	if n := testing.AllocsPerRun(100, func() { meter.Read() }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// TestThisMachine reads the /proc that is here, twice, from files that stay open.
func TestThisMachine(t *testing.T) {
	if _, err := os.Stat("/proc/stat"); err != nil {
		t.Skip("no /proc here")
	}
	meter := NewMeter(os.DirFS("/proc"))
	defer meter.Close()
	first := meter.Read()
	if !(first.CPUs >= 1) || !(first.MemoryTotal > 1<<20) || !(first.MemoryAvailable <= first.MemoryTotal) || first.CPUUtilization == first.CPUUtilization {
		t.Errorf("%+v", first)
	}
	// The kernel counts in hundredths of a second: spend some.
	for range 1 << 20 {
		if u := meter.Read(); u.CPUUtilization == u.CPUUtilization {
			if u.CPUUtilization < 0 || u.CPUUtilization > 1 {
				t.Errorf("%+v", u)
			}
			return
		}
	}
	t.Error("time stands still")
}

func BenchmarkMeter(b *testing.B) {
	meter := NewMeter(os.DirFS("/proc"))
	defer meter.Close()
	b.ReportAllocs()
	for b.Loop() {
		meter.Read()
	}
}

func FuzzStat(f *testing.F) {
	f.Add(stat("1 2 3 4 5 6 7 8 9 10"), stat("2 3 4 5 6 7 8 9 10 11"))
	f.Add("cpu  1 2 3 4", "cpu  18446744073709551615 2 3 4")
	f.Fuzz(func(t *testing.T, first, second string) {
		var m Meter
		for _, text := range []string{first, second} {
			u := Usage{none, none, none, none}
			m.readStat([]byte(text), &u)
			readMemory([]byte(text), &u)
			if u.CPUUtilization < 0 || u.CPUUtilization > 1 || u.CPUs == 0 || u.MemoryTotal < 0 {
				t.Errorf("%+v", u)
			}
		}
	})
}
