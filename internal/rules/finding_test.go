package rules

import (
	"fmt"
	"strings"
	"testing"
)

// TestAlikeProblems: what is so of many rules of a file is said of the first, and how
// many they are.
func TestAlikeProblems(t *testing.T) {
	file := func(n int) string {
		var b strings.Builder
		b.WriteString("groups:\n- name: g\n  rules:\n")
		for i := range n {
			fmt.Fprintf(&b, "  - {record: 'r:x%d', expr: 'rate(x[1h])'}\n", i)
		}
		return b.String() + "  - {record: kpulse_x, expr: 1}\n"
	}
	for n, want := range map[int]int{1: 2, 3: 4, 4: 3, 50: 3} {
		_, problems := load(t, Options{Window: DefaultWindow, ForPrometheus: true}, file(n))
		if len(problems) != want || problems.Refuse() {
			t.Errorf("of %d rules: %d warnings, want %d:\n%v", n, len(problems), want, problems)
		}
	}
	_, problems := load(t, Options{Window: DefaultWindow, ForPrometheus: true}, file(50))
	const want = "f:53: warning: 50 rules in all, of which this is the last, reach back beyond the window"
	if problems[0].Line != 4 || problems[1].String() != want {
		t.Errorf("got  %v\nwant %s behind the first", problems, want)
	}
	_, problems = load(t, Options{Window: DefaultWindow}, file(50))
	if len(problems) != 3 || problems[0].Warning || problems[1].Warning {
		t.Errorf("where the proxy is to evaluate them: %v, want 3 errors", problems)
	}
}
