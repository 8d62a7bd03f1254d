package source

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"time"
	"unsafe"
)

// The shares of the limit up to which the heap may grow for bodies and their samples, and for answers. The
// rest is for what is not asked for here: label sets, readings, stacks, and the program itself.
const (
	bodyShare   = 0.6
	answerShare = 0.7
)

// small is the size in bytes of what is never refused, and 1/minGarbage of the limit is much: enough to collect garbage for.
const (
	small      = 64 << 10
	minGarbage = 32
)

// Memory is the memory that all sources and answers share. nil has no limit. Its methods are safe for concurrent use.
type Memory struct {
	Limit int64 // bytes

	mu        sync.Mutex
	live      int64 // bytes: the heap after the last collection, and what was made and dropped since
	collected time.Time
	sample    [1]metrics.Sample // of heap, kept as each scrape asks
}

// Make returns a slice with a capacity of n in the place of one of had bytes, or nil if it does not fit. It has then called
// drop, after which the caller no longer refers to that: of several that grow at once, one is refused, and the others take
// its room.
func Make[T any](m *Memory, had, n int, drop func()) []T {
	size := int64(n) * int64(unsafe.Sizeof(*new(T)))
	if m == nil || size < small {
		return make([]T, 0, n)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.live -= int64(had); !m.fits(size, bodyShare) {
		drop()
		return nil
	}
	m.live += size
	return make([]T, 0, n)
}

// Fits reports whether n more bytes of a body's samples fit. If not, the caller drops as much.
func (m *Memory) Fits(n int64) bool { return m.has(n, n, bodyShare) }

// Answers reports whether n bytes of an answer fit.
func (m *Memory) Answers(n int64) bool { return m.has(n, 0, answerShare) }

func (m *Memory) has(n, drops int64, share float64) bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fits(n, share) {
		return true
	}
	m.live -= drops
	return false
}

// fits collects garbage: once a second, for much, and where enough was dropped. The caller holds mu.
func (m *Memory) fits(n int64, share float64) bool {
	most, has, much := int64(share*float64(m.Limit)), m.heap(), m.Limit/minGarbage
	if has+n <= most {
		return true
	}
	if helps := n >= much || m.live+n <= most && has-m.live >= much; !helps && time.Since(m.collected) < time.Second {
		return false
	}
	runtime.GC()
	m.live, m.collected = m.heap(), time.Now()
	return m.live+n <= most
}

// heap returns the bytes of all objects, those included that the next collection frees. The caller holds mu.
func (m *Memory) heap() int64 {
	m.sample[0].Name = "/memory/classes/heap/objects:bytes"
	metrics.Read(m.sample[:])
	return int64(m.sample[0].Value.Uint64())
}
