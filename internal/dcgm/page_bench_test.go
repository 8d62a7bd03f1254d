package dcgm

import (
	"fmt"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// steady returns a page that knows 8 boards, and a tick of them with 25 fields.
func steady() (*Page, *raw.Batch) {
	d := raw.NewDict()
	tick, n := &raw.Batch{Dict: d}, Node{}
	for g := range 8 {
		n.Boards = append(n.Boards, Board{
			Entity: g, UUID: fmt.Sprintf("GPU-a1b2c3d4-%04d-1111-2222-333344445550", g), Model: "NVIDIA H100 80GB HBM3",
			PCIBusID: fmt.Sprintf("00000000:%d0:00.0", g), Driver: "580.105.08",
		})
		block := d.BlockID(fmt.Appendf(nil, `{gpu="%d",entity="GPU %d"}`, g, g))
		for f := range 25 {
			v := float64(f*g*1000 + 7)
			if Fields[f].Float {
				v = float64(f*g*100+7) / 1000
			}
			tick.Samples = append(tick.Samples, raw.Sample{Family: d.FamilyID([]byte(Fields[f].Column)), Labels: block, Value: v})
		}
	}
	p := New("gpu-node-0042")
	p.SetNode(n)
	return p, tick
}

func TestSteadyTickAllocatesNothing(t *testing.T) {
	p, tick := steady()
	out := &raw.Batch{Dict: raw.NewDict()}
	var s raw.Scanner
	run := func() {
		out.Body = p.Append(out.Body[:0], tick)
		s.Scan(out)
	}
	run()
	run()
	if len(out.Samples) != 8*25 {
		t.Fatalf("%d samples", len(out.Samples))
	}
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations a tick", n)
	}
}

func BenchmarkAppend8x25(b *testing.B) {
	p, tick := steady()
	out := p.Append(nil, tick)
	b.ReportAllocs()
	b.SetBytes(int64(len(out)))
	for b.Loop() {
		out = p.Append(out[:0], tick)
	}
}

func BenchmarkAppendAndScan8x25(b *testing.B) {
	p, tick := steady()
	out := &raw.Batch{Dict: raw.NewDict()}
	var s raw.Scanner
	b.ReportAllocs()
	for b.Loop() {
		out.Body = p.Append(out.Body[:0], tick)
		s.Scan(out)
	}
}
