package rules

import (
	"math"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Forever is the reach of a selector at a fixed time: no window is long enough.
const Forever = time.Duration(math.MaxInt64)

// Selector describes series that an expression reads, and how far back.
type Selector struct {
	// Vector has the matchers. It is part of the expression.
	Vector *parser.VectorSelector
	// Reach is the age of the oldest sample that can count at an evaluation: the sum of
	// range, offsets and subqueries around it. A sample exactly that old counts only if
	// the reach is from offsets alone.
	Reach time.Duration
}

// Selectors returns the selectors of expr, in order. lookback is the reach of a selector
// without a range: 5m in Prometheus; 0 returns the reach as written in the expression. An
// offset into the future shortens the reach, down to 0.
func Selectors(expr parser.Expr, lookback time.Duration) []Selector {
	var selectors []Selector
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			selectors = append(selectors, Selector{v, reach(v, path, lookback)})
		}
		return nil
	})
	return selectors
}

// reach follows the path from the whole expression to v. An @ makes its operand independent
// of what is around it: as an expression is evaluated at one time, @ start() and @ end()
// are that time.
func reach(v *parser.VectorSelector, path []parser.Node, lookback time.Duration) time.Duration {
	var reached time.Duration
	own := lookback
	for _, node := range path {
		switch n := node.(type) {
		case *parser.SubqueryExpr:
			reached = begin(reached, n.Timestamp, n.StartOrEnd)
			reached = plus(reached, n.OriginalOffset, n.Range)
		case *parser.MatrixSelector:
			own = n.Range
		}
	}
	reached = begin(reached, v.Timestamp, v.StartOrEnd)
	return max(0, plus(reached, v.OriginalOffset, own))
}

// begin returns how far back the evaluation of an expression with these modifiers begins:
// at the time of its @, or unchanged.
func begin(reached time.Duration, timestamp *int64, startOrEnd parser.ItemType) time.Duration {
	switch {
	case timestamp != nil:
		return Forever
	case startOrEnd != 0:
		return 0
	}
	return reached
}

// plus adds durations, up to Forever, which nothing shortens.
func plus(sum time.Duration, more ...time.Duration) time.Duration {
	for _, d := range more {
		if sum == Forever || d >= Forever-max(sum, 0) {
			return Forever
		}
		sum += d
	}
	return sum
}

// Name returns the name of the selected series, "" if it is not a single one.
func (s Selector) Name() string {
	for _, m := range s.Vector.LabelMatchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return ""
}
