package dcgm

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sample returns one sample of dmon 4.5 with all fields: boards, the odd ones cut in two,
// with random numbers and some N/A.
func sample(rng *rand.Rand, boards int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s", "#Entity")
	for _, f := range Fields {
		fmt.Fprintf(&b, "%-40s", f.Column)
	}
	row := func(entity string) {
		fmt.Fprintf(&b, "\n%-16s", entity)
		for _, f := range Fields {
			cell := fmt.Sprint(rng.IntN(120))
			switch {
			case rng.IntN(6) == 0:
				cell = "N/A"
			case f.Float:
				cell = fmt.Sprintf("%.3f", rng.Float64()*1.2)
			case rng.IntN(4) == 0:
				cell = fmt.Sprint(rng.Uint64() >> (1 + rng.IntN(60)))
			}
			fmt.Fprintf(&b, "%-40s", cell)
		}
	}
	for g := range boards {
		row(fmt.Sprintf("GPU %d", g))
		if g%2 == 1 {
			row(fmt.Sprintf("GPU-I %d", 7*g))
			row(fmt.Sprintf("GPU-I %d", 7*g+1))
		}
	}
	return b.String() + "\n"
}

// The exposition of a Batch scans to its samples, in their order.
func TestExpositionReadsBack(t *testing.T) {
	boards := []board{newBoard(0), newBoard(1), newBoard(2), newBoard(3)}
	for g := range boards {
		boards[g].UUID, boards[g].Model = fmt.Sprintf("GPU-%08d", g), "H100"
		if g%2 == 1 {
			boards[g].instances = []Device{instance(7*g, "1"), instance(7*g+1, "2")}
		}
	}
	w := writer("gpu07", flatten(boards), Jobs{{GPU: "0"}: {"1", "2"}, {GPU: "1", Instance: "2"}: {"3"}})
	var scanner raw.Scanner
	out := &raw.Batch{Dict: raw.NewDict()}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		b := read(sample(rng, 4)).write(w)
		out.Body = b.AppendAll(out.Body[:0])
		scanner.Scan(out)
		if out.Skipped != 0 || len(out.Samples) != len(b.Samples) || len(out.Samples) < 300 {
			t.Fatalf("%d of %d samples, %d lines skipped", len(out.Samples), len(b.Samples), out.Skipped)
		}
		for i, s := range out.Samples {
			was := b.Samples[i]
			if s.Value != was.Value || out.Dict.Family(s.Family).Name != b.Dict.Family(was.Family).Name || out.Dict.Block(s.Labels) != b.Dict.Block(was.Labels) {
				t.Fatalf("%+v became %+v in\n%s", was, s, out.Body)
			}
		}
	}
}
