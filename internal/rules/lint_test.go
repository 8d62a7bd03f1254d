package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// TestNameOfSelector: only an equality with a name selects a single one.
func TestNameOfSelector(t *testing.T) {
	for text, want := range map[string]string{
		"a": "a", `{__name__="a"}`: "a", `{job="b", __name__="a"}`: "a", `a{job="b"}`: "a", `a{job=~"b"}`: "a",
		`{job="a"}`: "", `{__name__=~"a"}`: "", `{__name__!="a", job="b"}`: "", `{__name__=~"a", job="b"}`: "",
	} {
		expr, err := newParser().ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := (Selector{Vector: expr.(*parser.VectorSelector)}).Name(); got != want {
			t.Errorf("%s selects %q, want %q", text, got, want)
		}
	}
}

// TestOrderOfGroups: a group that reads what a later one records lags by an evaluation; for
// Prometheus there is no order.
func TestOrderOfGroups(t *testing.T) {
	const two = `groups:
- name: sums
  rules:
  - {record: r:count, expr: count(up)}
  - {record: r:sum, expr: 'sum(r:x) + sum(r:x offset 1m) + sum(r:y) + r:count'}
- name: of each
  rules:
  - {record: r:x, expr: up}
  - {record: r:y, expr: r:x + r:z}
- name: last
  rules:
  - {record: r:x, expr: r:sum}
`
	write(t, map[string]string{"a.yml": two, "b.yml": group("g", "r:z", "1")})
	_, problems := Load(Options{}, "*.yml")
	const want = `a.yml:5: warning: group "sums": rule 2 "r:sum": reads r:x, which group "of each" records after it, and so sees the result of the previous evaluation; put that group first
a.yml:9: warning: group "of each": rule 2 "r:y": reads r:z, which group "g" of b.yml records after it, and so sees the result of the previous evaluation; name that file first`
	if got := problems.Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, problems := Load(Options{ForPrometheus: true}, "*.yml"); len(problems) > 0 {
		t.Errorf("for Prometheus: %v", problems)
	}
	first, _, _ := strings.Cut(want, "\n")
	for _, files := range [][]string{{"a.yml"}, {"b.yml", "a.yml"}} { // without r:z, or with it before
		if _, problems := Load(Options{}, files...); problems.Error() != first {
			t.Errorf("%q: got\n%s\nwant\n%s", files, problems.Error(), first)
		}
	}
}

// TestAlikeProblems: a problem that many rules of a file share is reported for the first,
// and once more with their number.
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
		_, problems := load(t, Options{Window: 5 * time.Minute, ForPrometheus: true}, file(n))
		if len(problems) != want || problems.Refuse() {
			t.Errorf("for %d rules: %d warnings, want %d:\n%v", n, len(problems), want, problems)
		}
	}
	many := "groups:\n- name: g\n  rules:\n" + strings.Repeat("  - {record: x, expr: '('}\n", 5)
	if _, problems := load(t, Options{}, many); len(problems) != 5 {
		t.Errorf("of 5 mistakes: %v", problems)
	}
	_, problems := load(t, Options{Window: 5 * time.Minute, ForPrometheus: true}, file(50))
	const want = "f:53: warning: 50 rules in total, this one the last, reach back beyond the window"
	if problems[0].Line != 4 || problems[1].String() != want {
		t.Errorf("got  %v\nwant %s behind the first", problems, want)
	}
	_, problems = load(t, Options{Window: 5 * time.Minute}, file(50))
	if len(problems) != 3 || problems[0].Warning || problems[1].Warning {
		t.Errorf("for evaluation by the proxy: %v, want 3 errors", problems)
	}
}
