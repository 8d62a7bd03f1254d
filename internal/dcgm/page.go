package dcgm

import (
	"cmp"
	"math"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Page turns ticks into expositions. It remembers what the ids of the ticks' Dict
// stand for and what the labels of each entity are, so that a tick of known
// entities allocates nothing. It belongs to one goroutine.
type Page struct {
	hostname string
	node     Node
	jobs     Jobs

	// What is known of the ids of dict at its generation.
	dict       *raw.Dict
	generation uint64
	families   []int // the index in Fields of each, or none
	blocks     []int // the index in rows of each label block, or none
	rows       []entry
	strange    []bool // of each label block: see Strangers

	nvlink    int                 // the index in Fields of NVLinkLimit
	heads     [len(Fields)]string // the HELP and TYPE lines of each family
	values    []float64           // fields × rows, NaN where the tick has none
	strangers bool
}

// none is the index of no family or row.
const none = -1

// entry is an entity with a row on the page.
type entry struct {
	entity
	labels [][]byte // a label block and the blank behind it, one for each job
}

// New returns a Page whose series carry that hostname, "" for none.
func New(hostname string) *Page {
	p := &Page{hostname: hostname, nvlink: indexOf(NVLinkLimit)}
	for i := range Fields {
		f := &Fields[i]
		p.heads[i] = "# HELP " + f.Family + " " + f.Help + "\n# TYPE " + f.Family + " " + f.Type + "\n"
	}
	return p
}

// indexOf returns the index in Fields of a column, or none.
func indexOf(column string) int {
	return slices.IndexFunc(Fields[:], func(f Field) bool { return f.Column == column })
}

// SetNode says what the entities are, from the next tick on. The page keeps n and
// does not write to it.
func (p *Page) SetNode(n Node) { p.node, p.dict = n, nil }

// SetJobs says who holds the devices, from the next tick on. The page keeps j and
// does not write to it.
func (p *Page) SetJobs(j Jobs) { p.jobs, p.dict = j, nil }

// Strangers tells whether entities of the last tick were left out because the node
// told by SetNode has no such entity, or not its UUID: boards or instances may have
// come since, and the node should be asked anew.
func (p *Page) Strangers() bool { return p.strangers }

// Append appends the exposition of a tick to dst and returns it. The tick's
// families are dmon's columns and its labels dmon's entities, as package dmon
// fills them; of two values for one cell the first counts. Columns that are not
// in Fields, values that are not finite, and entities that the node has not
// are left out. Where the tick does not tell what the NVLinks of an entity can carry,
// it is what the node tells of its board, as long as the tick tells of the entity.
//
// Families stand in the order of Fields, each with its HELP and TYPE once
// and only if it has a sample; below them each board is followed by its
// instances. A device that several jobs hold has a line for each of them.
//
// Numbers are written as the exporter does, which parses to the same float64:
// integers plain, doubles with six decimals.
func (p *Page) Append(dst []byte, tick *raw.Batch) []byte {
	p.learn(tick.Dict)
	p.fill(tick)
	for f := range Fields {
		values := p.values[f*len(p.rows) : (f+1)*len(p.rows)]
		headed := false
		for r, v := range values {
			if v-v != 0 {
				continue
			}
			if !headed {
				dst = append(dst, p.heads[f]...)
				headed = true
			}
			for _, labels := range p.rows[r].labels {
				dst = append(dst, Fields[f].Family...)
				dst = append(dst, labels...)
				dst = appendValue(dst, v, Fields[f].Float)
				dst = append(dst, '\n')
			}
		}
	}
	return dst
}

// fill puts the samples of a tick into the cells.
func (p *Page) fill(tick *raw.Batch) {
	n := len(p.rows)
	p.values = slices.Grow(p.values[:0], len(Fields)*n)[:len(Fields)*n]
	for i := range p.values {
		p.values[i] = math.NaN()
	}
	p.strangers = false
	for i := range tick.Samples {
		s := &tick.Samples[i]
		p.strangers = p.strangers || p.strange[s.Labels]
		f, r := p.families[s.Family], p.blocks[s.Labels]
		if f == none || r == none {
			continue
		}
		if cell := &p.values[f*n+r]; *cell != *cell {
			*cell = s.Value
		}
	}
	p.fillLinks()
}

// fillLinks puts what the node tells of NVLinks beside the samples of a tick.
func (p *Page) fillLinks() {
	n := len(p.rows)
	for r := range p.rows {
		limit, cell := p.rows[r].board.NVLinkLimit, &p.values[p.nvlink*n+r]
		if limit > 0 && *cell != *cell && p.read(r) {
			*cell = limit
		}
	}
}

// read tells whether the tick has a value of a row.
func (p *Page) read(r int) bool {
	for at := r; at < len(p.values); at += len(p.rows) {
		if v := p.values[at]; v-v == 0 {
			return true
		}
	}
	return false
}

// learn looks up the families and label blocks of d if there are new ones, or the
// node or the jobs are others.
func (p *Page) learn(d *raw.Dict) {
	if p.dict == d && p.generation == d.Generation() &&
		len(p.families) == d.Families() && len(p.blocks) == d.Blocks() {
		return
	}
	p.dict, p.generation = d, d.Generation()
	p.families = p.families[:0]
	for id := range d.Families() {
		name := d.Family(uint32(id)).Name
		p.families = append(p.families, indexOf(name))
	}
	p.blocks, p.rows, p.strange = p.blocks[:0], nil, p.strange[:0]
	entities := make([]entity, d.Blocks())
	for id := range entities {
		e, known := p.describe(d.Block(uint32(id)))
		entities[id] = e
		p.strange = append(p.strange, !known)
		if e.board != nil {
			p.rows = append(p.rows, entry{entity: e})
		}
	}
	slices.SortFunc(p.rows, func(a, b entry) int { return compare(&a.entity, &b.entity) })
	p.rows = slices.CompactFunc(p.rows, func(a, b entry) bool { return compare(&a.entity, &b.entity) == 0 })
	for i := range p.rows {
		p.rows[i].labels = p.labels(&p.rows[i].entity)
	}
	for id := range entities {
		at := none
		if entities[id].board != nil {
			at, _ = slices.BinarySearchFunc(p.rows, &entities[id], func(r entry, e *entity) int { return compare(&r.entity, e) })
		}
		p.blocks = append(p.blocks, at)
	}
}

// compare orders boards by DCGM's id, and each in front of its instances.
func compare(a, b *entity) int {
	return cmp.Or(cmp.Compare(a.board.Entity, b.board.Entity), cmp.Compare(a.instance(), b.instance()))
}
