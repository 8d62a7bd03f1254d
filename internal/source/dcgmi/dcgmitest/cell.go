package dcgmitest

import (
	"hash/fnv"
	"math"
	"strconv"
)

// NA is what a blank value prints as.
const NA = "N/A"

// blankFloat and blankInt are the least values that stand for no value.
const (
	blankFloat = 140737488355328.0
	blankInt   = 0x7ffffffffffffff0
)

// Cell returns what dmon prints of a field on an entity in sample number tick,
// before it is cut to its column. It is false where the host engine returned
// nothing at all, and where the release has no such field.
func (s Scenario) Cell(e Entity, field, tick int) (string, bool) {
	f, known := FieldByID(s.Release(), field)
	if !known {
		return "", false
	}
	gpu, onBoard := s.board(e)
	if !onBoard || s.lost(gpu.Index, tick) {
		return NA, true // also of an instance that a new cut removed, or a board that is gone
	}
	reader, state := f.reader(e, gpu)
	if r, ok := s.reading(e, reader, field, tick); ok {
		return r.text(f, tick, s.Release())
	}
	switch {
	case state != "":
		return absent(state, f, s.Release())
	case !s.WatchedElsewhere && tick == 0 && f.Model == Rate:
		return f.format(0), true
	case !s.WatchedElsewhere && tick == 0 && Profiling(field):
		return NA, true
	}
	return f.format(Value(s.Seed, reader.String(), field, tick)), true
}

// Truth returns the number that dmon prints of a field on an entity in sample
// number tick, with the decimals that it prints, and false where it prints no
// number: N/A, an empty cell, or a number that its column cuts.
func (s Scenario) Truth(e Entity, field, tick int) (float64, bool) {
	text, ok := s.Cell(e, field, tick)
	f, known := FieldByID(s.Release(), field)
	if !ok || !known || len(text) > f.Width+6 {
		return 0, false
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, false
	}
	return value, true
}

// reader returns the entity whose reading e shows, or why e shows none.
func (f Field) reader(e Entity, gpu GPU) (Entity, State) {
	switch {
	case f.Model == Never:
		return e, NoSample
	case f.Model == Unsupported:
		return e, Blank
	case e.Instance && f.Level == OfBoardOnly:
		return e, Blank
	case e.Instance && f.Level == OfBoard:
		return Entity{ID: gpu.Index}, ""
	}
	return e, ""
}

// reading returns the last reading of the scenario for field on e, or
// on the entity that e shows the reading of.
func (s Scenario) reading(e, reader Entity, field, tick int) (Reading, bool) {
	for i := len(s.Readings) - 1; i >= 0; i-- {
		r := s.Readings[i]
		if (r.Entity == "" || r.Entity == e.String() || r.Entity == reader.String()) &&
			(r.Field == 0 || r.Field == field) && tick >= r.From && (r.Until == 0 || tick < r.Until) {
			return r, true
		}
	}
	return Reading{}, false
}

func (s Scenario) lost(gpu, tick int) bool {
	for _, failure := range s.Failures {
		if failure.Kind == GPULost && failure.GPU == gpu && failure.Lasts(tick) {
			return true
		}
	}
	return false
}

// Lasts reports whether f is on in sample number tick.
func (f Failure) Lasts(tick int) bool {
	return tick >= f.After && (f.Until == 0 || tick < f.Until)
}

func (r Reading) text(f Field, tick int, release Release) (string, bool) {
	switch {
	case r.State != "":
		return absent(r.State, f, release)
	case r.Text != "":
		return r.Text, true
	}
	return f.format(r.Value + r.Step*float64(tick-r.From)), true
}

// absent returns what dmon prints where there is no value.
func absent(state State, f Field, release Release) (string, bool) {
	switch {
	case state == Omitted:
		return "", false
	case state == NoSample && !release.Since("4.4.2"):
		return f.format(0), true
	}
	return NA, true
}

// format returns value as dmon prints it. What DCGM takes for one of its blank
// values prints as N/A.
func (f Field) format(value float64) string {
	switch {
	case f.Float && value >= blankFloat, !f.Float && value >= blankInt:
		return NA
	case f.Float:
		return strconv.FormatFloat(value, 'f', 3, 64)
	}
	return strconv.FormatInt(int64(value), 10)
}

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
