package expose

import (
	"bytes"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// merger merges the expositions of several upstreams by family, in order of first occurrence:
// the text format requires the lines of a family in one group, with HELP and TYPE once. It
// refers to parts of the expositions and copies nothing. It allocates nothing for expositions
// like earlier ones.
type merger struct {
	byName   map[string]int32 // names are parts of the expositions too
	families []mergedFamily
	parts    []mergedPart
	text     []byte // of sources whose exposition is rendered here
}

// mergedFamily holds the first HELP and TYPE lines of a family, and its parts; 0 for none.
type mergedFamily struct {
	help, kind  []byte
	first, last int32 // indexes of parts, from 1
}

// mergedPart holds whole lines of a family, and the place of its next part; 0 for none.
type mergedPart struct {
	lines []byte
	next  int32
}

// reset forgets the expositions and keeps the memory.
func (m *merger) reset() {
	clear(m.byName)
	clear(m.families)
	clear(m.parts)
	m.families, m.parts, m.text = m.families[:0], m.parts[:0], m.text[:0]
}

// add adds the exposition of a snapshot as PassValid serves it.
func (m *merger) add(snap *canonical.Snapshot) {
	if snap.Text != nil {
		begun := len(m.text)
		m.text = snap.Text.AppendText(m.text) // earlier parts keep the memory they refer to
		m.addLines(m.text[begun:])
	}
	for _, part := range snap.Valid {
		m.addLines(part)
	}
}

// addLines adds lines that a Prometheus server accepts. A comment stays with the lines before
// it; before all families it belongs to one without a name. The series of a histogram or
// summary stay with their family.
func (m *merger) addLines(text []byte) {
	family, from := int32(-1), 0
	var name []byte
	for at := 0; at < len(text); {
		end := len(text)
		if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		if isOf(text[at:end], name) { // as for most lines
			at = end
			continue
		}
		its, kind := entryOf(text[at:end])
		if its == nil && family < 0 {
			family = m.familyOf(nil)
		}
		if its != nil && (family < 0 || kind != ofSeries || !continues(its, name)) {
			if next := m.familyOf(its); next != family || kind != ofSeries {
				m.close(family, text[from:at])
				family, name, from = next, its, at
			}
		}
		if kind != ofSeries {
			m.head(family, kind, text[at:end])
			from = end
		}
		at = end
	}
	m.close(family, text[from:])
}

// isOf reports whether a line is a series with exactly this name. It may return false for one
// that is.
func isOf(line, name []byte) bool {
	return len(name) > 0 && len(line) > len(name) && (line[len(name)] == '{' || line[len(name)] == ' ') && bytes.Equal(line[:len(name)], name)
}

// The kinds of lines.
const (
	ofSeries = iota
	ofHelp
	ofType
)

// entryOf returns the name that a line is about, nil for none, and its kind.
func entryOf(line []byte) (name []byte, kind int) {
	if line[0] != '#' {
		end := bytes.IndexAny(line, "{ \t\r\n")
		if end <= 0 {
			return nil, ofSeries
		}
		return line[:end], ofSeries
	}
	word, rest := nextWord(line[1:])
	switch string(word) {
	case "HELP":
		kind = ofHelp
	case "TYPE":
		kind = ofType
	default:
		return nil, ofSeries
	}
	if name, _ = nextWord(rest); name == nil {
		kind = ofSeries
	}
	return name, kind
}

// nextWord cuts the first word off a line, nil for none.
func nextWord(line []byte) (word, rest []byte) {
	line = bytes.TrimLeft(line, " \t")
	end := bytes.IndexAny(line, " \t\r\n")
	if end < 0 {
		end = len(line)
	}
	if end == 0 {
		return nil, line
	}
	return line[:end], line[end:]
}

// continues reports whether a series belongs to the family before it.
func continues(series, family []byte) bool {
	rest, of := bytes.CutPrefix(series, family)
	if !of {
		return false
	}
	switch string(rest) {
	case "", "_bucket", "_sum", "_count":
		return true
	}
	return false
}

func (m *merger) familyOf(name []byte) int32 {
	family, known := m.byName[exposition.View(name)]
	if !known {
		if m.byName == nil {
			m.byName = map[string]int32{}
		}
		family = int32(len(m.families))
		m.families = append(m.families, mergedFamily{})
		m.byName[exposition.View(name)] = family
	}
	return family
}

// head keeps the first HELP or TYPE line of a family.
func (m *merger) head(family int32, kind int, line []byte) {
	f := &m.families[family]
	if kind == ofHelp && f.help == nil {
		f.help = line
	}
	if kind == ofType && f.kind == nil {
		f.kind = line
	}
}

// close adds the lines of a family.
func (m *merger) close(family int32, lines []byte) {
	if family < 0 || len(lines) == 0 {
		return
	}
	m.parts = append(m.parts, mergedPart{lines: lines})
	at, f := int32(len(m.parts)), &m.families[family]
	if f.last == 0 {
		f.first = at
	} else {
		m.parts[f.last-1].next = at
	}
	f.last = at
}

// write writes all that was added.
func (m *merger) write(b *buffer) {
	for i := range m.families {
		f := &m.families[i]
		b.passLines(f.help)
		b.passLines(f.kind)
		for at := f.first; at != 0; at = m.parts[at-1].next {
			b.passLines(m.parts[at-1].lines)
		}
	}
}

// passLines passes lines, and ends the last one with a newline.
func (b *buffer) passLines(lines []byte) {
	b.pass(lines)
	if len(lines) > 0 && lines[len(lines)-1] != '\n' {
		b.buf = append(b.buf, '\n')
	}
}
