package dmon

import (
	"bytes"
	"slices"
)

// layout is the layout of the rows below a header line.
type layout struct {
	text    []byte // the header line it was read from
	columns []column

	// aligned is whether cells begin where their column's name begins, relative
	// to the first character of the entity and the '#'. DCGM before 2.3 (`#
	// Entity`, a blank after '#') right-aligns instead, and the entity's column
	// may overflow.
	aligned bool

	// closesGaps is whether later values of a row fill the place of a missing
	// one, so that a row that ends early does not show which value it lacks.
	// DCGM before 4.0 does so; its entity column is 10 wide, later 11 and 16.
	closesGaps bool
}

// column is one column of values.
type column struct {
	name   []byte
	start  int // offset from '#'
	family uint32
	known  bool // family is valid; false for a name that is ignored, cut short by dmon, or a repetition
}

// gapless is the largest width of the entity column with which rows close their gaps.
const gapless = 10

// IsHeader reports whether line is a header of dmon: `#Entity`, `# Entity` or
// `# EntityId`, and the columns. A comment of the exposition format (`# HELP`,
// `# TYPE`, `# EOF`) is not a header.
func IsHeader(line []byte) bool {
	line = line[leadingBlanks(line):]
	if len(line) == 0 || line[0] != '#' {
		return false
	}
	line = line[1:]
	word := token(line, leadingBlanks(line))
	return bytes.EqualFold(word, []byte("Entity")) || bytes.EqualFold(word, []byte("EntityId"))
}

// parse reads the columns of the header line whose '#' is at start.
func (l *layout) parse(line []byte, start int) {
	*l = layout{text: append(l.text[:0], line...)}
	text := l.text[start:]
	at := 1 + leadingBlanks(text[1:])
	l.aligned = at == 1
	at += len(token(text, at))
	for at += leadingBlanks(text[at:]); at < len(text); at += leadingBlanks(text[at:]) {
		name := token(text, at)
		l.columns = append(l.columns, column{name: name, start: at})
		at += len(name)
	}
	l.closesGaps = len(l.columns) == 0 || l.columns[0].start <= gapless
}

// bind looks up the families of the columns.
func (l *layout) bind(names Names) {
	for i := range l.columns {
		c := &l.columns[i]
		same := func(o column) bool { return bytes.Equal(o.name, c.name) }
		if c.known = isName(c.name) && !slices.ContainsFunc(l.columns[:i], same); c.known {
			c.family, c.known = names.Column(c.name)
		}
	}
}

// width returns the width of the entity column, 0 if unknown.
func (l *layout) width() int {
	if !l.aligned || len(l.columns) == 0 {
		return 0
	}
	return l.columns[0].start
}

// token returns the characters from at up to the next blank.
func token(line []byte, at int) []byte {
	end := at
	for end < len(line) && !isBlank(line[end]) {
		end++
	}
	return line[at:end]
}

// isName reports whether name consists of the characters of dmon's short names,
// which excludes names that end in `...`.
func isName(name []byte) bool {
	for _, c := range name {
		if c != '_' && !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return len(name) > 0
}

func isDigit(c byte) bool { return c-'0' <= 9 }
