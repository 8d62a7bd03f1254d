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
type ring struct {
	first   int64 // number of the first bucket ever
	buckets []bucket
	columns int
	points  []point // columns of them for each of buckets
	open    []sum   // what the columns of the newest bucket are made of
}

// bucket is what was read within one width of time. Its number counts widths since
// 1970.
type bucket struct {
	number int64
	// validity is that of its last reading in ms.
	validity uint32
	classes  [canonical.NumClasses]uint8 // readings in each class
}

// at returns the slot of the bucket with a number, -1 if nothing was read in it.
func (r *ring) at(number, length int64) int {
	slot := (number - r.first) % length
	if number < r.first || slot >= int64(len(r.buckets)) || r.buckets[slot].number != number {
		return -1
	}
	return int(slot)
}

// make returns the slot of the bucket with a number, which is none before the newest, and
// memory for columns; it may take the place of the oldest.
func (r *ring) make(number, length int64, columns int) int {
	if len(r.buckets) == 0 {
		r.first = number
	}
	r.widen(columns)
	slot := int((number - r.first) % length)
	for len(r.buckets) <= slot {
		r.extend(int(length))
	}
	if b := &r.buckets[slot]; b.number != number {
		*b = bucket{number: number}
		fill(r.of(slot), absentPoint)
		clear(r.open)
	}
	return slot
}

// of returns the columns of a bucket.
func (r *ring) of(slot int) []point { return r.points[slot*r.columns : (slot+1)*r.columns] }

// extend adds a bucket in which nothing was read. Its memory grows by less than append's would:
// histories are most of what a dashboard keeps.
func (r *ring) extend(length int) {
	if n := len(r.buckets); n == cap(r.buckets) {
		const least, part = 16, 8
		n = min(length, n+max(least, n/part))
		r.buckets = append(make([]bucket, 0, n), r.buckets...)
		r.points = append(make([]point, 0, n*r.columns), r.points...)
	}
	r.buckets = append(r.buckets, bucket{number: -1})
	r.points = r.points[:len(r.buckets)*r.columns]
	fill(r.of(len(r.buckets)-1), absentPoint)
}

// widen makes room for columns. All come with the first reading as a rule.
func (r *ring) widen(columns int) {
	if columns <= r.columns {
		return
	}
	points := make([]point, len(r.buckets)*columns, cap(r.buckets)*columns)
	fill(points, absentPoint)
	for slot := range r.buckets {
		copy(points[slot*columns:], r.of(slot))
	}
	r.columns, r.points, r.open = columns, points, append(make([]sum, 0, columns), r.open...)[:columns]
}

// add adds a value, which is not NaN, to a column of the newest bucket.
func (r *ring) add(slot, column int, v float64) {
	r.open[column].add(v)
	r.of(slot)[column] = r.open[column].point()
}

func fill[T any](all []T, v T) {
	for i := range all {
		all[i] = v
	}
}

// maxValidity bounds the validity of a reading, in buckets.
const maxValidity = 256

// before returns the slot of the newest bucket in front of a number, -1 without one.
func (r *ring) before(number, length int64) int {
	for i := number - 1; i >= number-maxValidity; i-- {
		if slot := r.at(i, length); slot >= 0 {
			return slot
		}
	}
	return -1
}

// walk calls visit for the buckets of the last n columns up to end, in order, each
// with its column, its ring and its slot there. Where nothing was read, it is the previous
// bucket as long as that is valid.
func (d *device) walk(n int, end time.Time, step time.Duration, visit func(column int, r *ring, slot int)) {
	index := resolutionOf(step)
	r, width, length := &d.rings[index], resolutions[index].width.Milliseconds(), resolutions[index].buckets
	perColumn := step.Milliseconds() / width
	first := (end.UnixMilli()/step.Milliseconds() - int64(n) + 1) * perColumn
	newest := min(end.UnixMilli()/width, first+int64(n)*perColumn-1)
	previous := r.before(first, length)
	for number := max(first, 0); number <= newest; number++ {
		slot := r.at(number, length)
		if slot < 0 && previous >= 0 && (number-r.buckets[previous].number)*width <= 3*int64(r.buckets[previous].validity)/2 {
			slot = previous
		} else {
			previous = slot
		}
		if slot >= 0 {
			visit(int((number-first)/perColumn), r, slot)
		}
	}
}

// sum is what was read of one metric in the newest bucket.
type sum struct {
	n             int
	mean, highest float64
}

func (s *sum) add(v float64) {
	s.n++
	s.mean += (v - s.mean) / float64(s.n)
	s.highest = max(s.highest, v)
}

func (s *sum) point() point {
	const nearest, above = 1 << (unkept - 1), 1<<unkept - 1
	return point{pack(s.mean, nearest), pack(s.highest, above)}
}

// point summarizes the values of one metric in one bucket. Sixteen devices have a quarter of a
// million of them, so each is four bytes.
type point struct{ mean, highest packed }

// absentPoint is that of a bucket without a reading.
var absentPoint = point{mean: noNumber}

// packed is a number from 0 to 2⁴³ in 16 bits: the middle ones of a float32, six of the exponent
// and ten of the mantissa, so that it is within 1/2048 of what it was.
type packed uint16

const (
	// unkept are the bits of a float32's mantissa that are left out.
	unkept = 13
	// lowest are the bits that are left of 2⁻²¹. A smaller number but 0 becomes the smallest.
	lowest = (127 - 21) << (23 - unkept)
	// noNumber stands for none.
	noNumber packed = math.MaxUint16
)

// pack returns v, which is not NaN, with half added to what is left out: a half rounds to the
// nearest number, nearly one to the next above. What is outside its range is no number.
func pack(v float64, half uint32) packed {
	const beyond = 1 << 43
	switch {
	case v < 0 || v >= beyond:
		return noNumber
	case v == 0:
		return 0
	}
	bits := int64(math.Float32bits(float32(v))+half) >> unkept
	return packed(min(max(bits-lowest, 1), int64(noNumber)-1))
}

func (p packed) value() float64 {
	switch p {
	case 0:
		return 0
	case noNumber:
		return math.NaN()
	}
	return float64(math.Float32frombits((uint32(p) + lowest) << unkept))
}

// merge adds a bucket to a Point made of n others. Each has the same weight, however many
// readings it has.
func (p *Point) merge(o point, n float64) {
	mean, highest := o.mean.value(), o.highest.value()
	if n == 0 {
		*p = Point{mean, highest}
		return
	}
	p.Mean += (mean - p.Mean) / (n + 1)
	p.Max = max(p.Max, highest)
}
