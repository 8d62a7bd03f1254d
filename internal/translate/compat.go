package translate

import (
	"math"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// compat is what a Translator knows in order to render readings in other versions. Ids
// of families and blocks are those of the Dict, as everywhere in it.
type compat struct {
	versions   []Version
	beside     bool // texts of sources without a body are not served
	rendered   []renderedFamily
	byName     map[string]int // in rendered, of the families of versions
	ofQuantity [][]int        // in rendered, by quantity

	families []compatFamily
	rows     [][numVersions]int32 // of each label block, its text in each version
	blocks   [numVersions][]string
	blockID  [numVersions]map[string]int32

	found  []foundSeries
	counts []int
	marks  []uint64 // of blocks of a version: the latest pass that had it
	pass   uint64
	served []string // names of the families of the latest reading that have series
	serves []bool
}

// compatFamily is what is known of a family of the source.
type compatFamily struct {
	own   int   // the family of ours that it is by its name, -1 for none
	feeds []int // the families that its values go to
}

// foundSeries is a series before it is put in order.
type foundSeries struct {
	family int
	renderedSeries
}

// newCompat returns nil where no version is asked for. All families of all versions have
// a number, so that it is the same after a reload; where two of the versions give a
// family the same name, it is that of the first.
func newCompat(opts *Options, quantities []quantity) *compat {
	if len(opts.Compat) == 0 {
		return nil
	}
	c := &compat{versions: opts.Compat, beside: opts.WithoutText, byName: map[string]int{}, ofQuantity: make([][]int, len(quantities))}
	for v := range numVersions {
		for i := range quantities {
			w := quantities[i].worded[v]
			if w.name == "" {
				continue
			}
			c.rendered = append(c.rendered, renderedFamily{
				name: w.name, header: v.header(quantities[i].field, w), version: v,
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
	c.counts, c.serves = make([]int, len(c.rendered)), make([]bool, len(c.rendered))
	c.forget()
	return c
}

// forget drops what is known of a Dict. As what learns, it does nothing on nil.
func (c *compat) forget() {
	if c == nil {
		return
	}
	c.families, c.rows = nil, nil
	for v := range numVersions {
		c.blocks[v], c.blockID[v] = nil, map[string]int32{}
	}
}

// learnFamily adds a family of the source, whose rule may be nil.
func (c *compat) learnFamily(name string, r *rule) {
	if c == nil {
		return
	}
	f := compatFamily{own: -1}
	if at, ok := c.byName[name]; ok {
		f.own = at
	}
	if r != nil && r.quantity >= 0 {
		f.feeds = c.ofQuantity[r.quantity]
	}
	c.families = append(c.families, f)
}

// learnBlock adds a label block of the source, ok if it is of a device.
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
	c.rows = append(c.rows, texts)
}

// blockOf returns the id of a text of v. Texts are only appended: a Rendition that has
// the slice of before goes on with it.
func (c *compat) blockOf(v Version, text string) int32 {
	id, known := c.blockID[v][text]
	if !known {
		id = int32(len(c.blocks[v]))
		c.blockID[v][text] = id
		c.blocks[v] = append(c.blocks[v], text)
	}
	return id
}

// Render fills dst with the reading that Translate was last called with, in the words of
// Options.Compat, and reports whether there are any. A row of the source gives a row in
// each version, so that shares of workloads, instances and jobs stay as they were.
// Values that Translate drops are left out; what it clamps is the end of its range. While
// no family or label block is new it allocates nothing.
func (t *Translator) Render(dst *Rendition, b *raw.Batch) bool {
	c := t.compat
	if c == nil {
		return false
	}
	dst.reset(c)
	t.find(dst, b)
	c.arrange(dst)
	c.findHeaders(dst, b.Dict)
	c.nameServed(dst)
	return true
}

// find sets c.found to all series that there could be, in the order of the samples, and
// marks the families that the source serves itself.
func (t *Translator) find(dst *Rendition, b *raw.Batch) {
	c := t.compat
	c.found = c.found[:0]
	own := len(b.Body) > 0 || !c.beside
	stamps := b.Stamps
	var rep Report
	for i := range b.Samples {
		stale := false
		if len(stamps) > 0 && stamps[0].Sample == i {
			stale = isStale(stamps[0].Millis, b.At)
			stamps = stamps[1:]
		}
		s := &b.Samples[i]
		f := &c.families[s.Family]
		if f.own >= 0 && own {
			dst.given[f.own] = true
		}
		variant := t.blocks[s.Labels]
		if len(f.feeds) == 0 || stale || variant < 0 || t.positions[variant].row < 0 {
			continue
		}
		v := t.readAny(t.families[s.Family].rule, s.Value, &rep)
		if !canonical.Given(v) {
			continue
		}
		for _, family := range f.feeds {
			to := &c.rendered[family]
			if n := to.rule.write(v); !to.rule.blanks.in(n) {
				c.found = append(c.found, foundSeries{family, renderedSeries{c.rows[s.Labels][to.version], t.positions[variant].row, n}})
			}
		}
	}
}

// readAny is rule.read for values of utilRatioName too, whose unit Translate found out.
func (t *Translator) readAny(r *rule, v float64, rep *Report) float64 {
	v = r.read(v, rep)
	if r.slot == int(canonical.NumFields)+t.rules.util && canonical.Given(v) {
		return t.util.read(v, t.util.unit, rep)
	}
	return v
}

// arrange puts what was found into dst, family by family, without those that the source
// serves itself. Of series that are the same, the first stands.
func (c *compat) arrange(dst *Rendition) {
	clear(c.counts)
	for i := range c.found {
		c.counts[c.found[i].family]++
	}
	n := 0
	for f := range c.counts {
		if dst.given[f] {
			c.counts[f] = 0
		}
		dst.ends[f], n = n, n+c.counts[f] // where it begins
	}
	dst.series = slices.Grow(dst.series, n)[:n]
	for i := range c.found {
		if s := &c.found[i]; !dst.given[s.family] {
			dst.series[dst.ends[s.family]] = s.renderedSeries
			dst.ends[s.family]++
		}
	}
	c.unify(dst)
}

// unify leaves out series that a family has already.
func (c *compat) unify(dst *Rendition) {
	from, kept := 0, 0
	for f := range dst.ends {
		c.pass++
		if n := len(dst.blocks[c.rendered[f].version]); len(c.marks) < n {
			c.marks = append(c.marks, make([]uint64, n-len(c.marks))...)
		}
		for _, s := range dst.series[from:dst.ends[f]] {
			if c.marks[s.block] == c.pass {
				continue
			}
			c.marks[s.block] = c.pass
			dst.series[kept] = s
			kept++
		}
		from, dst.ends[f] = dst.ends[f], kept
	}
	dst.series = dst.series[:kept]
}

// findHeaders marks the families of which the source has HELP lines, perhaps without a
// sample.
func (c *compat) findHeaders(dst *Rendition, d *raw.Dict) {
	for id := range c.families {
		if at := c.families[id].own; at >= 0 {
			dst.begun[at] = dst.given[at] || d.Family(uint32(id)).Help != ""
		}
	}
}

// nameServed updates c.served, which is a slice of its own once it changes.
func (c *compat) nameServed(dst *Rendition) {
	changed, from := false, 0
	for f, end := range dst.ends {
		changed = changed || c.serves[f] != (end > from)
		c.serves[f], from = end > from, end
	}
	if !changed {
		return
	}
	c.served = nil
	for f := range c.serves {
		if c.serves[f] {
			c.served = append(c.served, c.rendered[f].name)
		}
	}
	slices.Sort(c.served)
}

// Rendered returns the names, sorted, of the families that the latest Rendition has
// series of. Nobody writes to the slice any more.
func (t *Translator) Rendered() []string {
	if t.compat == nil {
		return nil
	}
	return t.compat.served
}

// write turns an SI value into the number that read turns into it: the one with the
// fewest decimals, or the nearest where no number does. What was once a whole number of
// this unit is the same number again.
func (r *rule) write(v float64) float64 {
	if r.times == r.per {
		return v
	}
	n := v * r.per / r.times
	const finest = 1e12
	for scale := 1.0; scale <= finest; scale *= 10 {
		if rounded := math.Round(n*scale) / scale; rounded*r.times/r.per == v {
			return rounded
		}
	}
	for _, near := range [...]float64{n, math.Nextafter(n, math.Inf(-1)), math.Nextafter(n, math.Inf(1))} {
		if near*r.times/r.per == v {
			return near
		}
	}
	return n
}
