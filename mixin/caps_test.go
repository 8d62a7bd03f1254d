package mixin_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// few are labels whose number of values does not grow with the fleet.
var few = []string{"cluster", "model", "xid", "field", "action", "state", "class", "version"}

// bound is the most rows of an expression, not counting those whose number does not grow with the fleet, and the selection
// that limits them: queries with the same selection have the same rows.
type bound struct {
	rows      float64
	selection string
}

// bounder finds bounds of the expressions of a dashboard.
type bounder struct {
	single []string // variables with a single value
}

func (b bounder) of(expr parser.Expr) bound {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return b.of(e.Expr)
	case *parser.UnaryExpr:
		return b.of(e.Expr)
	case *parser.StepInvariantExpr:
		return b.of(e.Expr)
	case *parser.SubqueryExpr:
		return b.of(e.Expr)
	case *parser.MatrixSelector:
		return b.of(e.VectorSelector)
	case *parser.VectorSelector:
		return b.ofSelector(e)
	case *parser.Call:
		return b.ofCall(e)
	case *parser.AggregateExpr:
		return b.ofAggregate(e)
	case *parser.BinaryExpr:
		return b.ofBinary(e)
	}
	return bound{} // a number
}

// ofSelector returns 0 rows if a single-value variable selects one board, host or proxy.
func (b bounder) ofSelector(e *parser.VectorSelector) bound {
	one := slices.ContainsFunc(e.LabelMatchers, func(m *labels.Matcher) bool {
		return (m.Type == labels.MatchEqual || m.Type == labels.MatchRegexp) && slices.Contains(b.single, m.Value)
	})
	if one {
		return bound{}
	}
	return bound{rows: math.Inf(1)}
}

// ofCall returns the bound of the vector argument: no function has two.
func (b bounder) ofCall(e *parser.Call) bound {
	for _, arg := range e.Args {
		if of := b.of(arg); of.rows > 0 {
			return of
		}
	}
	return bound{}
}

func (b bounder) ofAggregate(e *parser.AggregateExpr) bound {
	inner := b.of(e.Expr)
	grows := slices.ContainsFunc(e.Grouping, func(label string) bool { return !slices.Contains(few, label) })
	switch n, is := e.Param.(*parser.NumberLiteral); {
	case e.Op != parser.TOPK && e.Op != parser.BOTTOMK:
		if !grows && !e.Without {
			return bound{}
		}
	case is && !grows && !e.Without && n.Val < inner.rows:
		return bound{n.Val, e.String()}
	}
	return inner
}

func (b bounder) ofBinary(e *parser.BinaryExpr) bound {
	left, right := b.of(e.LHS), b.of(e.RHS)
	less := left
	if right.rows < left.rows {
		less = right
	}
	switch {
	case e.Op == parser.LUNLESS:
		return left
	case e.Op == parser.LOR:
		return bound{left.rows + right.rows, left.selection + right.selection}
	case e.LHS.Type() == parser.ValueTypeScalar:
		return right
	case e.RHS.Type() == parser.ValueTypeScalar:
		return left
	case e.VectorMatching.Card == parser.CardManyToOne:
		return left
	case e.VectorMatching.Card == parser.CardOneToMany:
		return right
	}
	return less // with `and on`, the matching labels identify rows
}

// rowsOf returns the most rows of a table, over all its queries.
func rowsOf(t *testing.T, d dashboard, p panel) (rows float64) {
	t.Helper()
	var b bounder
	for _, v := range d.Templating.List {
		if !v.Multi {
			b.single = append(b.single, "$"+v.Name)
		}
	}
	selections := map[string]float64{}
	for _, target := range p.Targets {
		tree, err := parser.NewParser(parser.Options{}).ParseExpr(substitute(target.Expr))
		if err != nil {
			t.Fatalf("%v\n%s", err, target.Expr)
		}
		of := b.of(tree)
		selections[of.selection] = max(selections[of.selection], of.rows)
	}
	for _, n := range selections {
		rows += n
	}
	return rows
}

// TestTablesHaveAnEnd: tables are limited, because 10,000 rows are not readable and are slow to
// draw. If rows are left out, the description says how many are shown.
func TestTablesHaveAnEnd(t *testing.T) {
	capped := 0
	for name, d := range dashboards(t) {
		for _, p := range d.Panels {
			if p.Type != "table" {
				continue
			}
			switch rows := rowsOf(t, d, p); {
			case rows > tableRows:
				t.Errorf("%s, panel %q has up to %v rows", name, p.Title, rows)
			case rows > 0:
				capped++
				if !strings.Contains(p.Description, fmt.Sprint(rows)) {
					t.Errorf("%s, panel %q does not say that it has %v rows at most: %q", name, p.Title, rows, p.Description)
				}
			}
		}
	}
	if capped < 15 {
		t.Errorf("only %d tables have a limit", capped)
	}
}

// TestEndsAreSeen: bounder finds limits, and their absence.
func TestEndsAreSeen(t *testing.T) {
	for expr, want := range map[string]float64{
		`topk(200, sum by (hostname) (x))`:                                200,
		`(y and on (hostname) topk(20, x)) > 0`:                           20,
		`x unless on (hostname) topk(20, x)`:                              math.Inf(1),
		`topk(20, x) or topk(30, y)`:                                      50,
		`topk by (hostname) (1, x)`:                                       math.Inf(1),
		`sum by (cluster, xid) (x)`:                                       0,
		`sum by (cluster, hostname) (x)`:                                  math.Inf(1),
		`sum without (gpu) (x)`:                                           math.Inf(1),
		`label_replace(topk(200, x), "a", "$1", "b", "")`:                 200,
		`last_over_time(x{uuid="$gpu"}[1h])`:                              0,
		`last_over_time(x{hostname=~"$hostname"}[1h])`:                    math.Inf(1),
		`topk(20, x) * on (hostname) group_right () y`:                    math.Inf(1),
		`1000 * (topk(20, x) / on (hostname) group_left () y)`:            20,
		`y and on (uuid) last_over_time(x{uuid="$gpu"}[1h])`:              0,
		`max_over_time(topk(20, x)[1h:1m])`:                               20,
		`topk(20, x) and on (cluster) vector(1) or 0 * max by (xid) (x)`:  0,
		`sum by (hostname) (topk(200, x)) / sum by (hostname) (x)`:        200,
		`topk(200, x{uuid="$gpu"})`:                                       0,
		`count by (field) (x) > 0 unless on () sum by (workload_kind)(x)`: 0,
	} {
		tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
		if err != nil {
			t.Fatal(expr, err)
		}
		if got := (bounder{single: []string{"$gpu"}}).of(tree); got.rows != want {
			t.Errorf("%s: %v rows, want %v", expr, got.rows, want)
		}
	}
}

// TestDivisorsAreNot0: after an hour without use, a ratio of 0 as divisor would be infinite or NaN.
func TestDivisorsAreNot0(t *testing.T) {
	found := 0
	for _, e := range expressions(t) {
		if !strings.HasPrefix(e.where, "kpulse-") {
			continue // an alert, for which infinity can be right
		}
		tree, err := parser.NewParser(parser.Options{}).ParseExpr(substitute(e.text))
		if err != nil {
			t.Fatal(e.where, err)
		}
		parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
			division, ok := node.(*parser.BinaryExpr)
			if !ok || division.Op != parser.DIV {
				return nil
			}
			found++
			if !positive(division.RHS) {
				t.Errorf("%s divides by %s, which can be 0", e.where, division.RHS)
			}
			return nil
		})
	}
	if found < 20 {
		t.Errorf("only %d divisions", found)
	}
}

// positive reports whether an expression is a number above 0, or has only such values.
func positive(expr parser.Expr) bool {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return positive(e.Expr)
	case *parser.NumberLiteral:
		return e.Val > 0
	case *parser.BinaryExpr:
		n, is := e.RHS.(*parser.NumberLiteral)
		return is && n.Val >= 0 && e.Op == parser.GTR && !e.ReturnBool
	}
	return false
}
