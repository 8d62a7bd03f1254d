package raw

import (
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// Label is one label of a series, its value unescaped.
type Label = exposition.Label

// Family is what a Dict knows about one metric family.
type Family struct {
	Name string
	Help string // that of its first HELP line in the last scan, still escaped, "" for none
}

// Dict gives every family name and every label block of a source a small dense id, so that later
// layers can index an array instead of parsing labels. A label block is the text between and
// including the braces of a series, exactly as the source wrote it, or "" for none; two spellings of
// one label set are two blocks.
//
// Ids only grow, until Compact reassigns them and Generation changes. The ids of a Batch are void
// once the generation differs from that of its scan. A Dict is not safe for concurrent use.
type Dict struct {
	families   []Family
	familyID   map[string]uint32
	blocks     []string
	blockID    map[string]uint32
	generation uint64
}

// NewDict returns an empty Dict.
func NewDict() *Dict {
	return &Dict{familyID: map[string]uint32{}, blockID: map[string]uint32{}}
}

// Families returns how many families are known; ids are below it.
func (d *Dict) Families() int { return len(d.families) }

// Blocks returns how many label blocks are known; ids are below it.
func (d *Dict) Blocks() int { return len(d.blocks) }

// Family returns the family of an id. The pointer is valid until the next family is added.
func (d *Dict) Family(id uint32) *Family { return &d.families[id] }

// Block returns the label block of an id.
func (d *Dict) Block(id uint32) string { return d.blocks[id] }

// Labels appends the labels of a block to dst. They are parts of the block.
func (d *Dict) Labels(id uint32, dst []Label) []Label {
	return exposition.ParseLabels(d.blocks[id], dst)
}

// Generation returns a number that changes whenever ids are reassigned.
func (d *Dict) Generation() uint64 { return d.generation }

// FamilyID returns the id of a family name, adding it if it is new.
func (d *Dict) FamilyID(name []byte) uint32 { return d.familyOf(exposition.View(name)) }

// BlockID returns the id of a label block, adding it if it is new.
func (d *Dict) BlockID(block []byte) uint32 { return d.blockOf(exposition.View(block)) }

// Compact forgets the families and label blocks for which keep returns false, renumbers the others
// in their old order, and raises the generation. Kept families keep their Help.
func (d *Dict) Compact(keepFamily, keepBlock func(id uint32) bool) {
	families, blocks := d.families, d.blocks
	*d = Dict{familyID: map[string]uint32{}, blockID: map[string]uint32{}, generation: d.generation + 1}
	for id, f := range families {
		if keepFamily(uint32(id)) {
			d.addFamily(f)
		}
	}
	for id, block := range blocks {
		if keepBlock(uint32(id)) {
			d.addBlock(block)
		}
	}
}

// familyOf is FamilyID for a name that the Dict must copy to keep.
func (d *Dict) familyOf(name string) uint32 {
	if id, ok := d.familyID[name]; ok {
		return id
	}
	return d.addFamily(Family{Name: strings.Clone(name)})
}

// blockOf is BlockID for a block that the Dict must copy to keep.
func (d *Dict) blockOf(block string) uint32 {
	if id, ok := d.blockID[block]; ok {
		return id
	}
	return d.addBlock(strings.Clone(block))
}

func (d *Dict) addFamily(f Family) uint32 {
	id := uint32(len(d.families))
	d.families = append(d.families, f)
	d.familyID[f.Name] = id
	return id
}

func (d *Dict) addBlock(block string) uint32 {
	id := uint32(len(d.blocks))
	d.blocks = append(d.blocks, block)
	d.blockID[block] = id
	return id
}
