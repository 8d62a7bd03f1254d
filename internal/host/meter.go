// Package host reads /proc of this machine: its load, its GPUs, the memory limit of this
// process, and the users of processes.
package host

import (
	"math"

	"github.com/prometheus/procfs"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Meter reads the load of the machine. It is for one goroutine at a time.
type Meter struct {
	proc     string         // the mount point of procfs
	previous procfs.CPUStat // of the previous Read, all 0 before the first
}

// NewMeter returns a meter of the machine whose procfs is mounted at proc, such as
// "/proc". Nothing is read yet.
func NewMeter(proc string) *Meter { return &Meter{proc: proc} }

// Read reads the machine once. CPUUtilization covers the time since the previous Read; the
// first Read has none. It parses a line for every CPU and interrupt, which takes some
// milliseconds on the largest machines: once a second is often enough.
func (m *Meter) Read() canonical.Host {
	h := canonical.Host{CPUs: math.NaN(), CPUUtilization: math.NaN(), MemoryTotal: math.NaN(), MemoryAvailable: math.NaN()}
	proc, err := procfs.NewFS(m.proc)
	if err != nil {
		return h
	}
	if stat, err := proc.Stat(); err == nil && len(stat.CPU) > 0 {
		h.CPUs = float64(len(stat.CPU))
		h.CPUUtilization = m.utilization(stat.CPUTotal)
	}
	if memory, err := proc.Meminfo(); err == nil {
		h.MemoryTotal = bytesOf(memory.MemTotalBytes)
		h.MemoryAvailable = bytesOf(memory.MemAvailableBytes)
	}
	return h
}

// bytesOf returns NaN for what the kernel does not report.
func bytesOf(n *uint64) float64 {
	if n == nil {
		return math.NaN()
	}
	return float64(*n)
}

// ticksPerSecond is the unit of /proc/stat, by which procfs divides (USER_HZ).
const ticksPerSecond = 100

// utilization returns the fraction of time since the previous Read that was neither idle
// nor waiting for I/O. It counts in whole ticks, so that the division by procfs costs no
// precision. User and Nice include Guest and GuestNice (proc_stat(5)).
func (m *Meter) utilization(now procfs.CPUStat) float64 {
	previous := m.previous
	m.previous = now
	if previous == (procfs.CPUStat{}) {
		return math.NaN()
	}
	// In some kernels idle and iowait can decrease.
	passed := func(now, previous float64) float64 {
		return math.Round(max(0, now-previous) * ticksPerSecond)
	}
	idle := passed(now.Idle, previous.Idle) + passed(now.Iowait, previous.Iowait)
	busy := passed(now.User, previous.User) + passed(now.Nice, previous.Nice) + passed(now.System, previous.System) +
		passed(now.IRQ, previous.IRQ) + passed(now.SoftIRQ, previous.SoftIRQ) + passed(now.Steal, previous.Steal)
	return busy / (busy + idle) // NaN if no tick has passed
}
