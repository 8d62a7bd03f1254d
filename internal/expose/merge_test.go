package expose

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

// merged returns the valid lines of bodies, merged.
func merged(m *merger, bodies ...string) string {
	var out bytes.Buffer
	b := buffer{w: &out}
	for _, body := range bodies {
		// In two parts, as when a line between them is left out.
		half := strings.LastIndexByte(body[:len(body)/2], '\n') + 1
		m.add(&canonical.Snapshot{Valid: [][]byte{[]byte(body[:half]), []byte(body[half:])}})
	}
	m.write(&b)
	b.flush()
	m.reset()
	return out.String()
}

// TestMergeGivesBack: of answers of many parts at once, the room of the latest is kept for the next, and none of one that did not fit.
func TestMergeGivesBack(t *testing.T) {
	var all outputs
	page := strings.Repeat("a 1\nb 2\n", maxKept/lineBytes)
	first, second, full := all.get(nil, false), all.get(nil, false), all.get(nil, false)
	for _, o := range []*output{first, second, full} {
		o.merger.add(&canonical.Snapshot{Valid: [][]byte{[]byte(page)}})
		o.merger.full = o == full
		all.put(o)
	}
	if len(all.idle) != 2 || all.idle[0] != first || first.merger.families != nil || all.idle[1] != second || cap(second.merger.families) == 0 {
		t.Errorf("%d are kept, the first with %d families, the second with %d", len(all.idle), cap(first.merger.families), cap(second.merger.families))
	}
}

func TestMerge(t *testing.T) {
	for _, tt := range []struct {
		name   string
		bodies []string
		want   string
	}{
		{"one family of two", []string{"# HELP a A.\n# TYPE a gauge\na{x=\"1\"} 1\n", "# HELP a Another.\n# TYPE a counter\na{x=\"2\"} 2\n"},
			"# HELP a A.\n# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\"} 2\n"},
		{"in the order of the first", []string{"a 1\nb 2\n", "c 3\nb{x=\"b\"} 4\na{y=\"1\"} 5\n"},
			"a 1\na{y=\"1\"} 5\nb 2\nb{x=\"b\"} 4\nc 3\n"},
		{"a header that comes late", []string{"a 1\n", "# TYPE a gauge\na{x=\"1\"} 2\n"}, "# TYPE a gauge\na 1\na{x=\"1\"} 2\n"},
		{"a header without a sample", []string{"# HELP a A.\n# TYPE a gauge\n", "a 1\n"}, "# HELP a A.\n# TYPE a gauge\na 1\n"},
		{"no last newline", []string{"a 1\nb 2", "b{x=\"1\"} 3\na{x=\"1\"} 4"}, "a 1\na{x=\"1\"} 4\nb 2\nb{x=\"1\"} 3\n"},
		{"comments and blanks", []string{"a 1\n# why\n\na{x=\"1\"} 2\nb 3\n", "a{x=\"2\"} 4\n"}, "a 1\n# why\n\na{x=\"1\"} 2\na{x=\"2\"} 4\nb 3\n"},
		{"families within one body", []string{"a 1\nb 2\na{x=\"1\"} 3\n", "b{x=\"1\"} 4\n"}, "a 1\na{x=\"1\"} 3\nb 2\nb{x=\"1\"} 4\n"},
		{"a summary", []string{"# TYPE a summary\na{quantile=\"1\"} 1\na_sum 2\na_count 3\nab 4\n", "# TYPE a summary\na_sum{x=\"1\"} 5\n"},
			"# TYPE a summary\na{quantile=\"1\"} 1\na_sum 2\na_count 3\na_sum{x=\"1\"} 5\nab 4\n"},
		{"CRLF and tabs", []string{"# TYPE\ta gauge\na\t1\n", "#\tTYPE a gauge\na{x=\"}\"} 2\n"}, "# TYPE\ta gauge\na\t1\na{x=\"}\"} 2\n"},
		{"comments in front", []string{"# of one\na 1\n", "\n# of two\na{x=\"1\"} 2\n"}, "# of one\n\n# of two\na 1\na{x=\"1\"} 2\n"},
		{"comments like headers", []string{"a{x=\"of the first upstream\"} 1\n#HELP a A.\n#TYPE a gauge\n", "# HELP a Another.\na{x=\"1\"} 2\n"},
			"# HELP a Another.\na{x=\"of the first upstream\"} 1\n#HELP a A.\n#TYPE a gauge\na{x=\"1\"} 2\n"},
		{"lines within a label", []string{"b{x=\"1\"} 1\nb{x=\"2\"} 2\na{x=\"\nb 1\n# TYPE c gauge\"} 1\n", "a{x=\"two\"} 2\nb{x=\"3\"} 3\n"},
			"b{x=\"1\"} 1\nb{x=\"2\"} 2\nb{x=\"3\"} 3\na{x=\"\nb 1\n# TYPE c gauge\"} 1\na{x=\"two\"} 2\n"},
		{"nothing", []string{"", "a 1\n", ""}, "a 1\n"},
	} {
		var m merger
		for range 2 { // the memory is reused
			if got := merged(&m, tt.bodies...); got != tt.want {
				t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
			}
		}
	}
}

// TestMergeAllocatesNothing: it allocates nothing for bodies that it has seen, and loses none
// of their lines.
func TestMergeAllocatesNothing(t *testing.T) {
	one, other := rawtest.Body(8, 60, 1), rawtest.Body(16, 60, 2)
	snaps := []*canonical.Snapshot{{Valid: [][]byte{one}}, {Valid: [][]byte{other}}}
	var m merger
	var out bytes.Buffer
	b := buffer{w: &out}
	run := func() {
		out.Reset()
		for _, s := range snaps {
			m.add(s)
		}
		m.write(&b)
		b.flush()
		m.reset()
	}
	run()
	if got, want := strings.Count(out.String(), "\n"), 60*(2+8+16); got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMerge(b *testing.B) {
	body := rawtest.Body(16, 60, 1)
	snap := &canonical.Snapshot{Valid: [][]byte{body}}
	var m merger
	out := buffer{w: &bytes.Buffer{}}
	b.SetBytes(int64(4 * len(body)))
	for b.Loop() {
		for range 4 {
			m.add(snap)
		}
		m.write(&out)
		out.ahead, out.buf = out.ahead[:0], out.buf[:0]
		m.reset()
	}
}
