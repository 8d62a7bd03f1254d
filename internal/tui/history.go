package tui

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// History is what was read of each device, as far as it is kept. Only the root
// model writes it, and views read it in the same goroutine.
type History struct{}

// Point is what a metric did in one bucket of time: NaN in all three where there
// was no reading.
type Point struct{ Mean, Min, Max float64 }

// Fill writes into dst what a metric of a device did in the last len(dst) buckets
// of length step up to end, the latest last. Buckets begin at multiples of step, so
// that a past bucket never changes as time goes on. Where nothing was read the
// Point is NaN.
func (h *History) Fill(dst []Point, k Key, m Metric, end time.Time, step time.Duration) {}

// Classes writes into dst the class that the device was in for most of each of
// the last len(dst) buckets, as Fill takes them; canonical.NumClasses where nothing
// was read.
func (h *History) Classes(dst []canonical.Class, k Key, end time.Time, step time.Duration) {}
