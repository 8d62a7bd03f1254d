package recording

import "bytes"

// line is one numbered line of a recording, as it last was.
type line struct {
	text  []byte // without its line end
	head  int    // text[:head] is the series, what follows its value
	fixed bool   // it has no value: a comment, or nothing we know
}

// lines are the lines that a recording has numbered since its last full reading.
// Writer and player keep the same ones, and so need not repeat them.
type lines struct{ all []line }

// reset forgets all of them, keeping their memory.
func (l *lines) reset() { l.all = l.all[:0] }

// add gives text, which has no line end, the next number.
func (l *lines) add(text []byte) {
	n := len(l.all)
	if n == cap(l.all) {
		l.all = append(l.all, line{})
	}
	l.all = l.all[:n+1]
	s := &l.all[n]
	s.text = append(s.text[:0], text...)
	s.head = headLen(text)
	s.fixed = s.head == len(text)
}

// set gives the line another value.
func (s *line) set(value []byte) { s.text = append(s.text[:s.head], value...) }

// fits reports whether text is this line, with whatever value.
func (s *line) fits(text []byte) bool {
	if s.fixed {
		return bytes.Equal(text, s.text)
	}
	return len(text) >= s.head && bytes.Equal(text[:s.head], s.text[:s.head])
}

// headLen returns how much of a line is its series with the blank behind it; all
// of it where there is no value to be found. Any answer would do, as long as writer and
// player agree; a good one makes recordings small.
func headLen(text []byte) int {
	if len(text) == 0 || text[0] == '#' {
		return len(text)
	}
	if n := bytes.LastIndex(text, []byte("} ")); n >= 0 {
		return n + 2
	}
	if n := bytes.IndexByte(text, ' '); n >= 0 {
		return n + 1
	}
	return len(text)
}
