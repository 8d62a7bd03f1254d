package expose

import (
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// askFrom is the number of parts of a family from which more must fit into memory, and lineBytes what each takes.
const (
	askFrom   = 1 << 12
	lineBytes = 24
)

// merger merges the expositions of several upstreams by family, in order of first occurrence:
// the text format requires the lines of a family in one group, with HELP and TYPE once. It copies
// nothing, and allocates nothing for expositions like earlier ones.
type merger struct {
	byName   map[string]int // indexes of families; names are parts of the expositions too
	families []mergedFamily
	text     []byte // of sources whose exposition is rendered here
	fits     func(bytes int64) bool
	full     bool // the lines do not fit into memory, and some are left out
}

// mergedFamily holds the first HELP and TYPE lines of a family, and whole lines of it.
type mergedFamily struct {
	help, kind []byte
	lines      [][]byte
}

// reset forgets the expositions and keeps the memory. It returns how many bytes the lines keep.
func (m *merger) reset() (room int) {
	clear(m.byName)
	for _, f := range m.families[:cap(m.families)] { // those of earlier expositions too
		room += lineBytes * cap(f.lines)
	}
	for i := range m.families {
		clear(m.families[i].lines)
		m.families[i] = mergedFamily{lines: m.families[i].lines[:0]}
	}
	m.families, m.text, m.full = m.families[:0], m.text[:0], false
	return room
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
func (m *merger) addLines(lines []byte) {
	text := exposition.View(lines)
	family, from, name := -1, 0, ""
	for at := 0; at < len(text); {
		if isOf(text[at:], name) { // as for most lines
			at = exposition.SkipSeries(text, at)
			continue
		}
		e := exposition.Next(text, at)
		heads := e.Kind == exposition.Help || e.Kind == exposition.Type
		if e.Name == "" && family < 0 {
			family = m.familyOf("")
		}
		if e.Name != "" && (family < 0 || heads || !continues(e.Name, name)) {
			if next := m.familyOf(e.Name); next != family || heads {
				m.close(family, lines[from:at])
				family, name, from = next, e.Name, at
			}
		}
		if heads {
			m.families[family].head(e.Kind, lines[at:e.End])
			from = e.End
		}
		at = e.End
	}
	m.close(family, lines[from:])
}

// isOf reports whether text begins with a series that has exactly this name. It may return false
// for one that has it.
func isOf(text, name string) bool {
	return name != "" && len(text) > len(name) && (text[len(name)] == '{' || text[len(name)] == ' ') && text[:len(name)] == name
}

// continues reports whether a series belongs to the family before it.
func continues(series, family string) bool {
	rest, of := strings.CutPrefix(series, family)
	return of && (rest == "" || rest == "_bucket" || rest == "_sum" || rest == "_count")
}

func (m *merger) familyOf(name string) int {
	family, known := m.byName[name]
	if !known {
		if m.byName == nil {
			m.byName = map[string]int{}
		}
		family = len(m.families)
		m.families = slices.Grow(m.families, 1)[:family+1] // with the memory of an earlier family
		m.byName[name] = family
	}
	return family
}

// head keeps the first HELP or TYPE line of a family.
func (f *mergedFamily) head(kind exposition.Kind, line []byte) {
	if kind == exposition.Help && f.help == nil {
		f.help = line
	}
	if kind == exposition.Type && f.kind == nil {
		f.kind = line
	}
}

// close adds lines to a family.
func (m *merger) close(family int, lines []byte) {
	if family < 0 || len(lines) == 0 {
		return
	}
	of := &m.families[family]
	if n := len(of.lines); n == cap(of.lines) && n >= askFrom && m.fits != nil && !m.fits(2*lineBytes*int64(n)) {
		m.full = true
		return
	}
	of.lines = append(of.lines, lines)
}

// write writes all that was added.
func (m *merger) write(b *buffer) {
	for i := range m.families {
		f := &m.families[i]
		b.passLines(f.help)
		b.passLines(f.kind)
		for _, lines := range f.lines {
			b.passLines(lines)
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
