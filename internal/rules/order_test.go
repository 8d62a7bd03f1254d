package rules

import (
	"strings"
	"testing"
)

// TestOrderOfGroups: here a group that reads what a later one records is an
// evaluation late; for Prometheus there is no order.
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
	const want = `a.yml:5: warning: group "sums": rule 2 "r:sum": reads r:x, which group "of each" records after it, and so sees what was recorded an evaluation ago; put that group first
a.yml:9: warning: group "of each": rule 2 "r:y": reads r:z, which group "g" of b.yml records after it, and so sees what was recorded an evaluation ago; name that file first`
	if got := problems.Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, problems := Load(Options{ForPrometheus: true}, "*.yml"); len(problems) > 0 {
		t.Errorf("for Prometheus: %v", problems)
	}
	_, problems = Load(Options{}, "b.yml", "a.yml")
	if got := problems.Error(); strings.Contains(got, "b.yml") {
		t.Errorf("named first: %s", got)
	}
}
