package dmon

import (
	"bytes"
	"slices"
)

// layout is how a header line lays out the rows below it.
type layout struct {
	text    []byte // the header line it was read from
	columns []column

	// aligned: cells begin where their column's name begins, seen from the
	// first character of entity and '#'. DCGM before 2.3 (`# Entity`, a blank
	// after '#') right-aligns instead, and lets the entity's column overflow.
	aligned bool

	// closesGaps: a value that is missing lets the later ones of its row move
	// up (before DCGM 4.0, whose entity column is 10 wide, then 11, then 16),
	// so a row that ends early does not show which value it lacks.
	closesGaps bool
}

// column is one column of values.
type column struct {
	name   []byte
	start  int // offset from '#'
	family uint32
	known  bool // family is set; false for a name that is left out, that dmon cut short, or that came before
}

// gapless is the width of the entity column up to which rows close their gaps.
const gapless = 10

// IsHeader reports whether line is a header of dmon: `#Entity`, `# Entity` or
// `# EntityId`, and the columns. A comment of the exposition format
// (`# HELP`, `# TYPE`, `# EOF`) is none.
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

// width is the width of the entity column, 0 if it is not known.
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

// isName accepts what dmon's short names are made of, and so refuses names that
// end in `...`.
func isName(name []byte) bool {
	for _, c := range name {
		if c != '_' && !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return len(name) > 0
}

func isDigit(c byte) bool { return c-'0' <= 9 }
