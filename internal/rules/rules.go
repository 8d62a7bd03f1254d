// Package rules reads Prometheus rule files and returns their mistakes and their valid
// recording rules. Package engine evaluates them.
package rules

import (
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// Set is the content of some rule files. It does not change after it is loaded.
type Set struct {
	// Files were read, in the order of the patterns and then of their names.
	Files []string
	// Groups stand in the order of the files, and in that of each file.
	Groups []Group
	// Alerts counts the alerting rules, which are validated and then left out:
	// alerts are for Prometheus to raise.
	Alerts int
}

// Group is a group of recording rules, which are evaluated in order and for one instant.
type Group struct {
	File string
	Line int // where the group begins in File, from 1
	Name string
	// Interval is the time between two evaluations; 0 is for the one who
	// evaluates to choose.
	Interval time.Duration
	// Offset is how far back the rules are evaluated (query_offset).
	Offset time.Duration
	// Limit is the most series that a rule may give; one that gives more fails,
	// and gives none. 0 is no limit.
	Limit int
	// Rules are in the order of the file; none if it has alerting rules only.
	Rules []Rule
}

// Rule records the result of an expression under a name.
type Rule struct {
	Line   int    // where the rule begins in its file, from 1
	Number int    // in its group, from 1, alerting rules counted
	Record string // a metric name
	Text   string // the expression as it is written
	Expr   parser.Expr
	// Labels are the group's and the rule's, which win. They replace those of the
	// results; an empty value removes the label. Nil if there are none.
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
