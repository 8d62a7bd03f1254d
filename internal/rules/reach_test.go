package rules

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// TestReach: range, offsets and subqueries add up, and a fixed time is out of reach.
func TestReach(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1": 0, "vector(time())": 0, "a": 0, "a offset -1h": 0, "a @ end()": 0,
		"rate(a[90s])":                                   90 * time.Second,
		"b + on (x) sum(rate(a[1y]))":                    365 * 24 * time.Hour,
		"a offset 1m":                                    time.Minute,
		"rate(a[2m] offset 3m)":                          5 * time.Minute,
		"max_over_time(a[10m:1m])":                       10 * time.Minute,
		"max_over_time(rate(a[2m])[10m:1m] offset 1h)":   72 * time.Minute,
		"max_over_time(sum_over_time(a[3m:])[10m:1m])":   13 * time.Minute,
		"max_over_time((a @ start() offset 1m)[10m:1m])": time.Minute,
		"a @ 1e9": Forever, "rate(a[5m] @ 0)": Forever, "max_over_time(a[5m:1m] @ 1e9)": Forever,
	} {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Reach(expr); got < want || got > want+time.Millisecond && want != Forever {
			t.Errorf("%s reaches back %v, want %v", text, got, want)
		}
	}
}
