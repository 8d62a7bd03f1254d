package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// reaches are expressions with the names that they select, and how far back: with a
// look-back of 5m, and as written.
var reaches = []struct {
	expr    string
	names   []string
	reaches []time.Duration
	written []time.Duration
}{
	{"1", nil, nil, nil},
	{"vector(time())", nil, nil, nil},
	{"a", []string{"a"}, []time.Duration{5 * time.Minute}, []time.Duration{0}},
	{`{__name__="a"} > 1`, []string{""}, []time.Duration{5 * time.Minute}, []time.Duration{0}},
	{"rate(a[90s])", []string{"a"}, []time.Duration{90 * time.Second}, []time.Duration{90 * time.Second}},
	{"b + on (x) sum(rate(a[1y]))", []string{"b", "a"}, []time.Duration{5 * time.Minute, 365 * 24 * time.Hour}, []time.Duration{0, 365 * 24 * time.Hour}},
	{"a offset 1m", []string{"a"}, []time.Duration{6 * time.Minute}, []time.Duration{time.Minute}},
	{"a offset -1m", []string{"a"}, []time.Duration{4 * time.Minute}, []time.Duration{0}},
	{"a offset -1h", []string{"a"}, []time.Duration{0}, []time.Duration{0}},
	{"rate(a[2m] offset 3m)", []string{"a"}, []time.Duration{5 * time.Minute}, []time.Duration{5 * time.Minute}},
	{"max_over_time(a[10m:1m])", []string{"a"}, []time.Duration{15 * time.Minute}, []time.Duration{10 * time.Minute}},
	{"max_over_time(rate(a[2m])[10m:1m] offset 1h)", []string{"a"}, []time.Duration{72 * time.Minute}, []time.Duration{72 * time.Minute}},
	{"max_over_time(sum_over_time(a[3m:])[10m:1m])", []string{"a"}, []time.Duration{18 * time.Minute}, []time.Duration{13 * time.Minute}},
	{"a @ end()", []string{"a"}, []time.Duration{5 * time.Minute}, []time.Duration{0}},
	{"max_over_time((a @ start() offset 1m)[10m:1m])", []string{"a"}, []time.Duration{6 * time.Minute}, []time.Duration{time.Minute}},
	{"max_over_time(max_over_time(a[2m:1m] @ end())[10m:1m])", []string{"a"}, []time.Duration{7 * time.Minute}, []time.Duration{2 * time.Minute}},
}

func TestSelectors(t *testing.T) {
	for _, test := range reaches {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(test.expr)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		var with, without []time.Duration
		for _, s := range Selectors(expr, 5*time.Minute) {
			names = append(names, s.Vector.Name)
			with = append(with, s.Reach)
		}
		for _, s := range Selectors(expr, 0) {
			without = append(without, s.Reach)
		}
		if !slices.Equal(names, test.names) || !slices.Equal(with, test.reaches) || !slices.Equal(without, test.written) {
			t.Errorf("%s selects %q and reaches %v, written %v; want %q, %v, %v", test.expr, names, with, without, test.names, test.reaches, test.written)
		}
	}
}

// TestSelectorsReachAsFarAsTheEngine compares reaches with what Prometheus' engine asks its
// storage for, which may be in the future.
func TestSelectorsReachAsFarAsTheEngine(t *testing.T) {
	now := time.UnixMilli(1e12)
	for _, test := range reaches {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(test.expr)
		if err != nil {
			t.Fatal(err)
		}
		reach := time.Duration(0)
		for _, s := range Selectors(expr, 5*time.Minute) {
			reach = max(reach, s.Reach)
		}
		processed, err := promql.PreprocessExpr(expr, now, now, 0)
		if err != nil {
			t.Fatal(err)
		}
		first, _ := promql.FindMinMaxTime(&parser.EvalStmt{Expr: processed, Start: now, End: now, LookbackDelta: 5 * time.Minute})
		if first == 0 || first > now.UnixMilli() {
			continue
		}
		if want := now.Sub(time.UnixMilli(first)) + time.Millisecond; reach != want {
			t.Errorf("%s reaches %v, the engine asks for %v", test.expr, reach, want)
		}
	}
}

// TestSelectorsReachForever: fixed times, and sums that must not overflow.
func TestSelectorsReachForever(t *testing.T) {
	for _, text := range []string{
		"a @ 1e9", "rate(a[5m] @ 0)", "max_over_time(a[5m:1m] @ 1e9)", "max_over_time((a @ 1e9 offset -1h)[5m:])",
		"max_over_time(max_over_time(a[290y:1y])[290y:1y])", "rate(a[290y] offset 290y)",
	} {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Selectors(expr, 5*time.Minute); len(got) != 1 || got[0].Reach != Forever {
			t.Errorf("%s selects %v", text, got)
		}
	}
}

// TestPlus: nothing shortens Forever, and nothing less than it becomes it.
func TestPlus(t *testing.T) {
	for _, c := range []struct{ sum, more, want time.Duration }{
		{-5, 3, -2}, {3, -5, -2}, {0, Forever - 1, Forever - 1}, {1, Forever - 2, Forever - 1}, {-2, Forever - 1, Forever - 3},
		{Forever, -1, Forever}, {-1, Forever, Forever}, {1, Forever - 1, Forever}, {2, Forever - 1, Forever}, {Forever, Forever, Forever},
	} {
		if got := plus(c.sum, c.more); got != c.want {
			t.Errorf("%d and %d: %d, want %d", c.sum, c.more, got, c.want)
		}
	}
}
