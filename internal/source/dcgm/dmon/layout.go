package dmon

import (
	"bytes"
	"slices"
)

// layout is the layout of the rows below a header line.
type layout struct {
	text    []byte // the header line it was read from
	columns []column
	width   int // of the entity column, 0 if unknown: DCGM before 2.3 (`# Entity`, a blank after '#') lets it overflow
}

// column is one column of values.
type column struct {
	name   []byte
	family uint32
	known  bool // family is valid; false for a name that is ignored, cut short by dmon, or a repetition
}

// IsHeader reports whether line is a header of dmon: `#Entity`, `# Entity` or `# EntityId`, and the columns. A comment of
// the exposition format (`# HELP`, `# TYPE`, `# EOF`) is not a header.
func IsHeader(line []byte) bool {
	at := skipBlanks(line, 0)
	if at == len(line) || line[at] != '#' {
		return false
	}
	word := token(line, skipBlanks(line, at+1))
	return bytes.EqualFold(word, []byte("Entity")) || bytes.EqualFold(word, []byte("EntityId"))
}

// parse reads the columns of the header line whose '#' is at start.
func (l *layout) parse(line []byte, start int) {
	*l = layout{text: append(l.text[:0], line...)}
	entity := skipBlanks(l.text, start+1)
	at := skipBlanks(l.text, entity+len(token(l.text, entity)))
	if entity == start+1 && at < len(l.text) {
		l.width = at - start
	}
	for at < len(l.text) {
		name := token(l.text, at)
		l.columns = append(l.columns, column{name: name})
		at = skipBlanks(l.text, at+len(name))
	}
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

// isName reports whether name consists of the characters of dmon's short names, which excludes names that end in `...`.
func isName(name []byte) bool {
	return !slices.ContainsFunc(name, func(c byte) bool { return c != '_' && !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') })
}
