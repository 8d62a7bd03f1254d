package dcgmitest

import (
	"hash/fnv"
	"math"
	"strconv"
)

// Value returns what field reads on entity, such as "GPU 0", in a child's sample
// number tick by the seed alone: with no Reading, no failure and not in a first
// sample. It is a function of its arguments, each field on its own: framebuffer
// used, free and total do not add up. Floats have three decimals, as printed. It
// is NaN for a field that nothing is known of, or that reads nothing by itself.
func Value(seed uint64, entity string, field, tick int) float64 {
	f, known := FieldByID(Release{math.MaxInt}, field)
	if !known || f.Model == Never || f.Model == Unsupported {
		return math.NaN()
	}
	switch f.Model {
	case Constant:
		tick = 0
	case Counter:
		start := math.Floor(f.Low * (1 + share(seed, entity, field, -1)))
		return start + float64(tick)*math.Floor(f.High*share(seed, entity, field, -2))
	}
	value := f.Low + (f.High-f.Low)*share(seed, entity, field, tick)
	if f.Float {
		return math.Round(value*1000) / 1000
	}
	return math.Floor(value)
}

// Share returns a number in [0, 1) that seed and tick decide on.
func Share(seed uint64, tick int) float64 { return share(seed, "", 0, tick) }

// share returns a number in [0, 1) that its arguments decide on.
func share(seed uint64, entity string, field, tick int) float64 {
	h := fnv.New64a()
	var text [64]byte
	key := strconv.AppendUint(text[:0], seed, 16)
	key = strconv.AppendInt(append(key, '/'), int64(field), 16)
	key = strconv.AppendInt(append(key, '/'), int64(tick), 16)
	key = append(append(key, '/'), entity...)
	_, _ = h.Write(key)
	// FNV leaves the high bits of short keys alike; the finalizer of SplitMix64
	// spreads them.
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}
