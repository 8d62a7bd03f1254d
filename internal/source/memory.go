package source

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"time"
	"unsafe"
)

// The shares of the limit up to which the heap may grow for bodies and their samples, and for answers. The
// rest is for what is not asked for here: small bodies, label sets, stacks, and the program itself.
const (
	bodyShare   = 0.6
	answerShare = 0.7
)

// small is the size in bytes of what is never refused.
const small = 1 << 20

// Memory is the memory that all sources and answers share. nil has no limit. Its methods are safe for concurrent use.
type Memory struct {
	Limit int64 // bytes

	mu        sync.Mutex
	garbage   bool // large memory was dropped since then
	collected time.Time
}

// Make returns a slice with a capacity of n, or nil if it does not fit. It has then called drop, after which the caller no
// longer refers to what it has: of several that grow at once, one is refused, and the others take its room.
func Make[T any](m *Memory, n int, drop func()) []T {
	size := int64(n) * int64(unsafe.Sizeof(*new(T)))
	if m == nil || size < small {
		return make([]T, 0, n)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.garbage = true // also what it replaces
	if !m.fits(size, bodyShare) {
		drop()
		m.garbage = true
		return nil
	}
	return make([]T, 0, n)
}

// Fits reports whether n more bytes of a body's samples fit.
func (m *Memory) Fits(n int64) bool { return m.has(n, bodyShare) }

// Answers reports whether n bytes of an answer fit.
func (m *Memory) Answers(n int64) bool { return m.has(n, answerShare) }

func (m *Memory) has(n int64, share float64) bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fits(n, share)
}

// fits collects garbage if that may help. The caller holds mu.
func (m *Memory) fits(n int64, share float64) bool {
	most := int64(share * float64(m.Limit))
	if heap()+n <= most {
		return true
	}
	if !m.garbage && time.Since(m.collected) < time.Second {
		return false
	}
	runtime.GC()
	m.garbage, m.collected = false, time.Now()
	return heap()+n <= most
}

// heap returns the bytes of all objects, those included that the next collection frees.
func heap() int64 {
	sample := [1]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample[:])
	return int64(sample[0].Value.Uint64())
}
