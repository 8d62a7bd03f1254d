package dmon

import "bytes"

// entityKind is the kind of an entity that becomes a device.
type entityKind uint8

const (
	gpu entityKind = iota
	instance
)

// entity is a GPU or a GPU instance that had a row.
type entity struct {
	kind entityKind
	name string // "GPU 0", "GPU-I 7"
	id   string // "0", "7": DCGM's entity id
	tick uint64 // the last tick it had a row in
	next int    // the entity of the row after it, or none

	// cell is the beginning of its rows up to the first value, empty if uncertain: expect
	// recognizes a row by it.
	cell []byte

	label  uint32 // from Names
	bound  bool   // label is valid, for parent
	parent int    // of an instance: its GPU, or none
}

// rowKind is the kind of a line that is not a header.
type rowKind uint8

const (
	gpuRow   rowKind = iota // of a GPU or a GPU instance
	otherRow                // of another entity, or of units
	textRow                 // not a row
)

// prefixes are the words before an entity's id (DCGM, format_as of
// dcgm_field_entity_group_t), longer ones before their own prefixes.
var prefixes = [...]string{
	"GPU-CI", "GPU-I", "GPU", "vGPU", "Switch", "SW", "LINK", "CPU Core", "CPU", "CX", "UNKNOWN",
}

// maxID is the number of digits of the longest id, a 32-bit number.
const maxID = 10

// expect returns the entity that followed the last one in the previous tick, if
// the row at start is its row, else none. A tick is expected to begin with entity 0. This is a
// shortcut: entity returns the same for such a row.
func (p *Parser) expect(line []byte, start int) (e int, at position) {
	if len(p.entities) == 0 {
		return none, at
	}
	if p.last != none {
		e = p.entities[p.last].next
	}
	if e == none {
		return none, at
	}
	cell := p.entities[e].cell
	if len(cell) == 0 || !bytes.HasPrefix(line[start:], cell) {
		return none, at
	}
	end := start + len(cell) // inside the line, which does not end in blanks
	if line[end+leadingBlanks(line[end:])] == 'L' {
		return none, at // perhaps a link of the GPU
	}
	return e, position{start, end}
}

// entity reads the words and the id at the start of a row.
func (p *Parser) entity(line []byte, start int) (e int, at position, kind rowKind) {
	word, idAt := prefix(line, start)
	if word == "" {
		if w := token(line, start); bytes.EqualFold(w, []byte("ID")) {
			return none, at, otherRow // the units
		}
		return none, at, textRow
	}
	end := idAt
	for end < len(line) && isDigit(line[end]) {
		end++
	}
	if word != "GPU" && word != "GPU-I" || isLink(line, end) {
		return none, at, otherRow
	}
	k := gpu
	if word == "GPU-I" {
		k = instance
	}
	width := p.layout.width()
	if width > 0 && end-start > width {
		return p.glued(line, k, idAt, end, start+width)
	}
	// A value may directly follow the id only if the id fills its column.
	if end < len(line) && !isBlank(line[end]) && end-start != width || end-idAt > maxID {
		return none, at, textRow
	}
	e = p.lookup(k, line[idAt:end])
	p.remember(e, line, start, end)
	return e, position{start, end}, gpuRow
}

// prefix returns the entity words at start and where the id after them begins,
// or "".
func prefix(line []byte, start int) (word string, idAt int) {
	for _, w := range prefixes {
		if len(line)-start <= len(w) || string(line[start:start+len(w)]) != w {
			continue
		}
		at := start + len(w)
		blanks := leadingBlanks(line[at:])
		if blanks > 0 && at+blanks < len(line) && isDigit(line[at+blanks]) {
			return w, at + blanks
		}
	}
	return "", 0
}

// isLink reports whether a link follows the GPU whose id ends at end: `GPU 0 LINK 5`
// is a link of DCGM 4.6.
func isLink(line []byte, end int) bool {
	if end == len(line) || !isBlank(line[end]) {
		return false
	}
	word, _ := prefix(line, end+leadingBlanks(line[end:]))
	return word == "LINK"
}

// glued reads an entity that is longer than its column: the id then runs into
// the first value, `GPU-I 1000412.337`, and the following cells are shifted. Of
// all ways to split the digits, which end at end and fill the column at full,
// it takes the one with which all cells of the row fit, if there is only one.
func (p *Parser) glued(line []byte, k entityKind, idAt, end, full int) (e int, at position, kind rowKind) {
	found := none
	for cut := full; cut <= end && cut-idAt <= maxID; cut++ {
		origin := cut - p.layout.columns[0].start
		if !p.clean(line, origin) {
			continue
		}
		if found != none {
			return none, at, textRow
		}
		found, at = cut, position{origin, cut}
	}
	if found == none {
		return none, at, textRow
	}
	return p.lookup(k, line[idAt:found]), at, gpuRow
}

// lookup returns the entity of that kind and id, and adds it if it is new.
func (p *Parser) lookup(k entityKind, id []byte) int {
	word := "GPU "
	if k == instance {
		word = "GPU-I "
	}
	p.scratch = append(append(p.scratch[:0], word...), id...)
	if e, ok := p.byName[string(p.scratch)]; ok {
		return e
	}
	name := string(p.scratch)
	e := len(p.entities)
	p.entities = append(p.entities, entity{kind: k, name: name, id: name[len(word):], next: none, parent: none})
	p.byName[name] = e
	return e
}

// remember keeps the beginning of a row of e for expect, if only spaces, at
// least one, fill the rest of the entity's column. A layout without such a column has none.
func (p *Parser) remember(e int, line []byte, start, end int) {
	stop := start + p.layout.width()
	if stop <= end || stop > len(line) || !blankUntil(line, end, stop) {
		return
	}
	p.entities[e].cell = append(p.entities[e].cell[:0], line[start:stop]...)
}

// name gets the label of entity e, with the last GPU of this tick as its parent.
func (p *Parser) name(e int) {
	ent := &p.entities[e]
	named := Entity{Instance: ent.kind == instance, ID: ent.id}
	switch {
	case ent.kind == gpu:
		named.GPU = ent.id
	case p.parent != none:
		named.GPU = p.entities[p.parent].id
	}
	ent.label, ent.bound, ent.parent = p.names.Entity(e, named), true, p.parent
}
