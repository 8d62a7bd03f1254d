package translate

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Render fills dst with the reading that Translate last turned into frame, in the words of
// Options.Compat, and reports whether there are any. A row of the source gives a row in
// each version, so that shares of workloads, instances and jobs stay as they were.
// Values that Translate drops are left out; what it clamps is the end of its range. While
// no family or label block is new it allocates nothing.
func (t *Translator) Render(dst *Rendition, frame *canonical.Frame, b *raw.Batch) bool {
	c := t.compat
	if c == nil {
		return false
	}
	dst.reset(c)
	t.find(dst, b)
	t.findDerived(frame, b)
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
	clear(c.read)
	stamps := b.Stamps
	var rep Report
	all := b.Chosen == nil // of the source's families are served
	for _, name := range b.Families {
		if own, ok := c.byName[name]; ok && !c.whole {
			dst.given[own] = true
		}
	}
	for i := range b.Samples {
		stale := false
		if len(stamps) > 0 && stamps[0].Sample == i {
			stale = isStale(stamps[0].Millis, b.At)
			stamps = stamps[1:]
		}
		s := &b.Samples[i]
		f := &c.families[s.Family]
		if f.own >= 0 && all && !c.whole {
			dst.given[f.own] = true
		}
		device := t.deviceAt(s.Labels)
		if f.gives < 0 || stale || device < 0 {
			continue
		}
		c.read[f.gives] = true
		if len(f.feeds) > 0 {
			c.add(f.feeds, s.Labels, device, t.readAny(t.families[s.Family].rule, s.Value, &rep))
		}
	}
}

// findDerived adds what the source has no sample of.
func (t *Translator) findDerived(frame *canonical.Frame, b *raw.Batch) {
	c := t.compat
	for _, d := range c.derived {
		if c.read[d.quantity] || !c.read[d.from] || len(c.ofQuantity[d.quantity]) == 0 {
			continue
		}
		for i := range b.Samples {
			s := &b.Samples[i]
			if device := t.deviceAt(s.Labels); device >= 0 && c.families[s.Family].gives == d.from {
				c.add(c.ofQuantity[d.quantity], s.Labels, device, frame.Row(int(device))[d.field])
			}
		}
	}
}

// deviceAt returns the index of the device that a label block is of, below 0 for none.
func (t *Translator) deviceAt(block uint32) int32 {
	if variant := t.blocks[block]; variant >= 0 {
		return t.positions[variant].row
	}
	return noDevice
}

// add notes an SI value, NaN for none, as a series of families on the row of a label
// block.
func (c *compat) add(families []int, block uint32, device int32, v float64) {
	if !canonical.Given(v) {
		return
	}
	for _, family := range families {
		to := &c.rendered[family]
		if n := to.rule.write(v); !to.rule.blanks.in(n) {
			c.found = append(c.found, foundSeries{family, renderedSeries{c.rows[block][to.version], device, n}})
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
			dst.begun[at] = dst.given[at] || !c.whole && d.Family(uint32(id)).Help != ""
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
