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
	c.runs = c.runs[:0]
	t.find(dst, b)
	t.findDerived(dst, frame, b)
	c.arrange(dst)
	c.unify(dst)
	c.findHeaders(dst, b.Dict)
	c.nameServed(dst)
	return true
}

// find adds all series that there could be to dst, and marks the families that the source
// serves itself. It goes by groups of samples of one family, as exporters write them.
func (t *Translator) find(dst *Rendition, b *raw.Batch) {
	c := t.compat
	clear(c.read)
	all := b.Chosen == nil // of the source's families are served
	for _, name := range b.Families {
		if own, ok := c.byName[name]; ok && !c.whole {
			dst.given[own] = true
		}
	}
	stamps := b.Stamps
	for from, to := 0, 0; from < len(b.Samples); from = to {
		id := b.Samples[from].Family
		for to = from + 1; to < len(b.Samples) && b.Samples[to].Family == id; {
			to++
		}
		of := 0 // how many stamps the group has
		for of < len(stamps) && stamps[of].Sample < to {
			of++
		}
		f := &c.families[id]
		if f.own >= 0 && all && !c.whole {
			dst.given[f.own] = true
		}
		if f.gives >= 0 {
			t.readGroup(b, from, to, stamps[:of])
			c.read[f.gives] = c.read[f.gives] || len(c.group) > 0
			c.add(dst, f.feeds)
		}
		stamps = stamps[of:]
	}
}

// readGroup makes c.group the samples of b within a range, all of one family, that are of
// a device and not stale. The stamps are theirs.
func (t *Translator) readGroup(b *raw.Batch, from, to int, stamps []raw.Stamp) {
	c := t.compat
	c.group = slices.Grow(c.group[:0], to-from)
	rule := t.families[b.Samples[from].Family].rule
	var rep Report
	for i := from; i < to; i++ {
		if len(stamps) > 0 && stamps[0].Sample == i {
			stale := isStale(stamps[0].Millis, b.At)
			if stamps = stamps[1:]; stale {
				continue
			}
		}
		s := &b.Samples[i]
		if device := t.deviceAt(s.Labels); device >= 0 {
			c.group = append(c.group, readRow{s.Labels, device, rule.read(s.Value, &rep)})
		}
	}
	if rule.slot == int(canonical.NumFields)+t.rules.util {
		for i := range c.group {
			if v := &c.group[i].value; canonical.Given(*v) {
				*v = t.util.read(*v, t.util.unit, &rep)
			}
		}
	}
}

// findDerived adds what the source has no sample of.
func (t *Translator) findDerived(dst *Rendition, frame *canonical.Frame, b *raw.Batch) {
	c := t.compat
	for _, d := range c.derived {
		if c.read[d.quantity] || !c.read[d.from] || len(c.ofQuantity[d.quantity]) == 0 {
			continue
		}
		c.group = c.group[:0]
		for i := range b.Samples {
			s := &b.Samples[i]
			if device := t.deviceAt(s.Labels); device >= 0 && c.families[s.Family].gives == d.from {
				c.group = append(c.group, readRow{s.Labels, device, frame.Row(int(device))[d.field]})
			}
		}
		c.add(dst, c.ofQuantity[d.quantity])
	}
}

// deviceAt returns the index of the device that a label block is of, below 0 for none.
func (t *Translator) deviceAt(block uint32) int32 {
	if variant := t.blocks[block]; variant >= 0 {
		return t.positions[variant].row
	}
	return noDevice
}

// add adds the rows of a group, as series of each of families, to dst.
func (c *compat) add(dst *Rendition, families []int) {
	for _, family := range families {
		to, rule := c.rendered[family].version, c.rendered[family].rule
		begun := len(dst.series)
		series := slices.Grow(dst.series, len(c.group))
		for i := range c.group {
			row := &c.group[i]
			if !canonical.Given(row.value) {
				continue
			}
			if n := rule.write(row.value); !rule.blanks.in(n) {
				series = append(series, renderedSeries{c.rows[row.block][to], row.device, n})
			}
		}
		dst.series = series
		c.runs = append(c.runs, run{family, begun, len(series)})
	}
}

// arrange puts the runs that were found into dst, family by family, without those that
// the source serves itself.
func (c *compat) arrange(dst *Rendition) {
	clear(c.counts)
	for _, r := range c.runs {
		if !dst.given[r.family] {
			c.counts[r.family]++
		}
	}
	n := 0
	for f := range c.counts {
		dst.ends[f], n = n, n+c.counts[f] // where it begins
	}
	dst.runs = slices.Grow(dst.runs[:0], n)[:n]
	for _, r := range c.runs {
		if !dst.given[r.family] {
			dst.runs[dst.ends[r.family]] = r
			dst.ends[r.family]++
		}
	}
}

// unify leaves out series that a family has already: the first stands.
func (c *compat) unify(dst *Rendition) {
	latest := -1
	for i := range dst.runs {
		r := &dst.runs[i]
		if r.family != latest {
			latest = r.family
			c.pass++
		}
		if n := len(dst.blocks[c.rendered[r.family].version]); len(c.marks) < n {
			c.marks = append(c.marks, make([]uint64, n-len(c.marks))...)
		}
		kept := r.from
		for _, s := range dst.series[r.from:r.to] {
			if c.marks[s.block] == c.pass {
				continue
			}
			c.marks[s.block] = c.pass
			dst.series[kept] = s
			kept++
		}
		r.to = kept
	}
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
	changed := false
	for f := range c.serves {
		serves := slices.ContainsFunc(dst.runsOf(f), func(r run) bool { return r.to > r.from })
		changed = changed || c.serves[f] != serves
		c.serves[f] = serves
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
