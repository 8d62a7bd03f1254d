package dcgmitest

import (
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
	if onBoard && s.lost(gpu.Index, tick) {
		return NA, true
	}
	partOfBoard := e.Group == Board || e.Group == GPUInstance || e.Group == ComputeInstance
	if partOfBoard && !onBoard {
		return NA, true // an instance that a new cut took away, or a board that is gone
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
	case !s.WatchedElsewhere && tick == 0 && Profiling(field) && !s.PreHopper:
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
	board := Entity{Group: Board, ID: gpu.Index}
	switch {
	case f.Model == Never:
		return e, NoSample
	case f.Model == Unsupported:
		return e, Blank
	case (f.Level == OfLink) != (e.Group == Link):
		return e, Blank
	case f.Level == OfLink || e.Group == Board:
		return e, ""
	case e.Group != GPUInstance && e.Group != ComputeInstance:
		return e, Blank // switches, processors and adapters have none of these fields
	case f.Level == OfBoardOnly:
		return e, Blank
	case f.Level == OfInstance && e.Group == ComputeInstance:
		return e, NoSample
	case f.Level == OfBoard:
		return board, ""
	}
	return e, ""
}

// reading returns the last reading of the scenario that speaks of field on e, or
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

// Lasts says whether f is on in sample number tick.
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

// absent returns what stands in the place of a value that there is none of.
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
