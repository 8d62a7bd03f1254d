package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// mutant is one change of the program.
type mutant struct {
	id       int // its number in a build, from 1
	file     string
	function string // or variable, or the name of a table's line
	operator string
	change   string // description of the change
	edits    []edit // of the file
	alone    bool   // needs a build of its own
	differs  int    // in how many of the tests so far it computes something else
	// from is the text of an embedded file that a mutant replaces with to; edited is the source
	// file that the edits change, if it is another one.
	from, to, edited string
}

// name distinguishes the mutants of a package, regardless of their position in the function.
func (m *mutant) name() string {
	return fmt.Sprintf("%s %s: %s: %s", m.file, m.function, m.operator, m.change)
}

// edit replaces length bytes at an offset with text.
type edit struct {
	offset, length int
	text           string // idMark stands for the mutant's number
	// closing edits are the end of what another edit began. partner is the offset of that edit, and
	// for opening edits that of their end.
	closing bool
	partner int
}

// before orders edits at one offset: those that wrap a part are inside those that wrap the whole;
// of two that wrap the same, the first one is outside.
func (e *edit) before(other *edit, first bool) bool {
	switch {
	case e.closing != other.closing:
		return e.closing
	case e.partner != other.partner:
		return e.partner > other.partner
	}
	return first != e.closing
}

// idMark stands for the mutant's number in the text of edits.
const idMark = "\x00"

// number numbers the mutants from 1, and makes their names unique.
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

// rewrite returns the text of a file with all edits of these mutants.
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
