// Package host reads what /proc tells of the machine that we run on: how busy it
// is, and whose a process is.
package host

import (
	"bytes"
	"io/fs"
	"math"
)

// Usage is how the machine is doing. What could not be read is NaN.
type Usage struct {
	// CPUs is how many logical CPUs are online.
	CPUs float64
	// CPUUtilization is the fraction of the CPUs' time between two reads that was
	// neither idle nor waiting for I/O. The first read has none.
	CPUUtilization float64
	// MemoryTotal and MemoryAvailable are MemTotal and MemAvailable, in bytes.
	MemoryTotal, MemoryAvailable float64
}

// Meter reads how the machine is doing. It is for one goroutine at a time.
type Meter struct {
	stat, meminfo file
	before        times // of the read before, all 0 before the first
}

// NewMeter returns a meter of the machine whose /proc is given, such as
// os.DirFS("/proc"). Its files must be io.ReaderAt, as those of os.DirFS are.
func NewMeter(proc fs.FS) *Meter {
	return &Meter{stat: file{fsys: proc, name: "stat"}, meminfo: file{fsys: proc, name: "meminfo"}}
}

// Read reads the machine once. It allocates nothing once its buffers have grown to
// the size of the files.
func (m *Meter) Read() Usage {
	u := Usage{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	if text, err := m.stat.read(); err == nil {
		m.readStat(text, &u)
	}
	if text, err := m.meminfo.read(); err == nil {
		readMemory(text, &u)
	}
	return u
}

// Close closes the files. The meter opens them again if it is read again.
func (m *Meter) Close() {
	m.stat.close()
	m.meminfo.close()
}

// The columns of a cpu line of /proc/stat, in ticks since the machine started.
// Those behind them, guest and guest_nice, are counted in user and nice already
// (proc_stat(5)).
const (
	idleTime = 3
	waitTime = 4 // for I/O
	numTimes = 8 // user nice system idle iowait irq softirq steal
	// minTimes are the columns that every kernel has.
	minTimes = 4
	// maxTicks is more than any machine lives for, and lets sums not overflow.
	maxTicks = 1 << 60
)

// times is one cpu line.
type times [numTimes]uint64

// readStat takes the CPUs from the text of /proc/stat, which begins with a line for
// all of them together and then has one for each that is online.
func (m *Meter) readStat(text []byte, u *Usage) {
	line, rest, _ := bytes.Cut(text, newline)
	if all, ok := bytes.CutPrefix(line, []byte("cpu ")); ok {
		u.CPUUtilization = m.utilization(all)
	}
	online := 0
	for {
		line, rest, _ = bytes.Cut(rest, newline)
		if !bytes.HasPrefix(line, []byte("cpu")) {
			break
		}
		online++
	}
	if online > 0 {
		u.CPUs = float64(online)
	}
}

// utilization returns the fraction since the last line that differed from this
// one.
func (m *Meter) utilization(line []byte) float64 {
	now, ok := parseTimes(line)
	if !ok {
		return math.NaN()
	}
	before := m.before
	if before == (times{}) {
		m.before = now
		return math.NaN()
	}
	var all, idle uint64
	for i := range now {
		if now[i] <= before[i] {
			continue // kernels let idle and iowait run backwards at times
		}
		d := now[i] - before[i]
		if all += d; i == idleTime || i == waitTime {
			idle += d
		}
	}
	if all == 0 {
		return math.NaN() // not a tick has passed
	}
	m.before = now
	return float64(all-idle) / float64(all)
}

func parseTimes(line []byte) (t times, ok bool) {
	n := 0
	for ; n < numTimes; n++ {
		word, rest := firstWord(line)
		if len(word) == 0 {
			break
		}
		if t[n], ok = parseCount(word); !ok || t[n] > maxTicks {
			return t, false
		}
		line = rest
	}
	return t, n >= minTimes
}

// readMemory takes the memory from the text of /proc/meminfo.
func readMemory(text []byte, u *Usage) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, newline)
		name, value := firstWord(line)
		switch string(name) {
		case "MemTotal:":
			u.MemoryTotal = parseKibibytes(value)
		case "MemAvailable:":
			u.MemoryAvailable = parseKibibytes(value)
		}
	}
}

// parseKibibytes reads a value of /proc/meminfo, such as 24684084 kB, as bytes.
func parseKibibytes(text []byte) float64 {
	number, unit := firstWord(text)
	n, ok := parseCount(number)
	if !ok || string(bytes.TrimSpace(unit)) != "kB" {
		return math.NaN()
	}
	return float64(n) * 1024
}
