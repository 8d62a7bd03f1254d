package rules

import (
	"fmt"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// finding is a problem of a rule file.
type finding struct {
	diag.Problem
	// alike is what a file may say of many rules, such as "reach back beyond the
	// window": they are then told of in one line.
	alike string
}

// placeOf returns where a problem is: in a group, which is "" for the file itself, in
// the rule of a number from 1, 0 for none, which has a name or none, and within that.
func placeOf(group string, number int, rule, within string) string {
	var parts []string
	if group != "" {
		parts = append(parts, fmt.Sprintf("group %q", group))
	}
	switch {
	case number > 0 && rule != "":
		parts = append(parts, fmt.Sprintf("rule %d %q", number, rule))
	case number > 0:
		parts = append(parts, fmt.Sprintf("rule %d", number))
	}
	if within != "" {
		parts = append(parts, within)
	}
	return strings.Join(parts, ": ")
}

// few is how many alike problems of a file are told of one by one.
const few = 3

// folded returns the problems of one file with but the first of many alike, and how
// many more there are.
func folded(findings []finding) (list diag.Problems) {
	times := map[string]int{}
	for i := range findings {
		times[findings[i].alike]++
	}
	met := map[string]int{}
	for _, f := range findings {
		met[f.alike]++
		switch n := times[f.alike]; {
		case f.alike == "" || n <= few || met[f.alike] == 1:
			list = append(list, f.Problem)
		case met[f.alike] == n:
			list = append(list, diag.Problem{File: f.File, Line: f.Line, Warning: f.Warning, Text: fmt.Sprintf("%d rules in all, of which this is the last, %s", n, f.alike)})
		}
	}
	return list
}
