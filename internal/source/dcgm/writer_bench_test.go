package dcgm

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// first25 are values of the first 25 fields.
type first25 struct{}

func (first25) Reading(field, device int) float64 {
	switch {
	case field >= 25:
		return math.NaN()
	case Fields[field].Float:
		return float64(field*device*100+7) / 1000
	}
	return float64(field*device*1000 + 7)
}

// steady returns a function that writes a Batch of 8 boards with 25 fields.
func steady() func() *raw.Batch {
	var boards []board
	for g := range 8 {
		b := newBoard(g)
		b.UUID, b.Model, b.Driver = fmt.Sprintf("GPU-a1b2c3d4-%04d-1111-2222-333344445550", g), "NVIDIA H100 80GB HBM3", "580.105.08"
		b.PCIBusID = fmt.Sprintf("00000000:%d0:00.0", g)
		boards = append(boards, b)
	}
	w := NewWriter("gpu-node-0042", "", nil)
	w.SetInventory(flatten(boards))
	b := &raw.Batch{}
	return func() *raw.Batch {
		b.Reset()
		w.Write(b, time.Time{}, first25{})
		return b
	}
}

func TestSteadyWriteAllocatesNothing(t *testing.T) {
	write := steady()
	if n := len(write().Samples); n != 8*25 {
		t.Fatalf("%d samples", n)
	}
	text := write().AppendText(nil)
	if n := testing.AllocsPerRun(100, func() { text = write().AppendText(text[:0]) }); n != 0 {
		t.Errorf("%v allocations a tick", n)
	}
}

func BenchmarkWrite8x25(b *testing.B) {
	write := steady()
	b.ReportAllocs()
	for b.Loop() {
		write()
	}
}

func BenchmarkExposition8x25(b *testing.B) {
	batch := steady()()
	text := batch.AppendText(nil)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		text = batch.AppendText(text[:0])
	}
}

func (first25) IsLost(int) bool { return false }
