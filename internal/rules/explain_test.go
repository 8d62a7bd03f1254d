package rules

import (
	"strings"
	"testing"
)

func TestExcerpt(t *testing.T) {
	for _, test := range []struct {
		name, expr string
		start, end int
		want       string
	}{
		{"a word", "a + bad + c", 4, 7, "a + bad + c\n    ^~~"},
		{"a letter", "a + b", 4, 5, "a + b\n    ^"},
		{"nothing", "a + ", 4, 4, "a + \n    ^"},
		{"an empty expression", "", 0, 0, "\n^"},
		{"one line of several", "sum(\n  bad\n)", 7, 10, "  bad\n  ^~~"},
		{"over lines", "sum(\n  bad(\n))", 7, 13, "  bad(\n  ^~~~"},
		{"a tab", "a\t+ b", 4, 5, "a + b\n    ^"},
		{"wide characters", `é{a="日"} + b`, 14, 15, "é{a=\"日\"} + b\n           ^"},
		{"in the midst of a long line", strings.Repeat("x", 500) + "BAD" + strings.Repeat("y", 500), 500, 503, strings.Repeat("x", 50) + "BAD" + strings.Repeat("y", 47) + "\n" + strings.Repeat(" ", 50) + "^~~"},
		{"all of a long line", strings.Repeat("x", 500), 0, 500, strings.Repeat("x", 100) + "\n^" + strings.Repeat("~", 99)},
		{"more of a long line than is shown", strings.Repeat("x", 500), 200, 400, strings.Repeat("x", 100) + "\n" + strings.Repeat(" ", 50) + "^" + strings.Repeat("~", 49)},
		{"out of it", "abc", 7, 9, "abc\n   ^"},
	} {
		if got := excerpt(test.expr, test.start, test.end); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}
