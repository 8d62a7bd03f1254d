package translate

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// compat is the state that a Translator needs to render readings in other versions. Ids of
// families and blocks are those of the Dict.
type compat struct {
	versions   []Version
	whole      bool // nothing of the source itself is served
	rendered   []renderedFamily
	byName     map[string]int // indexes in rendered, of the families of versions
	ofQuantity [][]int        // indexes in rendered, by quantity
	derived    []derivation

	families []compatFamily
	texts    [][numVersions]int32 // of each label block, in each version
	blocks   [numVersions][]string
	blockID  [numVersions]map[string]int32

	groups    []group // of this reading
	sequences []rows  // of this reading
	runs      []run   // in the order found
	read      []bool  // by quantity: this reading has a sample of it
	counts    []int
	marks     []uint64 // by block of a version: the last pass that marked it
	pass      uint64
	served    []string // names of the families with series in the latest reading
	serves    []bool
}

// derivations are readings that Translate derives from others if the source has no sample of
// them. A derived field is on the rows that have a sample of the other.
var derivations = [...]struct{ field, of canonical.Field }{
	{canonical.FramebufferTotal, canonical.FramebufferUsed},
	{canonical.NVLinkBytes, canonical.NVLinkTransmit},
}

// derivation is one of derivations, with the quantities of both readings.
type derivation struct {
	field          canonical.Field
	quantity, from int
}

// compatFamily is the state of a family of the source.
type compatFamily struct {
	own   int   // the family in compat.rendered with its name, -1 if none
	gives int   // its quantity, -1 if no version names it
	feeds []int // the families in compat.rendered that its values go to
}

// newCompat returns nil if no version is requested. Every family of every version has a number,
// which stays the same after a reload. A name that two requested versions share has the number
// of the first.
func newCompat(opts *Options, quantities []quantity) *compat {
	if len(opts.Compat) == 0 {
		return nil
	}
	c := &compat{versions: opts.Compat, whole: opts.CompatAll, byName: map[string]int{}, ofQuantity: make([][]int, len(quantities))}
	for v := range numVersions {
		for i := range quantities {
			w := quantities[i].worded[v]
			if w.name == "" {
				continue
			}
			c.rendered = append(c.rendered, renderedFamily{
				name: w.name, header: v.header(&quantities[i]), version: v,
				rule: newRule(quantities[i].field, w.unit, 0),
			})
		}
	}
	for _, v := range c.versions {
		for i := range quantities {
			name := quantities[i].worded[v].name
			if _, taken := c.byName[name]; taken || name == "" {
				continue
			}
			at := slices.IndexFunc(c.rendered, func(f renderedFamily) bool { return f.version == v && f.name == name })
			c.byName[name] = at
			c.ofQuantity[i] = append(c.ofQuantity[i], at)
		}
	}
	for _, d := range derivations {
		quantity := func(f canonical.Field) int {
			return slices.IndexFunc(quantities, func(q quantity) bool { return q.field == f })
		}
		c.derived = append(c.derived, derivation{d.field, quantity(d.field), quantity(d.of)})
	}
	c.read = make([]bool, len(quantities))
	c.counts, c.serves = make([]int, len(c.rendered)), make([]bool, len(c.rendered))
	return c
}

// forget drops what is known about a Dict. Like learnFamily and learnBlock, it does nothing on nil.
func (c *compat) forget() {
	if c == nil {
		return
	}
	c.families, c.texts = nil, nil
	for v := range numVersions {
		c.blocks[v], c.blockID[v] = nil, map[string]int32{}
	}
}

// learnFamily adds a family of the source, whose rule may be nil.
func (c *compat) learnFamily(name string, r *rule) {
	if c == nil {
		return
	}
	f := compatFamily{own: -1, gives: -1}
	if at, ok := c.byName[name]; ok {
		f.own = at
	}
	if r != nil && r.quantity >= 0 {
		f.gives, f.feeds = r.quantity, c.ofQuantity[r.quantity]
	}
	c.families = append(c.families, f)
}

// learnBlock adds a label block of the source; ok reports whether it is of a device.
func (c *compat) learnBlock(labels []raw.Label, ok bool) {
	if c == nil {
		return
	}
	var texts [numVersions]int32
	if ok {
		for _, v := range c.versions {
			row := valuesOf(labels)
			texts[v] = c.blockOf(v, string(v.appendLabels(nil, &row, labels)))
		}
	}
	c.texts = append(c.texts, texts)
}

// blockOf returns the id of a text of v. Texts are only appended, so a Rendition with the earlier
// slice stays valid.
func (c *compat) blockOf(v Version, text string) int32 {
	id, known := c.blockID[v][text]
	if !known {
		id = int32(len(c.blocks[v]))
		c.blockID[v][text] = id
		c.blocks[v] = append(c.blocks[v], text)
	}
	return id
}
