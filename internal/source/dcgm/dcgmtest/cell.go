package dcgmtest

import (
	"hash/fnv"
	"math"
	"slices"
	"strconv"
)

// NA is the text of a blank value.
const NA = "N/A"

// blankFloat and blankInt are the least values that mean no value.
const (
	blankFloat = 140737488355328.0
	blankInt   = 0x7ffffffffffffff0
)

// Cell returns the text that dmon prints for a field of an entity in sample
// number tick, before it is cut to its column.
func (s Scenario) Cell(e Entity, f Field, tick int) string {
	gpu, onBoard := s.board(e)
	if !onBoard || s.lost(gpu.Index, tick) {
		return NA // also for a removed instance, or a board that is gone
	}
	reader := f.reader(e, gpu)
	if r, ok := s.reading(e, reader, f.ID); ok {
		if r.Blank {
			return NA
		}
		return f.format(r.Value + r.Step*float64(tick))
	}
	switch {
	case f.Model == Never && !s.Release().Since("4.4.2"):
		return f.format(0)
	case f.Model == Never, f.Model == Unsupported, e.Instance && f.Level == OfBoardOnly, tick == 0 && Profiling(f.ID):
		return NA
	case tick == 0 && f.Model == Rate:
		return f.format(0)
	}
	return f.format(Value(s.Seed, reader.String(), f.ID, tick))
}

// reader returns the entity whose reading the row of e shows.
func (f Field) reader(e Entity, gpu GPU) Entity {
	if e.Instance && f.Level == OfBoard {
		return Entity{ID: gpu.Index}
	}
	return e
}

// reading returns the last Reading of the scenario that applies to field on e or on reader.
func (s Scenario) reading(e, reader Entity, field int) (Reading, bool) {
	for _, r := range slices.Backward(s.Readings) {
		if (r.Entity == "" || r.Entity == e.String() || r.Entity == reader.String()) && (r.Field == 0 || r.Field == field) {
			return r, true
		}
	}
	return Reading{}, false
}

func (s Scenario) lost(gpu, tick int) bool {
	return slices.ContainsFunc(s.Failures, func(f Failure) bool { return f.Kind == GPULost && f.GPU == gpu && tick >= f.After })
}

// format returns value as dmon prints it. DCGM's blank values print as N/A.
func (f Field) format(value float64) string {
	switch {
	case f.Float && value >= blankFloat, !f.Float && value >= blankInt:
		return NA
	case f.Float:
		return strconv.FormatFloat(value, 'f', 3, 64)
	}
	return strconv.FormatInt(int64(value), 10)
}

// Value returns the value of a field of entity, such as "GPU 0", in a child's
// sample number tick, as far as only the seed determines it: without a Reading
// or failure, and not in a first sample. It depends only on its arguments, each
// field on its own: framebuffer used, free and total do not add up. Floats have
// three decimals, as printed. It is NaN for an unknown field, and for one
// without a value of its own.
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

// share returns a number in [0, 1) that depends on its arguments.
func share(seed uint64, entity string, field, tick int) float64 {
	h := fnv.New64a()
	var text [64]byte
	key := strconv.AppendUint(text[:0], seed, 16)
	key = strconv.AppendInt(append(key, '/'), int64(field), 16)
	key = strconv.AppendInt(append(key, '/'), int64(tick), 16)
	key = append(append(key, '/'), entity...)
	_, _ = h.Write(key)
	// FNV hardly changes the high bits of short keys; the finalizer of
	// SplitMix64 mixes them.
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}
