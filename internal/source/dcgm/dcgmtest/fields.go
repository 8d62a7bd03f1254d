package dcgmtest

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Field is a field as dcgmi knows it.
type Field struct {
	ID     int
	Column string // the column's heading
	Unit   string // below the heading, often empty, some with a leading blank
	Width  int    // the column takes 8 more
	Type   string // double has three decimals, integer none; text is the driver's version
	// Level is the smallest part of a board with a reading of its own: board, instance, or only, for a board whose
	// instances are blank. An instance shows the board's reading of a board.
	Level string
	// Model is how the values behave without a Reading: a gauge and a rate are in [Low, High], but a rate begins with 0; a
	// counter starts in [Low, 2·Low] and gains up to High with each sample; a constant is the same in all samples; never
	// and unsupported are blank.
	Model     string
	Low, High float64
	Since     string // the first release that has it; "" means all
}

// table has only fields whose columns are known for certain. Assumed are the widths of 1507 and 1523, the headings and
// widths of 237 and 238, and the first releases of 153, 170, 171, 173 to 175, 346, 1204 to 1219 and 1400, which 4.6.0 has and
// 3.3.9 lacks.
//
//go:embed fields.tsv
var table string

var fields = sync.OnceValue(func() (all []Field) {
	for line := range strings.Lines(table) {
		c := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		id, err := strconv.Atoi(c[0])
		if err != nil {
			continue // a comment
		}
		f := Field{ID: id, Column: c[1], Unit: c[2], Type: c[4], Level: c[5], Model: c[6], Since: c[9]}
		_, _ = fmt.Sscan(strings.Join([]string{c[3], c[7], c[8]}, " "), &f.Width, &f.Low, &f.High)
		all = append(all, f)
	}
	return all
})

// Profiling reports whether the field with this id is one of the profiling module.
func Profiling(id int) bool { return 1001 <= id && id < 1200 }

// FieldByID returns the field with this id, if there is one.
func FieldByID(id int) (Field, bool) {
	for _, f := range fields() {
		if f.ID == id {
			return f, true
		}
	}
	return Field{}, false
}

// NA is the text of a blank value, Driver that of the field 1.
const (
	NA     = "N/A"
	Driver = "580.105.08"
)

// Cell returns the text that dmon prints for a field of an entity in sample number tick, before it is cut to its column.
func (s Scenario) Cell(e Entity, f Field, tick int) string {
	at := slices.IndexFunc(s.GPUs, func(g GPU) bool {
		return !e.Instance && g.Index == e.ID || e.Instance && slices.ContainsFunc(g.Instances, func(i Instance) bool { return i.Entity == e.ID })
	})
	switch {
	case at < 0 || slices.ContainsFunc(s.Failures, func(f Failure) bool { return f.Kind == GPULost && f.GPU == s.GPUs[at].Index && tick >= f.After }):
		return NA // also for a removed instance
	case f.Type == "text":
		return Driver
	}
	reader := e.String() // the entity whose reading the row shows
	if e.Instance && f.Level == "board" {
		reader = Entity{ID: s.GPUs[at].Index}.String()
	}
	for _, r := range slices.Backward(s.Readings) {
		if (r.Entity == "" || r.Entity == e.String() || r.Entity == reader) && (r.Field == 0 || r.Field == f.ID) {
			if r.Blank {
				return NA
			}
			return f.format(r.Value + r.Step*float64(tick))
		}
	}
	switch {
	case e.Instance && f.Level == "only", tick == 0 && Profiling(f.ID):
		return NA
	case tick == 0 && f.Model == "rate":
		return f.format(0)
	}
	return f.format(Value(s.Seed, reader, f.ID, tick))
}

func (f Field) format(value float64) string {
	switch {
	case math.IsNaN(value):
		return NA
	case f.Type == "double":
		return strconv.FormatFloat(value, 'f', 3, 64)
	}
	return strconv.FormatInt(int64(value), 10)
}

// Value returns the value of a field of entity, such as "GPU 0", in a child's sample number tick, as far as only the seed
// determines it: without a Reading or failure, and not in a first sample. It depends only on its arguments, each field on
// its own: framebuffer used, free and total do not add up. Floats have three decimals, as printed. It is NaN for an unknown
// field, and for one without a value of its own.
func Value(seed uint64, entity string, field, tick int) float64 {
	f, known := FieldByID(field)
	if !known || f.Model == "never" || f.Model == "unsupported" {
		return math.NaN()
	}
	share := func(tick int) float64 {
		h := fnv.New64a()
		_, _ = fmt.Fprint(h, entity, " ", field, " ", tick)
		return rand.New(rand.NewPCG(seed, h.Sum64())).Float64()
	}
	switch f.Model {
	case "constant":
		tick = 0
	case "counter":
		return math.Floor(f.Low*(1+share(-1))) + float64(tick)*math.Floor(f.High*share(-2))
	}
	value := f.Low + (f.High-f.Low)*share(tick)
	if f.Type == "double" {
		return math.Round(value*1000) / 1000
	}
	return math.Floor(value)
}
