package dmon

import (
	"bytes"
	"strings"
)

// entity is a GPU or a GPU instance that had a row.
type entity struct {
	name string // "GPU 0", "GPU-I 7"
	tick uint64 // the last tick it had a row in

	label  uint32 // from Names
	bound  bool   // label is valid, for parent
	parent int    // of an instance: its GPU, or none
}

func (e *entity) isInstance() bool { return strings.HasPrefix(e.name, prefixes[1]) }

// rowKind is the kind of a line that is not a header.
type rowKind uint8

const (
	gpuRow   rowKind = iota // of a GPU or a GPU instance
	otherRow                // of another entity, or of units
	textRow                 // not a row
)

// prefixes are what stands before an entity's id (DCGM, format_as of dcgm_field_entity_group_t): first those of a GPU and
// of a GPU instance.
var prefixes = [...]string{
	"GPU ", "GPU-I ", "GPU-CI ", "vGPU ", "Switch ", "SW ", "LINK ", "CPU Core ", "CPU ", "CX ", "UNKNOWN ",
}

// maxID is the number of digits of the longest id, a 32-bit number.
const maxID = 10

// entity reads the words and the id at the start of a row, and returns where they end.
func (p *Parser) entity(line []byte, start int) (e, end int, kind rowKind) {
	if e := p.last + 1; e < len(p.entities) && p.repeats(line, start, p.entities[e].name) {
		return e, start + len(p.entities[e].name), gpuRow
	}
	for i, word := range prefixes {
		id := start + len(word)
		if len(line) <= id || string(line[start:id]) != word || !isDigit(line[id]) {
			continue
		}
		end := id
		for end < len(line) && isDigit(line[end]) {
			end++
		}
		switch {
		case i > 1 || bytes.HasPrefix(line[skipBlanks(line, end):], []byte("LINK ")) && isBlank(line[end]): // `GPU 0 LINK 5` of DCGM 4.6
			return none, 0, otherRow
		case end < len(line) && !isBlank(line[end]) || end-id > maxID || p.layout.width > 0 && end-start > p.layout.width:
			return none, 0, textRow
		}
		return p.lookup(line[start:end]), end, gpuRow
	}
	if bytes.EqualFold(token(line, start), []byte("ID")) { // the units
		return none, 0, otherRow
	}
	return none, 0, textRow
}

// repeats reports whether a row at start is certainly that of a known entity. Most rows come in the order of the first
// tick.
func (p *Parser) repeats(line []byte, start int, name string) bool {
	end := start + len(name)
	if end >= len(line) || string(line[start:end]) != name || line[end] != ' ' || end-start > p.layout.width {
		return false
	}
	return line[skipBlanks(line, end)] != 'L' // else perhaps of a link
}

// lookup returns the entity of that name, and adds it if it is new.
func (p *Parser) lookup(name []byte) int {
	if e, ok := p.byName[string(name)]; ok {
		return e
	}
	p.byName[string(name)] = len(p.entities)
	p.entities = append(p.entities, entity{name: string(name), parent: none})
	return len(p.entities) - 1
}

// name gets the label of entity e, with the last GPU of this tick as its parent.
func (p *Parser) name(e int) {
	ent := &p.entities[e]
	word, id, _ := strings.Cut(ent.name, " ")
	named := Entity{Instance: ent.isInstance(), ID: id}
	switch {
	case word == "GPU":
		named.GPU = id
	case p.parent != none:
		_, named.GPU, _ = strings.Cut(p.entities[p.parent].name, " ")
	}
	ent.label, ent.bound, ent.parent = p.names.Entity(e, named), true, p.parent
}
