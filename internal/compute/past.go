package compute

import (
	"slices"
	"time"
)

// past is what went and is remembered for a while, the longest gone first.
type past[T any] []departure[T]

// departure is what went, and the time of the first reading without it.
type departure[T any] struct {
	what T
	at   time.Time
}

// due returns how many, from the front, are to be forgotten at an instant: those
// gone for longer than span, and those for which there is no room.
func (p past[T]) due(at time.Time, span time.Duration, room int) int {
	n := max(len(p)-max(room, 0), 0)
	for n < len(p) && at.Sub(p[n].at) > span {
		n++
	}
	return n
}

// without returns p, in its own memory, without those that left tells of.
func (p past[T]) without(left func(T) bool) past[T] {
	return slices.DeleteFunc(p, func(d departure[T]) bool { return left(d.what) })
}

// rewind lets nothing have gone later than at, to which the clock was set back.
func (p past[T]) rewind(at time.Time) {
	for i := range p {
		p[i].at = earlier(p[i].at, at)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
