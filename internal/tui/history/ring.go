package history

import (
	"math"
	"sort"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// resolution is a width of buckets and the number that is kept.
type resolution struct {
	width   time.Duration
	buckets int64
}

// resolutions are those of a device's history: they cover the last minute, the last quarter of
// an hour, and six hours.
var resolutions = [...]resolution{
	{250 * time.Millisecond, 256},
	{2 * time.Second, 450},
	{30 * time.Second, 720},
}

// resolutionOf returns the index of the coarsest resolution whose width divides step.
func resolutionOf(step time.Duration) int {
	for i := len(resolutions) - 1; i > 0; i-- {
		if step%resolutions[i].width == 0 {
			return i
		}
	}
	return 0
}

// ring holds the buckets of one resolution that have readings, in order of time. It grows until
// its oldest bucket need not be kept; then the next bucket replaces that one.
type ring struct {
	first   int64 // number of the bucket that the others count from
	buckets []bucket
	oldest  int // slot of the oldest bucket
	columns int
	points  []packedPoint // columns of them for each of buckets
	open    []sum         // the sums of the newest bucket's columns
}

// bucket summarizes the readings within one width of time.
type bucket struct {
	number int32 // of widths since the first bucket of its ring
	// validity is the longest period of its readings, in ms.
	validity uint32
	classes  [canonical.NumClasses]uint8 // readings in each class
}

// slot returns the slot of the i-th oldest bucket, from 0.
func (r *ring) slot(i int) int { return (r.oldest + i) % len(r.buckets) }

// number returns the number of widths since 1970 of the bucket in a slot.
func (r *ring) number(slot int) int64 { return r.first + int64(r.buckets[slot].number) }

// make returns the slot of the bucket with a number, which is at least that of the newest, and
// makes room for columns. Buckets length or more before it need not be kept.
func (r *ring) make(number, length int64, columns int) int {
	r.widen(columns)
	slot := r.oldest
	switch n := len(r.buckets); {
	case n == 0, number-r.number(r.slot(n-1)) >= length:
		r.first, r.buckets, r.points, r.oldest = number, r.buckets[:0], r.points[:0], 0
		slot = r.extend(int(length))
	case number == r.number(r.slot(n-1)):
		return r.slot(n - 1)
	case number-r.number(slot) < length:
		slot = r.extend(int(length))
	default:
		r.oldest = r.slot(1)
	}
	r.buckets[slot] = bucket{number: int32(number - r.first)}
	fill(r.of(slot), absentPoint)
	clear(r.open)
	return slot
}

// of returns the columns of a bucket.
func (r *ring) of(slot int) []packedPoint { return r.points[slot*r.columns : (slot+1)*r.columns] }

// extend adds a slot after the newest bucket. Memory grows by less than with append, as
// histories are most of the dashboard's memory.
func (r *ring) extend(length int) int {
	n := len(r.buckets)
	if size := cap(r.buckets); n == size || r.oldest > 0 {
		const least, part = 16, 8
		if n == size {
			size = min(length, n+max(least, n/part))
		}
		r.buckets = append(append(make([]bucket, 0, size), r.buckets[r.oldest:]...), r.buckets[:r.oldest]...)
		split := r.oldest * r.columns
		r.points = append(append(make([]packedPoint, 0, size*r.columns), r.points[split:]...), r.points[:split]...)
		r.oldest = 0
	}
	r.buckets = r.buckets[:n+1]
	r.points = r.points[:(n+1)*r.columns]
	return n
}

// widen makes room for columns. Usually all come with the first reading.
func (r *ring) widen(columns int) {
	if columns <= r.columns {
		return
	}
	points := make([]packedPoint, len(r.buckets)*columns, cap(r.buckets)*columns)
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

// walk calls visit for the buckets of the last n columns up to end, in order, each with its
// column, its ring and its slot there. The previous bucket stands for an empty one as long
// as it is valid.
func (d *past) walk(n int, end time.Time, step time.Duration, visit func(column int, r *ring, slot int)) {
	index := resolutionOf(step)
	r, width := &d.rings[index], resolutions[index].width.Milliseconds()
	perColumn := step.Milliseconds() / width
	first := (end.UnixMilli()/step.Milliseconds() - int64(n) + 1) * perColumn
	newest := min(end.UnixMilli()/width, first+int64(n)*perColumn-1)
	// next is the index, in order of time, of the first bucket that is not walked yet.
	next := sort.Search(len(r.buckets), func(i int) bool { return r.number(r.slot(i)) >= first })
	for number := first; number <= newest; number++ {
		if next < len(r.buckets) && r.number(r.slot(next)) == number {
			next++
		}
		if next == 0 {
			continue // nothing was read so far
		}
		slot := r.slot(next - 1)
		if gap := number - r.number(slot); gap*width <= 3*int64(r.buckets[slot].validity)/2 {
			visit(int((number-first)/perColumn), r, slot)
		}
	}
}

// sum sums up the values of one metric in the newest bucket.
type sum struct {
	n             int
	mean, highest float64
}

func (s *sum) add(v float64) {
	s.n++
	s.mean += (v - s.mean) / float64(s.n)
	s.highest = max(s.highest, v)
}

func (s *sum) point() packedPoint {
	const nearest, above = 1 << (unkept - 1), 1<<unkept - 1
	return packedPoint{pack(s.mean, nearest), pack(s.highest, above)}
}

// packedPoint summarizes the values of one metric in one bucket. Sixteen devices have a quarter of a
// million of them, so each is four bytes.
type packedPoint struct{ mean, highest packed }

// absentPoint is the point of a bucket without a reading.
var absentPoint = packedPoint{mean: noNumber}

// packed is a number from 0 to below 2⁴³ in 16 bits: the middle bits of a float32, six of the
// exponent and ten of the mantissa. It is within 1/2048 of the original.
type packed uint16

const (
	// unkept is the number of bits of a float32's mantissa that are dropped.
	unkept = 13
	// lowest are the kept bits of 2⁻²¹. A smaller number, except 0, becomes the smallest one.
	lowest = (127 - 21) << (23 - unkept)
	// noNumber stands for NaN.
	noNumber packed = math.MaxUint16
)

// pack packs v, which is not NaN. It adds half to the bits before it drops the lowest: half of
// a kept bit rounds to nearest, almost a whole one rounds up. A v out of range becomes noNumber.
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
func (p *Point) merge(o packedPoint, n float64) {
	mean, highest := o.mean.value(), o.highest.value()
	if n == 0 {
		*p = Point{mean, highest}
		return
	}
	p.Mean += (mean - p.Mean) / (n + 1)
	p.Max = max(p.Max, highest)
}
