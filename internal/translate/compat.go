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
	quantityOf [canonical.NumFields]int

	families []compatFamily
	texts    [][numVersions]int32 // of each label block, in each version
	blocks   [numVersions][]string
	blockID  [numVersions]map[string]int32

	rendering
	jobs   *jobRendering // nil if Jobstats is not requested
	serves []bool        // by family: it has series in the latest reading
	served []string      // their names
}

// rendering is the scratch of a Render.
type rendering struct {
	values []float64 // of each sample, in SI
	groups []group
	marks  []uint64 // by block of a version: the last pass with a series of it
	pass   uint64
}

// group is consecutive samples of one quantity.
type group struct{ quantity, from, to int }

// derivations are readings that Translate derives from others if the source has no sample of
// them. A derived field is on the rows that have a sample of the other.
var derivations = [...]struct{ field, of canonical.Field }{
	{canonical.FramebufferTotal, canonical.FramebufferUsed},
	{canonical.NVLinkBytes, canonical.NVLinkTransmit},
}

// compatFamily is the state of a family of the source.
type compatFamily struct {
	own      int // the family in compat.rendered with its name, -1 if none
	quantity int // -1 if no version names it
}

// newCompat returns nil if no version is requested. Every family of every version has a number,
// which stays the same after a reload. A name that two requested versions share has the number
// of the first.
func newCompat(opts *Options, quantities []quantity) *compat {
	if len(opts.Compat) == 0 {
		return nil
	}
	c := &compat{versions: opts.Compat, whole: opts.CompatAll, byName: map[string]int{}, ofQuantity: make([][]int, len(quantities))}
	var numbers [numVersions][]int // by quantity, -1 for no family
	for v := range numVersions {
		for i := range quantities {
			w := quantities[i].worded[v]
			if w.name == "" {
				numbers[v] = append(numbers[v], -1)
				continue
			}
			numbers[v] = append(numbers[v], len(c.rendered))
			c.rendered = append(c.rendered, renderedFamily{
				name: w.name, header: v.header(&quantities[i]), version: v,
				rule: newRule(quantities[i].field, w.unit, 0),
			})
		}
	}
	for _, v := range c.versions {
		for i, at := range numbers[v] {
			if at < 0 {
				continue
			}
			if _, taken := c.byName[c.rendered[at].name]; !taken {
				c.byName[c.rendered[at].name] = at
				c.ofQuantity[i] = append(c.ofQuantity[i], at)
			}
		}
	}
	if slices.Contains(c.versions, Jobstats) {
		c.addJobFamilies()
	}
	c.serves = make([]bool, len(c.rendered))
	for i := len(quantities) - 1; i >= 0; i-- {
		c.quantityOf[quantities[i].field] = i
	}
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
	if c.jobs != nil {
		c.jobs.topology = nil
	}
}

// learnFamily adds a family of the source, whose rule may be nil.
func (c *compat) learnFamily(name string, r *rule) {
	if c == nil {
		return
	}
	f := compatFamily{own: -1, quantity: -1}
	if at, ok := c.byName[name]; ok {
		f.own = at
	}
	if r != nil {
		f.quantity = r.quantity
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
			if v == Jobstats {
				continue
			}
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

// nameServed updates c.served, with a new slice for each change.
func (c *compat) nameServed(dst *Rendition) {
	changed := false
	for f, s := range dst.spans {
		changed = changed || c.serves[f] != (s.from < s.to)
		c.serves[f] = s.from < s.to
	}
	if !changed {
		return
	}
	c.served = nil
	for f, serves := range c.serves {
		if serves {
			c.served = append(c.served, c.rendered[f].name)
		}
	}
	slices.Sort(c.served)
}

// Rendered returns the sorted names of the families with series in the latest Rendition.
// The slice is never modified.
func (t *Translator) Rendered() []string {
	if t.compat == nil {
		return nil
	}
	return t.compat.served
}
