package recording

import "bytes"

// line is the latest content of one numbered line of a recording.
type line struct {
	text  []byte // without its line end
	head  int    // text[:head] is the series, text[head:] its value
	fixed bool   // it has no value: a comment, or in an unknown format
}

// lines are the lines that a recording has numbered since its last full reading.
// Writer and player keep the same lines, so that readings need not repeat them.
type lines struct{ all []line }

// reset removes all lines and keeps their memory.
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

// fits reports whether text is this line, with any value.
func (s *line) fits(text []byte) bool {
	if s.fixed {
		return bytes.Equal(text, s.text)
	}
	return len(text) >= s.head && bytes.Equal(text[:s.head], s.text[:s.head])
}

// headLen returns the length of a line's series with the blank after it; if there is no
// value, that of the line. Any answer would do if writer and player agree; a good one
// makes recordings small.
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
