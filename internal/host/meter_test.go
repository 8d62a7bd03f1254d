package host

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// machine is a /proc in a directory.
type machine struct {
	t   testing.TB
	dir string
}

func newMachine(t testing.TB) machine { return machine{t, t.TempDir()} }

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

// stat returns a /proc/stat with a line for all CPUs and one for each of two CPUs.
func stat(all string) string {
	return "cpu  " + all + "\ncpu0 1 1 1 1 1 1 1 1 0 0\ncpu3 1 1 1 1 1 1 1 1 0 0\nintr 5 4 3\nctxt 9\nbtime 1\n"
}

const meminfo = "MemTotal:       24684084 kB\nMemFree:        23465704 kB\nMemAvailable:   24243512 kB\nBuffers: 17148 kB\nHugePages_Total:       0\n"

var none = math.NaN()

func same(a, b float64) bool { return a == b || a != a && b != b }

func check(t *testing.T, what string, got, want canonical.Host) {
	t.Helper()
	if !same(got.CPUs, want.CPUs) || !same(got.CPUUtilization, want.CPUUtilization) ||
		!same(got.MemoryTotal, want.MemoryTotal) || !same(got.MemoryAvailable, want.MemoryAvailable) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// TestUtilization reads one machine again and again.
func TestUtilization(t *testing.T) {
	m := newMachine(t)
	meter := NewMeter(m.dir)
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
		{"years of ticks: idle 8, user far more", "900000000000219 11 51 1145 100 6 6 1 4 0", 900000000000000. / 900000000000008},
		{"not a tick is lost: user 1, idle 2", "900000000000220 11 51 1147 100 6 6 1 4 0", 1. / 3},
		{"an old kernel: system 1", "900000000000220 11 52 1147", 1},
	} {
		m.write("stat", stat(c.line))
		got, want := meter.Read(), canonical.Host{CPUs: 2, CPUUtilization: c.want, MemoryTotal: none, MemoryAvailable: none}
		if c.what == "broken" {
			want.CPUs = none
		}
		check(t, c.what, got, want)
	}
}

func TestMemoryAndCPUs(t *testing.T) {
	for _, c := range []struct {
		what, stat, meminfo    string
		cpus, total, available float64
	}{
		{"whole", stat("1 1 1 1 1 1 1 1 0 0"), meminfo, 2, 25276502016, 24825356288},
		{"no MemAvailable", stat("1 1 1 1 1 1 1 1 0 0"), "MemTotal: 1 kB\nMemFree: 1 kB\n", 2, 1024, none},
		{"another unit", "", "MemTotal: 1 MB\nMemAvailable: 5\n", none, none, none},
		{"nothing but a heading", "cpu  1 2 3 4 5 6 7 8 9 10\n", "", none, none, none},
		{"garbage", "\x00\xff\n\n", "MemTotal: x\nMemAvailable: kB kB\n", none, none, none},
		{"no end of line", "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10", "MemTotal: 2 kB", 1, 2048, none},
	} {
		m := newMachine(t)
		m.write("stat", c.stat)
		m.write("meminfo", c.meminfo)
		meter := NewMeter(m.dir)
		check(t, c.what, meter.Read(), canonical.Host{CPUs: c.cpus, CPUUtilization: none, MemoryTotal: c.total, MemoryAvailable: c.available})
	}
}

func TestMeterWithoutFiles(t *testing.T) {
	nothing := canonical.Host{CPUs: none, CPUUtilization: none, MemoryTotal: none, MemoryAvailable: none}
	m := newMachine(t)
	meter := NewMeter(m.dir)
	check(t, "no files", meter.Read(), nothing)
	check(t, "no directory", NewMeter(m.dir+"/none").Read(), nothing)
	// A file that appears later is read.
	m.write("meminfo", meminfo)
	nothing.MemoryTotal, nothing.MemoryAvailable = 25276502016, 24825356288
	check(t, "meminfo", meter.Read(), nothing)
}

// TestThisMachine reads this machine's /proc until a tick has passed.
func TestThisMachine(t *testing.T) {
	if _, err := os.Stat("/proc/stat"); err != nil {
		t.Skip("no /proc here")
	}
	meter := NewMeter("/proc")
	first := meter.Read()
	if !(first.CPUs >= 1) || !(first.MemoryTotal > 1<<20) || !(first.MemoryAvailable <= first.MemoryTotal) || first.CPUUtilization == first.CPUUtilization {
		t.Errorf("%+v", first)
	}
	// The kernel counts in hundredths of a second: spend a few.
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
