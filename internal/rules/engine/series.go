package engine

import (
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
)

// series holds the samples of one label set that rules may still see.
type series struct {
	labels labels.Labels
	// keep is the longest keep of its selectors, in milliseconds.
	keep    int64
	buf     []promql.FPoint
	head    int  // index in buf of the oldest sample that counts
	dropped bool // the store has forgotten it
	index   int  // in the store's list of its name
	// owner is the page whose samples these are, nil for a rule's or a series on no page.
	owner *page
	// scan is the number of the owner's last exposition that had it.
	scan uint64
}

// samples returns the samples that count, oldest first. They are valid until the next
// sample is added.
func (s *series) samples() []promql.FPoint { return s.buf[s.head:] }

// last returns the newest sample, false if there is none.
func (s *series) last() (promql.FPoint, bool) {
	if s.head == len(s.buf) {
		return promql.FPoint{}, false
	}
	return s.buf[len(s.buf)-1], true
}

// trim drops samples that no rule can see from t on, and returns how many.
func (s *series) trim(t int64) int {
	before := s.head
	for s.head+1 < len(s.buf) && s.buf[s.head+1].T <= t-s.keep {
		s.head++
	}
	return s.head - before
}

// push adds a sample that is newer than the last. It moves the others down if that frees
// enough capacity: a series of constant length soon stops allocating.
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

// shrink releases memory if there is room for many more samples than there are.
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

// staleMarker returns the value that Prometheus stores when a series ends.
func staleMarker() float64 { return math.Float64frombits(value.StaleNaN) }
