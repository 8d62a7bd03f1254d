package compute

import (
	"math"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// start is an arbitrary instant: the package has no clock of its own.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var absent = math.NaN()

// reading is a sparse row; all other fields are absent.
type reading map[canonical.Field]float64

// row returns the reading as a frame holds it.
func (r reading) row() []float64 {
	row := make([]float64, canonical.NumFields)
	for i := range row {
		row[i] = absent
	}
	for f, v := range r {
		row[f] = v
	}
	return row
}

// topology returns a topology of the devices, in which every board is its own Board.
func topology(devices ...canonical.Device) *canonical.Topology {
	for i := range devices {
		if !devices[i].IsInstance() {
			devices[i].Board = i
		}
	}
	return &canonical.Topology{Devices: devices, Generation: 1}
}

// frame returns a frame of a topology with a reading for each device.
func frame(t *canonical.Topology, at time.Time, readings ...reading) *canonical.Frame {
	f := &canonical.Frame{At: at}
	f.Shape(t)
	for i, r := range readings {
		copy(f.Row(i), r.row())
	}
	return f
}

func newJudge(tb testing.TB, change func(*Options)) *Judge {
	tb.Helper()
	o := DefaultOptions()
	if change != nil {
		change(&o)
	}
	j, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return j
}

// judgeOne judges a reading of one board of a model.
func judgeOne(tb testing.TB, j *Judge, model string, r reading) canonical.Verdict {
	tb.Helper()
	t := topology(canonical.Device{GPU: "0", UUID: "GPU-1", Model: model})
	return j.Judge(frame(t, start, r), nil)[0]
}

func same(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b)
}

func near(a, b float64) bool {
	return math.Abs(a-b) <= 1e-9 || math.IsNaN(a) && math.IsNaN(b)
}
