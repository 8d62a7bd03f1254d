package history

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// level is a ring of buckets of one width. It grows as time goes on, up to its
// length.
type ring struct {
	buckets []bucket
	last    int64 // number of the newest bucket
}

// bucket is what was read within one width of time. Its number counts widths since
// 1970.
type bucket struct {
	number int64
	// hold is for how long the last reading stands, in ms.
	hold    uint32
	classes [canonical.NumClasses]uint8 // readings in each class
	values  []summary                   // by column
}

// summary is of the values of one metric in one bucket. There are a quarter of a
// million of them for sixteen devices, so each is eight bytes.
type summary struct {
	mean    float32
	highest ceiling
	n       uint16 // how many values, as far as it can count
}

// add takes in a value that is not NaN.
func (s *summary) add(v float64) {
	if s.n < math.MaxUint16 {
		s.n++
	}
	s.mean += (float32(v) - s.mean) / float32(s.n)
	s.highest = max(s.highest, ceilingOf(v))
}

// ceiling is a number that is not below another one, and above it by less than 1 %:
// the upper half of a float32. Of what is negative it is 0.
type ceiling uint16

func ceilingOf(v float64) ceiling {
	if !(v > 0) {
		return 0
	}
	const half = 16
	bits := math.Float32bits(float32(min(v, math.MaxFloat32/2)))
	return ceiling((bits + 1<<half - 1) >> half)
}

func (c ceiling) value() float64 { return float64(math.Float32frombits(uint32(c) << 16)) }

// bucket returns the one with a number, at most length of them being kept.
func (l *ring) bucket(number, length int64) *bucket {
	l.last = max(l.last, number)
	slot := int(number % length)
	for len(l.buckets) <= slot && len(l.buckets) < int(length) {
		l.buckets = append(l.buckets, bucket{number: -1})
	}
	b := &l.buckets[slot]
	if b.number == number {
		return b
	}
	clear(b.values)
	*b = bucket{number: number, values: b.values}
	return b
}

// summary returns that of a column.
func (b *bucket) summary(column int) *summary {
	return &b.values[column]
}

// widen makes room for so many columns, and for no more: most devices give the same
// readings all the time.
func (b *bucket) widen(columns int) {
	if len(b.values) < columns {
		b.values = append(make([]summary, 0, columns), b.values...)[:columns]
	}
}

// at returns the bucket with a number, nil where nothing was read in it.
func (l *ring) at(number, length int64) *bucket {
	if slot := number % length; number >= 0 && slot < int64(len(l.buckets)) && l.buckets[slot].number == number {
		return &l.buckets[slot]
	}
	return nil
}

// walk gives visit the buckets of the last n columns up to end, in order, each
// with its column. A bucket without a reading is that of the reading before, as
// long as that stands.
func (p *device) walk(n int, end time.Time, step time.Duration, visit func(column int, b *bucket)) {
	choice := resolutionOf(step)
	l, width, length := &p.rings[choice], resolutions[choice].width.Milliseconds(), resolutions[choice].buckets
	per := step.Milliseconds() / width // buckets in a column
	first := (end.UnixMilli()/step.Milliseconds() - int64(n) + 1) * per
	newest := min(end.UnixMilli()/width, first+int64(n)*per-1)
	held := l.before(first, length)
	for number := max(first, 0); number <= newest; number++ {
		b := l.at(number, length)
		if b == nil && held != nil && (number-held.number)*width <= 3*int64(held.hold)/2 {
			b = held
		} else {
			held = b
		}
		if b != nil {
			visit(int((number-first)/per), b)
		}
	}
}

// longestHold is how many buckets back a reading may stand.
const longestHold = 256

// before returns the newest bucket before a number.
func (l *ring) before(number, length int64) *bucket {
	for i := number - 1; i >= number-longestHold; i-- {
		if b := l.at(i, length); b != nil {
			return b
		}
	}
	return nil
}

// levelOf returns the coarsest level whose buckets make up a step.
func resolutionOf(step time.Duration) int {
	for i := len(resolutions) - 1; i > 0; i-- {
		if step%resolutions[i].width == 0 {
			return i
		}
	}
	return 0
}

// merge adds a summary to a Point that is made of n others. One bucket counts as
// much as another, however often it was read.
func (p *Point) merge(s *summary, n float64) {
	mean, highest := float64(s.mean), s.highest.value()
	if n == 0 {
		*p = Point{mean, highest}
		return
	}
	p.Mean += (mean - p.Mean) / (n + 1)
	p.Max = max(p.Max, highest)
}
