package rules

import (
	"fmt"
	"strings"
	"testing"
)

// TestAlikeProblems: what is so of many rules of a file for Prometheus is said twice,
// with how many they are; where it keeps the rules from being evaluated, of each.
func TestAlikeProblems(t *testing.T) {
	file := func(n int) []byte {
		var b strings.Builder
		b.WriteString("groups:\n- name: g\n  rules:\n")
		for i := range n {
			fmt.Fprintf(&b, "  - {record: 'r:x%d', expr: 'rate(x[1h])'}\n", i)
		}
		return []byte(b.String() + "  - {record: kpulse_x, expr: 1}\n")
	}
	for n, want := range map[int]int{1: 2, 3: 4, 4: 3, 50: 3} {
		_, problems := Parse(Options{Window: DefaultWindow, ForPrometheus: true}, "f.yml", file(n))
		if len(problems) != want || problems.Refuse() {
			t.Errorf("of %d rules: %d warnings, want %d:\n%v", n, len(problems), want, problems)
		}
	}
	_, problems := Parse(Options{Window: DefaultWindow, ForPrometheus: true}, "f.yml", file(50))
	const want = "f.yml:53: warning: 50 rules in all, of which this is the last, reach back beyond the window"
	if problems[0].Line != 4 || problems[1].String() != want {
		t.Errorf("got  %v\nwant %s behind the first", problems, want)
	}
	if _, problems = Parse(Options{Window: DefaultWindow}, "f.yml", file(50)); len(problems) != 51 {
		t.Errorf("%d problems where the proxy is to evaluate them, want 51", len(problems))
	}
}
