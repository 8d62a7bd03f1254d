package history

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// resolution is a width of buckets, and how many of them are kept.
type resolution struct {
	width   time.Duration
	buckets int64
}

// resolutions are those in which a device is kept: the last minute finely, the last
// quarter of an hour, and six hours.
var resolutions = [...]resolution{
	{250 * time.Millisecond, 256},
	{2 * time.Second, 450},
	{30 * time.Second, 720},
}

// resolutionOf returns the index of the coarsest resolution whose buckets make up a
// step.
func resolutionOf(step time.Duration) int {
	for i := len(resolutions) - 1; i > 0; i-- {
		if step%resolutions[i].width == 0 {
			return i
		}
	}
	return 0
}

// ring holds the buckets of one resolution. It grows with time, up to its length.
type ring []bucket

// bucket is what was read within one width of time. Its number counts widths since
// 1970.
type bucket struct {
	number int64
	// validity is that of its last reading in ms.
	validity uint32
	classes  [canonical.NumClasses]uint8 // readings in each class
	values   []summary                   // by column
}

// at returns the bucket with a number, nil where nothing was read in it.
func (r ring) at(number, length int64) *bucket {
	if slot := number % length; number >= 0 && slot < int64(len(r)) && r[slot].number == number {
		return &r[slot]
	}
	return nil
}

// make returns the bucket with a number and memory for columns; it may take the place
// of the oldest. All columns come with the first reading as a rule, so they are
// allocated exactly.
func (r *ring) make(number, length int64, columns int) *bucket {
	slot := int(number % length)
	for len(*r) <= slot && len(*r) < int(length) {
		*r = append(*r, bucket{number: -1})
	}
	b := &(*r)[slot]
	if b.number != number {
		clear(b.values)
		*b = bucket{number: number, values: b.values}
	}
	if len(b.values) < columns {
		b.values = append(make([]summary, 0, columns), b.values...)[:columns]
	}
	return b
}

// maxValidity bounds the validity of a reading, in buckets.
const maxValidity = 256

// before returns the newest bucket in front of a number.
func (r ring) before(number, length int64) *bucket {
	for i := number - 1; i >= number-maxValidity; i-- {
		if b := r.at(i, length); b != nil {
			return b
		}
	}
	return nil
}

// walk calls visit for the buckets of the last n columns up to end, in order, each
// with its column. Where nothing was read, it is the previous bucket as long as that
// is valid.
func (d *device) walk(n int, end time.Time, step time.Duration, visit func(column int, b *bucket)) {
	index := resolutionOf(step)
	r, width, length := d.rings[index], resolutions[index].width.Milliseconds(), resolutions[index].buckets
	perColumn := step.Milliseconds() / width
	first := (end.UnixMilli()/step.Milliseconds() - int64(n) + 1) * perColumn
	newest := min(end.UnixMilli()/width, first+int64(n)*perColumn-1)
	previous := r.before(first, length)
	for number := max(first, 0); number <= newest; number++ {
		b := r.at(number, length)
		if b == nil && previous != nil && (number-previous.number)*width <= 3*int64(previous.validity)/2 {
			b = previous
		} else {
			previous = b
		}
		if b != nil {
			visit(int((number-first)/perColumn), b)
		}
	}
}

// summary is of the values of one metric in one bucket. Sixteen devices have a
// quarter of a million of them, so each is eight bytes.
type summary struct {
	mean    float32
	highest ceiling
	n       uint16 // number of values, as far as it can count
}

// add adds a value that is not NaN.
func (s *summary) add(v float64) {
	if s.n < math.MaxUint16 {
		s.n++
	}
	s.mean += (float32(v) - s.mean) / float32(s.n)
	s.highest = max(s.highest, ceilingOf(v))
}

// ceiling is an upper bound of a number, less than 1 % above it: the upper half of a
// float32. For a negative number it is 0.
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

// merge adds a summary to a Point made of n others. Each bucket has the same weight,
// however many readings it has.
func (p *Point) merge(s *summary, n float64) {
	mean, highest := float64(s.mean), s.highest.value()
	if n == 0 {
		*p = Point{mean, highest}
		return
	}
	p.Mean += (mean - p.Mean) / (n + 1)
	p.Max = max(p.Max, highest)
}
