// Package dmon reads the text that `dcgmi dmon` prints, in every layout since DCGM 2, a line at a time.
//
// The text has no timestamps and no separators: a header names the columns, a row follows for each entity, and the next
// sample begins where an entity or the header recurs. The parser emits only numbers of the text, under their own columns:
// a row whose cells cannot be assigned with certainty is left out as a whole and counted.
package dmon

import (
	"bytes"
	"math"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Parser turns lines into samples. Its zero value is ready for use. It remembers columns and entities from tick to
// tick, so that a steady tick allocates nothing. It belongs to one goroutine.
//
// Each cell with a number becomes a raw.Sample with the ids of Names. Without Names they are those of the Batch's
// Dict: the family is the column's short name (SMACT, POWER, …), and the label block names the entity in dmon's own
// words: `{gpu="0",entity="GPU 0"}` for a GPU, and for a GPU instance
// `{gpu="0",entity="GPU-I 7",gpu_instance_entity="7"}`, where gpu is the GPU whose row precedes it in the same tick;
// without one there is no gpu label. Units are dmon's (MB/s, W, C, mJ), numbers are not checked for range.
//
// N/A, NAN and INF give no sample; see ShowEmpty for rows of them. A row with a cell that dmon cut short with `...` gives
// its other cells and adds one to Batch.Skipped. A row that does not fit its header gives no sample and adds one, as does
// any text between the rows, such as an error. Rows of other entities (switches, links, CPUs, …) are ignored.
type Parser struct {
	// Names is set before the first Line, or nil.
	Names Names
	// ShowEmpty, without Names, gives a row without values one sample, of the family Entity and with the value NaN.
	ShowEmpty bool

	names  Names // bound; nil before the first Line
	layout layout

	entities []entity
	byName   map[string]int
	tick     uint64 // the tick being read; 0 before the first
	rows     int    // rows of GPUs and GPU instances in this tick
	parent   int    // the last GPU of this tick, or none
	last     int    // the entity of the last row, or none

	dict       *raw.Dict
	generation uint64
}

// none is the index for no entity.
const none = -1

// Line reads one line, with or without its newline, into b, whose Dict must be set unless there are Names. It returns
// false if line begins the next tick: then it has read nothing, b contains the complete previous tick, and the caller
// passes the same line again with an emptied Batch.
func (p *Parser) Line(b *raw.Batch, line []byte) bool {
	if p.names == nil || p.Names == nil && (p.dict != b.Dict || p.generation != b.Dict.Generation()) {
		p.bind(b.Dict)
	}
	line = trimRight(line)
	start := skipBlanks(line, 0)
	if start == len(line) {
		return true
	}
	if line[start] == '#' {
		return p.header(line, start)
	}
	e, end, kind := p.entity(line, start)
	switch kind {
	case textRow:
		b.Skipped++
		return true
	case otherRow:
		return true
	}
	return p.row(b, line, e, end)
}

// Next ends the tick, for a caller that infers its end: the next row begins a new one.
func (p *Parser) Next() {
	p.tick++
	p.rows, p.parent, p.last = 0, none, none
}

// Reset forgets the header and ends the tick, for a text that restarts. It keeps the entities.
func (p *Parser) Reset() {
	p.layout = layout{}
	p.Next()
}

// Reads reports whether the header names a column that Names knows.
func (p *Parser) Reads() bool {
	return slices.ContainsFunc(p.layout.columns, func(c column) bool { return c.known })
}

// Rows returns the number of rows of GPUs and GPU instances in the tick so far, including those with only N/A.
func (p *Parser) Rows() int { return p.rows }

// bind gets new ids for the columns and entities, from dict if there are no Names.
func (p *Parser) bind(dict *raw.Dict) {
	if p.names = p.Names; p.names == nil {
		p.dict, p.generation, p.names = dict, dict.Generation(), dictNames{dict}
	}
	p.layout.bind(p.names)
	for i := range p.entities {
		p.entities[i].bound = false
	}
	if p.byName == nil {
		p.byName = map[string]int{}
	}
	if p.tick == 0 {
		p.Next()
	}
}

// header reads a line that begins with '#', and ignores a comment that is not a header.
func (p *Parser) header(line []byte, start int) bool {
	if !IsHeader(line) {
		return true
	}
	if p.rows > 0 {
		p.Next()
		return false
	}
	if !bytes.Equal(line, p.layout.text) {
		p.layout.parse(line, start)
		p.layout.bind(p.names)
	}
	return true
}

// row reads the row of entity e, whose words end at end.
func (p *Parser) row(b *raw.Batch, line []byte, e, end int) bool {
	ent := &p.entities[e]
	if ent.tick == p.tick {
		// An error text may begin like a row ("GPU 0 is lost"), but only a row begins a tick.
		samples, skipped := len(b.Samples), b.Skipped
		isRow := p.cells(b, line, ent.label, end)
		b.Samples, b.Skipped = b.Samples[:samples], skipped
		if !isRow {
			b.Skipped++
			return true
		}
		p.Next()
		return false
	}
	if !ent.bound || ent.isInstance() && ent.parent != p.parent {
		p.name(e)
	}
	samples := len(b.Samples)
	if !p.cells(b, line, ent.label, end) {
		b.Skipped++
		return true
	}
	if dict, own := p.names.(dictNames); own && p.ShowEmpty && len(b.Samples) == samples {
		b.Samples = append(b.Samples, raw.Sample{Family: dict.FamilyID([]byte("Entity")), Labels: ent.label, Value: math.NaN()})
	}
	ent.tick = p.tick
	p.last = e
	p.rows++
	if !ent.isInstance() {
		p.parent = e
	}
	return true
}

// trimRight cuts line ends and trailing blanks.
func trimRight(line []byte) []byte {
	n := len(line)
	for n > 0 && isBlank(line[n-1]) {
		n--
	}
	return line[:n]
}

// Entity is a GPU or a GPU instance that has rows.
type Entity struct {
	// Instance marks a GPU instance.
	Instance bool
	// ID is DCGM's id, in digits: "7" of `GPU-I 7`.
	ID string
	// GPU is the ID of the GPU itself or, for an instance, of the GPU whose row precedes it in
	// the same tick; "" without one.
	GPU string
}

// Names assigns the ids of samples to the columns and entities of a text.
type Names interface {
	// Column returns the Family of the values below a heading, false to leave them out.
	Column(name []byte) (id uint32, ok bool)
	// Entity returns the Labels of an entity's samples. n counts the entities of the
	// Parser from 0. It is called again if the GPU of an instance changes.
	Entity(n int, e Entity) uint32
}

// dictNames uses dmon's own words, in a Dict.
type dictNames struct{ *raw.Dict }

func (d dictNames) Column(name []byte) (uint32, bool) { return d.FamilyID(name), true }

func (d dictNames) Entity(_ int, e Entity) uint32 {
	block := []byte{'{'}
	if e.GPU != "" {
		block = append(append(append(block, `gpu="`...), e.GPU...), `",`...)
	}
	if e.Instance {
		block = append(append(append(block, `entity="GPU-I `...), e.ID...), `",gpu_instance_entity="`...)
	} else {
		block = append(block, `entity="GPU `...)
	}
	return d.BlockID(append(append(block, e.ID...), `"}`...))
}
