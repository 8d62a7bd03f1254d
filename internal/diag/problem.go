// Package diag is for what people write and read. It reads their files, and those of a
// directory that another program keeps, reports mistakes by file and line, with the remedy
// and the nearest word for a mistyped one, and makes text from outside safe to show.
//
// Labels, errors, logs and files may contain terminal control sequences, characters that
// reverse the direction of a line or have no width, and invalid UTF-8. Text for a page, a
// terminal or a log goes through Text, Lines or a Writer; data stays unchanged.
package diag

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is a mistake in a file, or something that it lacks.
type Problem struct {
	File string
	// Line and Column count from 1; 0 is unknown.
	Line, Column int
	// Place is the place in terms of the file, such as the path of a setting; "" for none.
	Place string
	// Text says what is wrong and what would be right.
	Text string
	// Below are lines to show below the text, such as one to add; "" for none.
	Below string
	// Warning is set if the file works nevertheless.
	Warning bool
}

// String returns file:line:column: place: text, without unknown parts, in one line, and
// Below under it.
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

// Problems are the problems of some files, in their order.
type Problems []Problem

// Error returns the problems, each beginning on a new line.
func (p Problems) Error() string {
	texts := make([]string, len(p))
	for i := range p {
		texts[i] = p[i].String()
	}
	return strings.Join(texts, "\n")
}

// Refuse reports whether any problem is more than a warning.
func (p Problems) Refuse() bool {
	return slices.ContainsFunc(p, func(one Problem) bool { return !one.Warning })
}
