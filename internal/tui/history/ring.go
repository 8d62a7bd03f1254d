package history

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
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

// ring holds the buckets of one resolution that have readings, in order of time.
type ring struct {
	buckets []bucket
	counts  [client.NumMetrics]int // readings of each metric in the newest bucket
}

// bucket summarizes the readings within one width of time.
type bucket struct {
	number   int64         // of widths since 1970
	validity time.Duration // the longest period of its readings
	classes  [canonical.NumClasses]uint8
	points   []point // by History.kept
}

// point summarizes one metric in a bucket. Its mean is NaN without a reading.
type point struct{ mean, highest float32 }

// newest returns the bucket with a number, which is at least that of the newest. It drops those that
// are length or more before it, and uses the memory of one again.
func (r *ring) newest(number, length int64, metrics int) *bucket {
	n := len(r.buckets)
	if n > 0 && r.buckets[n-1].number == number {
		return &r.buckets[n-1]
	}
	old := slices.IndexFunc(r.buckets, func(b bucket) bool { return b.number > number-length })
	if old < 0 {
		old = n
	}
	b := bucket{number: number}
	if old > 0 {
		b.points = r.buckets[0].points
	} else {
		b.points = make([]point, metrics)
	}
	for i := range b.points {
		b.points[i] = point{float32(math.NaN()), 0}
	}
	clear(r.counts[:])
	r.buckets = append(slices.Delete(r.buckets, 0, old), b)
	return &r.buckets[len(r.buckets)-1]
}

// add adds a value, which is not NaN, to a metric of the newest bucket.
func (r *ring) add(metric int, v float64) {
	p := &r.buckets[len(r.buckets)-1].points[metric]
	if r.counts[metric]++; r.counts[metric] == 1 {
		p.mean = 0
	}
	p.mean += (float32(v) - p.mean) / float32(r.counts[metric])
	p.highest = max(p.highest, float32(v))
}

// walk calls visit for the buckets of the last n columns up to end, in order, each with its
// column. The previous bucket stands for an empty one as long as it is valid.
func (d *past) walk(n int, end time.Time, step time.Duration, visit func(column int, b *bucket)) {
	index := resolutionOf(step)
	buckets, width := d.rings[index].buckets, resolutions[index].width.Milliseconds()
	perColumn := step.Milliseconds() / width
	first := (end.UnixMilli()/step.Milliseconds() - int64(n) + 1) * perColumn
	newest := min(end.UnixMilli()/width, first+int64(n)*perColumn-1)
	// next is the index of the first bucket that is not walked yet.
	next, _ := slices.BinarySearchFunc(buckets, first, func(b bucket, number int64) int { return cmp.Compare(b.number, number) })
	for number := first; number <= newest; number++ {
		if next < len(buckets) && buckets[next].number == number {
			next++
		}
		if next == 0 {
			continue // nothing was read so far
		}
		b := &buckets[next-1]
		if gap := number - b.number; gap*width <= 3*b.validity.Milliseconds()/2 {
			visit(int((number-first)/perColumn), b)
		}
	}
}
