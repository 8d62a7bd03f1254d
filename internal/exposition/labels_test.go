package exposition

import (
	"slices"
	"strings"
	"testing"
)

func TestParseLabels(t *testing.T) {
	cases := []struct {
		block string
		want  []Label
	}{
		{"", nil},
		{"{}", nil},
		{`{gpu="0",UUID="GPU-1"}`, []Label{{"gpu", "0"}, {"UUID", "GPU-1"}}},
		{`{b="",a="x",b="y",}`, []Label{{"b", ""}, {"a", "x"}, {"b", "y"}}},
		{`{ a = "x" b="y"}`, []Label{{"a", "x"}, {"b", "y"}}},
		{`{"a.b",x="y"}`, []Label{{"x", "y"}}},
		{`{x="y","a.b"}`, []Label{{"x", "y"}}},
		{`{"k.1"="v","k\"2"="w"}`, []Label{{"k.1", "v"}, {`k"2`, "w"}}},
		{`{a="\"\\\n\t"}`, []Label{{"a", "\"\\\n\\t"}}},
		{`{a="\\n\\\\n"}`, []Label{{"a", `\n\\n`}}},
		{"{a=\"one\ntwo}\"}", []Label{{"a", "one\ntwo}"}}},
		// Not blocks.
		{`gpu="0"}`, nil},
		{`{`, nil},
		{`{gpu="0"`, []Label{{"gpu", "0"}}},
		{`{gpu="0",!}`, []Label{{"gpu", "0"}}},
		{`{gpu="0\`, nil},
		{`{gpu=}`, nil},
	}
	for _, c := range cases {
		if got := ParseLabels(c.block, nil); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.block, got, c.want)
		}
	}
}

func TestParseLabelsAppends(t *testing.T) {
	dst := make([]Label, 1, 8)
	dst[0] = Label{"first", "1"}
	block := strings.Clone(`{gpu="0",UUID="GPU-1"}`)
	if n := testing.AllocsPerRun(10, func() { ParseLabels(block, dst) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
	want := []Label{{"first", "1"}, {"gpu", "0"}, {"UUID", "GPU-1"}}
	if got := ParseLabels(block, dst); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
