package compute

import "math"

// measure sums what the allocations of d use of it.
func (d *device) measure() {
	d.measured, d.used = false, 0
	if len(d.allocations) != d.holders {
		return
	}
	total := 0.0
	for _, a := range d.allocations {
		if !(a.use.NVMLUtilization >= 0) {
			return
		}
		total += a.use.NVMLUtilization
	}
	if d.measured = !math.IsInf(total, 0); d.measured {
		d.used = total
	}
}

// cutter cuts an amount into the shares of the holders of d: by use or, if that is unknown for
// any of them or 0 for all, equally. Odd units of equal shares go to the holder with index first
// and those after it.
func (d *device) cutter(amount int64, first int) cutter {
	n := max(d.holders, len(d.allocations), 1)
	return cutter{amount: amount, total: d.used, n: n, first: first % n}
}

// cutter cuts an amount, of at least 0, into shares in whole units, one after another.
// They sum to the amount once all have theirs.
type cutter struct {
	amount int64
	given  int64 // so far
	// By weight: the sum of all weights, of at least 0, and of those so far. A total of 0
	// makes equal shares.
	total, sum float64
	// In equal shares: how many there are, and the first with an odd unit.
	n, first, k int
}

// next returns where in the amount the next share, of that weight, begins and ends.
func (c *cutter) next(weight float64) (from, to int64) {
	from = c.given
	if c.total > 0 {
		c.sum += weight
		to = c.amount
		if c.sum < c.total {
			to = min(to, int64(math.Round(c.sum/c.total*float64(c.amount))))
		}
	} else {
		to = from + c.amount/int64(c.n)
		if int64((c.k-c.first+c.n)%c.n) < c.amount%int64(c.n) {
			to++
		}
	}
	c.given, c.k = to, c.k+1
	return from, to
}

// cut returns the next share, of that weight.
func (c *cutter) cut(weight float64) int64 {
	from, to := c.next(weight)
	return to - from
}

// following returns which holder gets the first odd unit of the next amount, so that equal shares
// do not depend on how often the device is read.
func (c *cutter) following() int {
	if c.total > 0 {
		return c.first
	}
	return (c.first + int(c.amount%int64(c.n))) % c.n
}
