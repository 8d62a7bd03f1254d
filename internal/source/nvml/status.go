//go:build cgo && linux

package nvml

import (
	"cmp"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// The streams of a source, as indices.
const (
	device = iota
	profiling
)

// streamStatus is what a source says about itself. Any goroutine may use it.
type streamStatus struct {
	counts [2]source.StreamCounts // by stream

	mu      sync.Mutex
	trouble [2]*source.Error // by stream
	version string           // "" while unknown
}

// count counts a reading.
func (s *streamStatus) count(profiled bool) {
	now := time.Now()
	s.counts[device].Tick(now)
	if profiled {
		s.counts[profiling].Tick(now)
	}
}

// publish sets the failures that Streams returns, and the version.
func (s *Source) publish(n *openNode) {
	trouble, version := [...]*source.Error{device: n.failing(), profiling: n.unprofiled()}, n.version()
	s.status.mu.Lock()
	defer s.status.mu.Unlock()
	s.status.trouble, s.status.version = trouble, version
}

// Streams appends the totals of the streams device, whose ticks are readings, and
// profiling, whose ticks are those with GPM's, to dst. A failure of device names the
// boards that are left out, the calls that hang, and why no XIDs are reported.
func (s *Source) Streams(dst []source.StreamTotals) []source.StreamTotals {
	from := len(dst)
	dst = append(dst, s.status.counts[device].Totals("device"), s.status.counts[profiling].Totals("profiling"))
	s.status.mu.Lock()
	defer s.status.mu.Unlock()
	dst[from+device].Failure = s.notices.with(s.status.trouble[device])
	dst[from+profiling].Failure = s.status.trouble[profiling]
	return dst
}

// Version returns the versions of the driver and NVML, and GPM if some board has it:
// "driver 580.105.08, NVML 13.580.105.08, GPM". It is "" before the first reading.
func (s *Source) Version() string {
	s.status.mu.Lock()
	defer s.status.mu.Unlock()
	return s.status.version
}

// version returns what Version does.
func (n *openNode) version() string {
	text := "driver " + cmp.Or(n.lib.driver, "unknown") + ", NVML " + cmp.Or(n.lib.version, "unknown")
	if n.has(given) {
		text += ", GPM"
	}
	return text
}
