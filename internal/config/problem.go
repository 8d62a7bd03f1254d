package config

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong in a file.
type Problem struct {
	File string
	// Line counts from 1; 0 where it cannot be told.
	Line int
	// Key is the path of the setting, such as thresholds.io_sm; "" where the
	// problem is the file's.
	Key string
	// Text says what is wrong and what would be right.
	Text string
}

// String returns file:line: key: text, without what is not known.
func (p Problem) String() string {
	s := p.File
	if p.Line > 0 {
		s = fmt.Sprintf("%s:%d", s, p.Line)
	}
	if p.Key != "" {
		s += ": " + p.Key
	}
	return s + ": " + p.Text
}

// Problems is all that is wrong in a file, in its order; at least one.
type Problems []Problem

// Error returns a line for each of them.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "\n")
}
