package engine

import (
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
)

// series is the samples of one label set that may still count.
type series struct {
	labels labels.Labels
	// keep is the selector's: samples older than that, counted from the last one, go,
	// except for the newest of them.
	keep    int64
	buf     []promql.FPoint
	head    int  // of buf: the oldest sample that counts
	dropped bool // the store has forgotten it
	index   int  // in the store's list of its name
	// owner is the page whose samples these are, nil if it is on none, or of a rule.
	owner *page
	// scan is the owner's last exposition that it was in.
	scan uint64
}

// samples returns those that count, oldest first. They are valid until the next
// one is added.
func (s *series) samples() []promql.FPoint { return s.buf[s.head:] }

// last returns the newest sample, false if there is none.
func (s *series) last() (promql.FPoint, bool) {
	if s.head == len(s.buf) {
		return promql.FPoint{}, false
	}
	return s.buf[len(s.buf)-1], true
}

// trim lets go of samples that no rule can see from t on, and returns how many.
func (s *series) trim(t int64) int {
	before := s.head
	for s.head+1 < len(s.buf) && s.buf[s.head+1].T <= t-s.keep {
		s.head++
	}
	return s.head - before
}

// push adds a sample that is newer than the last. It moves the others down where
// that frees enough capacity: a series of constant length soon allocates no
// more.
func (s *series) push(x promql.FPoint) {
	if len(s.buf) == cap(s.buf) && s.head > 0 && s.head >= len(s.buf)/4 {
		n := copy(s.buf, s.buf[s.head:])
		s.buf, s.head = s.buf[:n], 0
	}
	if s.buf == nil {
		s.buf = make([]promql.FPoint, 0, 2)
	}
	s.buf = append(s.buf, x)
}

// shrink gives back memory that many more samples than there are would need.
func (s *series) shrink() {
	const slack = 64 // samples, one KiB
	if n := len(s.samples()); cap(s.buf) > 4*n+slack {
		s.buf, s.head = slices.Clip(slices.Clone(s.samples())), 0
	}
}

// isStale reports whether the last sample marks the end of the series.
func (s *series) isStale() bool {
	x, ok := s.last()
	return ok && value.IsStaleNaN(x.F)
}

// staleMarker is the value that Prometheus stores when a series ends.
func staleMarker() float64 { return math.Float64frombits(value.StaleNaN) }
