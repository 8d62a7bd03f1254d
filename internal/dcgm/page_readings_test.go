package dcgm_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dmon"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// sample returns one sample of dmon 4.5 of all fields: boards, of which the odd
// ones are cut in two, with numbers by chance and some N/A.
func sample(rng *rand.Rand, boards int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s", "#Entity")
	for _, f := range dcgm.Fields {
		fmt.Fprintf(&b, "%-30s", f.Column)
	}
	row := func(entity string) {
		fmt.Fprintf(&b, "\n%-16s", entity)
		for _, f := range dcgm.Fields {
			cell := fmt.Sprint(rng.IntN(120))
			switch {
			case rng.IntN(6) == 0:
				cell = "N/A"
			case f.Float:
				cell = fmt.Sprintf("%.3f", rng.Float64()*1.2)
			case rng.IntN(4) == 0:
				cell = fmt.Sprint(rng.Uint64() >> (1 + rng.IntN(60)))
			}
			fmt.Fprintf(&b, "%-30s", cell)
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

// node is what sample's boards are. NVML's ids are in the order of DCGM's.
func node(boards int) dcgm.Node {
	var n dcgm.Node
	for g := range boards {
		b := dcgm.Board{Entity: g, UUID: fmt.Sprintf("GPU-%08d", g), Model: "H100"}
		if g%2 == 1 {
			b.Instances = []dcgm.Instance{{Entity: 7 * g, ID: 1}, {Entity: 7*g + 1, ID: 2}}
		}
		n.Boards = append(n.Boards, b)
	}
	return n
}

// Through a page and the scanner of expositions, a tick gives the readings that
// it gives by itself, device by device and bit by bit.
func TestAPageGivesTheSameReadings(t *testing.T) {
	const boards = 4
	p := dcgm.New("gpu07")
	p.SetNode(node(boards))
	direct, through := translator(t), translator(t)
	var parser dmon.Parser
	var scanner raw.Scanner
	tick, out := &raw.Batch{Dict: raw.NewDict()}, &raw.Batch{Dict: raw.NewDict()}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		tick.Reset()
		for line := range strings.Lines(sample(rng, boards)) {
			parser.Line(tick, []byte(line))
		}
		parser.Next()
		out.Body = p.Append(out.Body[:0], tick)
		scanner.Scan(out)
		if out.Skipped != 0 || len(out.Samples) != len(tick.Samples) {
			t.Fatalf("%d of %d samples, %d lines skipped", len(out.Samples), len(tick.Samples), out.Skipped)
		}
		var a, b canonical.Frame
		var repA, repB translate.Report
		direct.Translate(&a, tick, &repA)
		through.Translate(&b, out, &repB)
		compare(t, &a, &b)
		if repA.Dropped != repB.Dropped || repA.Clamped != repB.Clamped || len(repB.UnknownFamilies) != 0 {
			t.Fatalf("reports differ:\n%+v\n%+v", repA, repB)
		}
	}
}

func translator(t *testing.T) *translate.Translator {
	t.Helper()
	tr, err := translate.New(translate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func compare(t *testing.T, a, b *canonical.Frame) {
	t.Helper()
	if a.Len() != b.Len() || a.Len() != 8 {
		t.Fatalf("%d and %d devices", a.Len(), b.Len())
	}
	given := 0
	for i := range a.Len() {
		x, y := a.Topology.Devices[i], b.Topology.Devices[i]
		if x.GPU != y.GPU || x.IsInstance() != y.IsInstance() || y.Hostname != "gpu07" {
			t.Fatalf("device %d: %+v and %+v", i, x, y)
		}
		for f := range canonical.NumFields {
			v, w := a.Row(i)[f], b.Row(i)[f]
			if v != w && !(math.IsNaN(v) && math.IsNaN(w)) {
				t.Fatalf("%s of device %d: %v directly, %v through the page", canonical.Fields[f].Name, i, v, w)
			}
			if !math.IsNaN(w) {
				given++
			}
		}
	}
	if given < 8*20 {
		t.Fatalf("only %d readings", given)
	}
}

// Jobs arrive as holders of their devices.
func TestJobsBecomeAllocations(t *testing.T) {
	p := dcgm.New("")
	p.SetNode(node(2))
	p.SetJobs(dcgm.Jobs{{GPU: 0, Instance: dcgm.Unknown}: {"1", "2"}, {GPU: 1, Instance: 2}: {"3"}})
	tick := &raw.Batch{Dict: raw.NewDict()}
	var parser dmon.Parser
	for line := range strings.Lines(sample(rand.New(rand.NewPCG(1, 1)), 2)) {
		parser.Line(tick, []byte(line))
	}
	out := &raw.Batch{Body: p.Append(nil, tick)}
	var s raw.Scanner
	s.Scan(out)
	var frame canonical.Frame
	var rep translate.Report
	translator(t).Translate(&frame, out, &rep)
	var got []string
	for _, a := range frame.AllocationSet.Allocations {
		d := frame.Topology.Devices[a.Device]
		got = append(got, d.GPU+"/"+d.Instance+":"+a.Job)
	}
	if want := "[0/:1 0/:2 1/2:3]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}
