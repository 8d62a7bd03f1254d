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

// entity reads the words and the id at the start of a row, and returns where they end.
func (p *Parser) entity(line []byte, start int) (e int, at int, kind rowKind) {
	if e := p.last + 1; e < len(p.entities) && p.repeats(line, start, p.entities[e].name) {
		return e, start + len(p.entities[e].name), gpuRow
	}
	word, idAt := prefix(line, start)
	if word == "" {
		if w := token(line, start); bytes.EqualFold(w, []byte("ID")) {
			return none, 0, otherRow // the units
		}
		return none, 0, textRow
	}
	end := idAt
	for end < len(line) && isDigit(line[end]) {
		end++
	}
	if word != "GPU" && word != "GPU-I" || isLink(line, end) {
		return none, 0, otherRow
	}
	k := gpu
	if word == "GPU-I" {
		k = instance
	}
	if width := p.layout.width(); end < len(line) && !isBlank(line[end]) || end-idAt > maxID || width > 0 && end-start > width {
		return none, 0, textRow
	}
	return p.lookup(k, line[idAt:end]), end, gpuRow
}

// repeats reports whether a row at start is certainly that of a known entity. Most rows come in the order of the first tick.
func (p *Parser) repeats(line []byte, start int, name string) bool {
	end := start + len(name)
	if end >= len(line) || string(line[start:end]) != name || line[end] != ' ' || end-start > p.layout.width() {
		return false
	}
	return line[end+leadingBlanks(line[end:])] != 'L' // else perhaps of a link
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
	p.entities = append(p.entities, entity{kind: k, name: name, id: name[len(word):], parent: none})
	p.byName[name] = e
	return e
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
