package rules

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong in a rule file.
type Problem struct {
	File string
	// Line and Column count from 1; 0 where they cannot be told.
	Line, Column int
	// Group and Rule are names, "" where the problem is not in one; Number is the
	// rule's in its group, from 1, 0 where it is in none.
	Group, Rule string
	Number      int
	// Expr is the expression in which the problem lies, "" for none. Start and End
	// are bytes of it.
	Expr       string
	Start, End int
	// Text says what is wrong and what would be right.
	Text string
	// Warning is set where the rule works nevertheless, or is only left out.
	Warning bool
	// alike is what a file may say of many rules, such as "reach back beyond the
	// window": they are then told of in one line.
	alike string
}

// String returns file:line:column: group, rule: text, without what is not known,
// in one line, and for an expression the line of it that is wrong with a mark under
// the place.
func (p Problem) String() string {
	var s strings.Builder
	s.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&s, ":%d", p.Line)
		if p.Column > 0 {
			fmt.Fprintf(&s, ":%d", p.Column)
		}
	}
	s.WriteString(": ")
	if p.Warning {
		s.WriteString("warning: ")
	}
	if p.Group != "" {
		fmt.Fprintf(&s, "group %q: ", p.Group)
	}
	if p.Number > 0 {
		fmt.Fprintf(&s, "rule %d", p.Number)
		if p.Rule != "" {
			fmt.Fprintf(&s, " %q", p.Rule)
		}
		s.WriteString(": ")
	}
	if p.Expr == "" {
		s.WriteString(p.Text)
		return s.String()
	}
	line, column := p.place()
	fmt.Fprintf(&s, "expression %d:%d: %s\n%s", line, column, p.Text, p.excerpt())
	return s.String()
}

// Problems is what is wrong in some files, in their order.
type Problems []Problem

// Error returns a line for each of them, and more for those in expressions.
func (p Problems) Error() string {
	texts := make([]string, len(p))
	for i := range p {
		texts[i] = p[i].String()
	}
	return strings.Join(texts, "\n")
}

// few is how many alike problems of a file are told of one by one.
const few = 3

// folded returns p, which is of one file, with but the first of many alike and how
// many more there are.
func (p Problems) folded() (list Problems) {
	times := map[string]int{}
	for i := range p {
		times[p[i].alike]++
	}
	met := map[string]int{}
	for _, one := range p {
		met[one.alike]++
		switch n := times[one.alike]; {
		case one.alike == "" || n <= few || met[one.alike] == 1:
			list = append(list, one)
		case met[one.alike] == n:
			list = append(list, Problem{File: one.File, Line: one.Line, Warning: one.Warning, Text: fmt.Sprintf("%d rules in all, of which this is the last, %s", n, one.alike)})
		}
	}
	return list
}

// Refuse tells whether any of them is more than a warning.
func (p Problems) Refuse() bool {
	for i := range p {
		if !p[i].Warning {
			return true
		}
	}
	return false
}
