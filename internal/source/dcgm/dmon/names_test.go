package dmon

import (
	"math"
	"slices"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// named has an id for one column, and records for which entities it was called.
type named struct{ asked []Entity }

func (n *named) Column(name []byte) (uint32, bool) { return 7, string(name) == "SMACT" }

func (n *named) Entity(count int, e Entity) uint32 {
	n.asked = append(n.asked, e)
	return uint32(100*count + len(n.asked))
}

// TestNames reads without a Dict: Names gives the ids, and is called again only for an
// instance on another GPU.
func TestNames(t *testing.T) {
	names := &named{}
	p, b := Parser{Names: names, ShowEmpty: true}, &raw.Batch{} // ShowEmpty is for parsers without Names
	line := func(text string) {
		t.Helper()
		for !p.Line(b, []byte(text)) {
		}
	}
	line("#Entity    POWER        \n")
	if p.Reads() {
		t.Error("a column that Names leaves out is read")
	}
	line("#Entity    POWER        SMACT        \n")
	if !p.Reads() {
		t.Error("a column that Names knows is not read")
	}
	for range 2 {
		line("GPU 0      100.000      0.100        \n")
		line("GPU-I 3    100.000      0.300        \n")
		line("GPU 1      100.000      0.200        \n")
	}
	line("GPU 2      100.000      N/A          \n")
	line("GPU 1      100.000      0.200        \n")
	line("GPU-I 3    100.000      0.400        \n")
	want := []Entity{{ID: "0", GPU: "0"}, {Instance: true, ID: "3", GPU: "0"}, {ID: "1", GPU: "1"}, {ID: "2", GPU: "2"}, {Instance: true, ID: "3", GPU: "1"}}
	if !slices.Equal(names.asked, want) {
		t.Errorf("asked of %+v, want %+v", names.asked, want)
	}
	last := b.Samples[len(b.Samples)-1]
	if len(b.Samples) != 8 || last.Family != 7 || last.Labels != 105 || last.Value != .4 {
		t.Errorf("%d samples, the last %+v; want 8, of family 7 and labels 105", len(b.Samples), last)
	}
}

// TestShowEmpty: a row without values shows that its entity is present.
func TestShowEmpty(t *testing.T) {
	for _, show := range []bool{false, true} {
		p, b := Parser{ShowEmpty: show}, &raw.Batch{Dict: raw.NewDict()}
		for _, line := range []string{"#Entity    SMACT        ", "GPU 0      0.500        ", "GPU 1      N/A          ", "GPU 2      "} {
			p.Line(b, []byte(line))
		}
		var got []string
		for _, s := range b.Samples {
			got = append(got, b.Dict.Block(s.Labels)+b.Dict.Family(s.Family).Name)
			if math.IsNaN(s.Value) != (b.Dict.Family(s.Family).Name == "Entity") {
				t.Errorf("%s is %g", got[len(got)-1], s.Value)
			}
		}
		want := []string{gpuKey(0, "SMACT")}
		if show {
			want = append(want, gpuKey(1, "Entity"), gpuKey(2, "Entity"))
		}
		if !slices.Equal(got, want) || p.Rows() != 3 {
			t.Errorf("%d rows, %q, want 3, %q", p.Rows(), got, want)
		}
	}
}

// TestCompacted: after a Dict has dropped its ids, all get new ones, below the same header.
func TestCompacted(t *testing.T) {
	var p Parser
	b := &raw.Batch{Dict: raw.NewDict()}
	b.Dict.FamilyID([]byte("GONE"))
	b.Dict.BlockID([]byte("{}"))
	for _, line := range []string{"#Entity    SMACT        ", "GPU 0      0.500        "} {
		p.Line(b, []byte(line))
	}
	b.Reset()
	none := func(uint32) bool { return false }
	b.Dict.Compact(none, none)
	p.Next()
	p.Line(b, []byte("GPU 0      0.600        "))
	if len(b.Samples) != 1 || b.Dict.Family(b.Samples[0].Family).Name != "SMACT" || b.Dict.Block(b.Samples[0].Labels) != gpuKey(0, "") {
		t.Errorf("%+v", b.Samples)
	}
}
