// Package rules reads Prometheus rule files and returns their mistakes and their valid
// recording rules. Package engine evaluates them.
package rules

import (
	"math"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// Set is the content of some rule files. It does not change after it is loaded.
type Set struct {
	// Files are the files read, in the order of the patterns and then of their names.
	Files []string
	// Groups are in the order of the files, and within a file in its order.
	Groups []Group
	// Alerts counts the alerting rules, which are validated and then left out: only
	// Prometheus raises alerts.
	Alerts int
}

// Group is a group of recording rules, evaluated in order and for the same instant.
type Group struct {
	File string
	Line int // of its name in File, from 1
	Name string
	// Interval is the time between two evaluations; 0 is the evaluator's default.
	Interval time.Duration
	// Offset is how far in the past the rules are evaluated (query_offset).
	Offset time.Duration
	// Limit is the most series that a rule may return; a rule that returns more fails,
	// and has no results. 0 is no limit.
	Limit int
	// Rules are in the order of the file; none if it has alerting rules only.
	Rules []Rule
}

// Rule records the result of an expression under a name.
type Rule struct {
	Line   int    // of its name in its file, from 1
	Record string // a metric name
	Text   string // the expression as written
	// Selects are the matchers of each selector of the expression.
	Selects [][]*labels.Matcher
	// Reach is how far back the expression looks.
	Reach time.Duration
	// Labels are the group's, overridden by the rule's. They replace those of the results;
	// an empty value removes the label. Nil if there are none.
	Labels map[string]string
}

// Rules counts the recording rules of all groups.
func (s *Set) Rules() int {
	n := 0
	for i := range s.Groups {
		n += len(s.Groups[i].Rules)
	}
	return n
}

// Forever is the reach of an expression at a fixed time (@): no window is long enough.
const Forever = time.Duration(math.MaxInt64)

// Reach returns the age of the oldest sample that can count at an evaluation of an expression: the
// sum of range, offsets and subqueries around its selectors, without the look-back of those that have no
// range. It changes the expression.
func Reach(expr parser.Expr) time.Duration {
	now := time.UnixMilli(math.MaxInt64 / 4) // any fixed time is longer ago than a Duration can tell
	expr, err := promql.PreprocessExpr(expr, now, now, 0)
	if err != nil {
		return Forever // not for an expression that was parsed
	}
	first, _ := promql.FindMinMaxTime(&parser.EvalStmt{Expr: expr, Start: now, End: now})
	switch age := now.UnixMilli() - first + 1; { // the engine leaves out the oldest millisecond
	case first == 0: // it selects nothing
		return 0
	case age >= Forever.Milliseconds():
		return Forever
	default:
		return max(0, time.Duration(age)*time.Millisecond)
	}
}
