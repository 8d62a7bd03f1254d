package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// mutant is one change of the program.
type mutant struct {
	id       int // its number among those of a build, from 1
	file     string
	function string // or variable, or what a line of a table is about
	operator string
	change   string // what it does to the source
	edits    []edit // of the file
	alone    bool   // it needs a build of its own
	// from and to are what a mutant of an embedded file replaces in it; edited is the source
	// file that the edits are of, if it is another.
	from, to, edited string
}

// name tells the mutants of a package apart, wherever in their function they are.
func (m *mutant) name() string {
	return fmt.Sprintf("%s %s: %s: %s", m.file, m.function, m.operator, m.change)
}

// edit puts text in the place of length bytes at an offset.
type edit struct {
	offset, length int
	text           string // idMark stands for the mutant's number
	// closing edits end at the offset what another began. Partner is where that is, and of
	// the others where it ends.
	closing bool
	partner int
}

// before orders edits at one offset so that what wraps a part is within what wraps the whole;
// of two that wrap the same, the first one wraps the other.
func (e *edit) before(other *edit, first bool) bool {
	switch {
	case e.closing != other.closing:
		return e.closing
	case e.partner != other.partner:
		return e.partner > other.partner
	}
	return first != e.closing
}

// idMark stands for the number of the mutant in the text of edits.
const idMark = "\x00"

// number numbers the mutants from 1, and tells apart those of the same name.
func number(mutants []*mutant) {
	seen := map[string]int{}
	for i, m := range mutants {
		m.id = i + 1
		name := m.name()
		if seen[name]++; seen[name] > 1 {
			m.change = fmt.Sprintf("%s (#%d)", m.change, seen[name])
		}
	}
}

// rewrite returns the text of a file with all of the edits of these mutants.
func rewrite(text []byte, mutants []*mutant) []byte {
	type placed struct {
		edit
		seq int
	}
	var edits []placed
	for _, m := range mutants {
		for _, e := range m.edits {
			e.text = strings.ReplaceAll(e.text, idMark, fmt.Sprint(m.id))
			edits = append(edits, placed{e, len(edits)})
		}
	}
	slices.SortFunc(edits, func(a, b placed) int {
		switch {
		case a.offset != b.offset:
			return cmp.Compare(a.offset, b.offset)
		case a.seq == b.seq:
			return 0
		case a.before(&b.edit, a.seq < b.seq):
			return -1
		}
		return 1
	})
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, text[at:e.offset]...), e.text...)
		at = e.offset + e.length
	}
	return append(out, text[at:]...)
}
