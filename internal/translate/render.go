package translate

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Render fills dst with the reading that Translate last turned into frame, under the names of
// Options.Compat, and reports whether there are any. Each row of the source gives a row in
// each version, so the shares of workloads, instances and jobs do not change.
// Values that Translate drops are left out; those that it clamps are the end of their range.
// While no family or label block is new, it allocates nothing.
func (t *Translator) Render(dst *Rendition, frame *canonical.Frame, b *raw.Batch) bool {
	c := t.compat
	if c == nil {
		return false
	}
	dst.reset(c)
	c.runs, c.sequences = c.runs[:0], c.sequences[:0]
	t.find(dst, b)
	t.findDerived(dst, frame)
	c.arrange(dst)
	c.unify(dst)
	c.findHeaders(dst, b.Dict)
	c.nameServed(dst)
	return true
}

// find adds all possible series to dst, and marks the families that the source itself
// serves. It reads groups of samples of one family, as exporters write them.
func (t *Translator) find(dst *Rendition, b *raw.Batch) {
	c := t.compat
	clear(c.read)
	c.groups = c.groups[:0]
	all := b.Chosen == nil // all families of the source are served
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
			g := group{gives: f.gives, rows: t.rowsOf(dst, b.Samples[from:to])}
			g.values = t.readGroup(dst, b, from, to, stamps[:of], g.rows)
			c.groups = append(c.groups, g)
			c.add(dst, &g, f.feeds)
		}
		stamps = stamps[of:]
	}
}

// readGroup adds the SI values of a range of b's samples, all of one family, to dst: NaN for
// those that are stale or of no device. It returns the index of the first value. stamps are
// the timestamps of these samples.
func (t *Translator) readGroup(dst *Rendition, b *raw.Batch, from, to int, stamps []raw.Stamp, at rows) int {
	begun := len(dst.values)
	dst.values = slices.Grow(dst.values, at.n)[:begun+at.n]
	values, devices, samples := dst.values[begun:], dst.rows.devices[at.from:][:at.n], b.Samples[from:to]
	rule := t.families[samples[0].Family].rule
	var rep Report
	for i := range values {
		v := samples[i].Value
		if devices[i] < 0 {
			v = absent
		} else if !rule.isPlain(v) {
			v = rule.read(v, &rep)
		}
		values[i] = v
	}
	if rule.slot == t.rules.util {
		for i, v := range values {
			if canonical.Given(v) {
				values[i] = t.util.read(v, t.util.unit, &rep)
			}
		}
	}
	fresh := at.devices
	for _, stamp := range stamps {
		if i := stamp.Sample - from; isStale(stamp.Millis, b.At) && devices[i] >= 0 {
			values[i] = absent
			fresh--
		}
	}
	gives := t.compat.families[samples[0].Family].gives
	t.compat.read[gives] = t.compat.read[gives] || fresh > 0
	return begun
}

// findDerived adds the derived readings that the source has no sample of.
func (t *Translator) findDerived(dst *Rendition, frame *canonical.Frame) {
	c := t.compat
	for _, d := range c.derived {
		if c.read[d.quantity] {
			continue
		}
		for i := range c.groups {
			g := c.groups[i]
			if g.gives != d.from {
				continue
			}
			g.values = len(dst.values)
			for _, device := range dst.rows.devices[g.rows.from:][:g.rows.n] {
				v := absent
				if device >= 0 {
					v = frame.Row(int(device))[d.field]
				}
				dst.values = append(dst.values, v)
			}
			c.add(dst, &g, c.ofQuantity[d.quantity])
		}
	}
}

// deviceAt returns the index of the device of a label block, below 0 for none.
func (t *Translator) deviceAt(block uint32) int32 {
	if variant := t.blocks[block]; variant >= 0 {
		return t.positions[variant].row
	}
	return noDevice
}

// add adds a group to dst as series of each of families. Families in SI share the group's
// values.
func (c *compat) add(dst *Rendition, g *group, families []int) {
	for _, family := range families {
		r := run{family: family, rows: g.rows, values: g.values}
		if rule := c.rendered[family].rule; rule.times != rule.per {
			r.values = len(dst.values)
			for _, v := range dst.values[g.values:][:g.rows.n] {
				dst.values = append(dst.values, rule.write(v))
			}
		}
		c.runs = append(c.runs, r)
	}
}

// arrange puts the runs found into dst, family by family, without the families that the
// source itself serves.
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

// unify drops duplicate series of a family and keeps the first.
func (c *compat) unify(dst *Rendition) {
	for from, to := 0, 0; from < len(dst.runs); from = to {
		f := dst.runs[from].family
		for to = from + 1; to < len(dst.runs) && dst.runs[to].family == f; {
			to++
		}
		if v := c.rendered[f].version; to > from+1 || dst.runs[from].rows.twice[v] {
			c.part(dst, dst.runs[from:to], v)
		}
	}
}

// part gives the runs of one family, in version v, their own copies of the values, without
// those of series that came before.
func (c *compat) part(dst *Rendition, runs []run, v Version) {
	c.begin(len(dst.blocks[v]))
	for i := range runs {
		r := &runs[i]
		own := len(dst.values)
		dst.values = append(dst.values, dst.values[r.values:][:r.rows.n]...)
		r.values = own
		values := dst.values[own:]
		for j, text := range dst.rows.texts[v][r.rows.from:][:r.rows.n] {
			if c.rendered[r.family].has(values[j]) && !c.mark(text) {
				values[j] = absent
			}
		}
	}
}

// findHeaders marks the families that have HELP lines in the source, even without a sample.
func (c *compat) findHeaders(dst *Rendition, d *raw.Dict) {
	for id := range c.families {
		if at := c.families[id].own; at >= 0 {
			dst.begun[at] = dst.given[at] || !c.whole && d.Family(uint32(id)).Help != ""
		}
	}
}

// nameServed updates c.served, with a new slice for each change.
func (c *compat) nameServed(dst *Rendition) {
	changed := false
	for f := range c.serves {
		serves := dst.serves(f)
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

// Rendered returns the sorted names of the families with series in the latest Rendition.
// The slice is never modified.
func (t *Translator) Rendered() []string {
	if t.compat == nil {
		return nil
	}
	return t.compat.served
}
