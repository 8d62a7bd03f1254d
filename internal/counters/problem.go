package counters

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong in a file, or that it lacks.
type Problem struct {
	File string
	// Line counts from 1; 0 where the problem is the file's.
	Line int
	// Text says what is wrong and what would be right.
	Text string
	// Add is a line that the file should have, "" for none.
	Add string
	// Warning is set where the exporter works nevertheless.
	Warning bool
}

// String returns file:line: text, and below it the line to add.
func (p Problem) String() string {
	var s strings.Builder
	s.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&s, ":%d", p.Line)
	}
	s.WriteString(": ")
	if p.Warning {
		s.WriteString("warning: ")
	}
	s.WriteString(p.Text)
	if p.Add != "" {
		s.WriteString("\n    " + p.Add)
	}
	return s.String()
}

// Problems is what is wrong in a file, in its order, and then what it lacks.
type Problems []Problem

// Error returns a line for each of them, and one more for each to add.
func (p Problems) Error() string {
	texts := make([]string, len(p))
	for i := range p {
		texts[i] = p[i].String()
	}
	return strings.Join(texts, "\n")
}

// Refuse tells whether any of them is more than a warning: dcgm-exporter would not
// start, or Prometheus would refuse its page.
func (p Problems) Refuse() bool {
	for i := range p {
		if !p[i].Warning {
			return true
		}
	}
	return false
}
