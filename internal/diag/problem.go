// Package diag reads the files that people write and reports what is wrong in them:
// problems by file, line and remedy, and the word that a mistyped one was meant to be.
package diag

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong in a file, or that it lacks.
type Problem struct {
	File string
	// Line and Column count from 1; 0 if they are not known.
	Line, Column int
	// Place is where it is in the words of the file, such as the path of a setting;
	// "" if there are none.
	Place string
	// Text says what is wrong and what would be right.
	Text string
	// Below are lines to be shown below the text, such as one to add; "" for none.
	Below string
	// Warning is set where the file works nevertheless.
	Warning bool
}

// String returns file:line:column: place: text, without what is not known, in one
// line, and what is to be shown below it.
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
	if p.Place != "" {
		s.WriteString(p.Place + ": ")
	}
	s.WriteString(p.Text)
	if p.Below != "" {
		s.WriteString("\n    " + strings.ReplaceAll(p.Below, "\n", "\n    "))
	}
	return s.String()
}

// Problems is what is wrong in some files, in their order.
type Problems []Problem

// Error returns them as they are to be read, each from a line of its own.
func (p Problems) Error() string {
	texts := make([]string, len(p))
	for i := range p {
		texts[i] = p[i].String()
	}
	return strings.Join(texts, "\n")
}

// Refuse reports whether any of them is more than a warning.
func (p Problems) Refuse() bool {
	return slices.ContainsFunc(p, func(one Problem) bool { return !one.Warning })
}
