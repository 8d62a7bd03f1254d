package translate

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Rendition is one reading under the names of other versions: the families of
// Options.Compat that its source does not give itself. A Translator fills it and reuses
// its memory; until it is filled again, any goroutine may read it. It
// implements canonical.Families.
type Rendition struct {
	families []renderedFamily      // the Translator's, never written to
	blocks   [numVersions][]string // by version and id: the text between name and value
	series   []renderedSeries
	spans    []span // of the series, by family
	begun    []bool // by family: the source's text has lines of it
}

// renderedFamily is a family of one version.
type renderedFamily struct {
	name, header string
	version      Version
	// rule converts the family's numbers to SI and back.
	rule *rule
}

// renderedSeries is a series of a family: its block, its device and its value in the family's unit.
type renderedSeries struct {
	text, device int32
	value        float64
}

// span is a range of indexes.
type span struct{ from, to int }

// Render fills dst with the reading that Translate last turned into frame, under the names of
// Options.Compat, and reports whether there are any. Each row of the source gives a row in
// each version, so the shares of workloads, instances and jobs do not change; of rows that are the
// same in a version, the first counts. Values that Translate drops are left out; those that it
// clamps are the end of their range. While no family or label block is new, it allocates nothing.
func (t *Translator) Render(dst *Rendition, frame *canonical.Frame, b *raw.Batch) bool {
	c := t.compat
	if c == nil {
		return false
	}
	n := len(c.rendered)
	dst.families, dst.blocks, dst.series = c.rendered, c.blocks, dst.series[:0]
	dst.spans, dst.begun = slices.Grow(dst.spans[:0], n)[:n], slices.Grow(dst.begun[:0], n)[:n]
	clear(dst.spans)
	clear(dst.begun)
	t.group(dst, b)
	for q, families := range c.ofQuantity {
		for _, f := range families {
			if !dst.begun[f] {
				t.render(dst, f, q, frame, b)
			}
		}
	}
	t.renderJobs(dst, frame)
	for id := range c.families { // families that only have a HELP line
		if at := c.families[id].own; at >= 0 && !c.whole && b.Dict.Family(uint32(id)).Help != "" {
			dst.begun[at] = true
		}
	}
	c.nameServed(dst)
	return true
}

// group reads the samples of b in SI, finds those of one quantity, and marks in dst.begun the
// families that the source itself serves.
func (t *Translator) group(dst *Rendition, b *raw.Batch) {
	c := t.compat
	c.groups = c.groups[:0]
	for _, name := range b.Families {
		if own, ok := c.byName[name]; ok {
			dst.begun[own] = !c.whole
		}
	}
	all := b.Chosen == nil // all families of the source are served
	c.values = slices.Grow(c.values[:0], len(b.Samples))[:len(b.Samples)]
	for from, to := 0, 0; from < len(b.Samples); from = to {
		id := b.Samples[from].Family
		for to = from + 1; to < len(b.Samples) && b.Samples[to].Family == id; {
			to++
		}
		f := &c.families[id]
		if f.own >= 0 && all && !c.whole {
			dst.begun[f.own] = true
		}
		if f.quantity >= 0 {
			c.groups = append(c.groups, group{f.quantity, from, to})
			t.readAll(c.values[from:to], b.Samples[from:to])
		}
	}
	for _, stamp := range b.Stamps {
		if isStale(stamp.Millis, b.At) {
			c.values[stamp.Sample] = absent
		}
	}
}

// readAll reads samples of one family in SI.
func (t *Translator) readAll(values []float64, samples []raw.Sample) {
	rule := t.families[samples[0].Family].rule
	var rep Report
	for i := range samples {
		v := samples[i].Value
		if !rule.isPlain(v) {
			v = rule.read(v, &rep)
		}
		values[i] = v
	}
	if rule.slot != t.rules.util {
		return
	}
	for i, v := range values {
		if canonical.Given(v) {
			values[i] = t.util.read(v, t.util.unit, &rep)
		}
	}
}

// render adds the series of a family that gives a quantity. If the source has no sample of it, but
// one that Translate derives it from, the values are those of frame.
func (t *Translator) render(dst *Rendition, family, quantity int, frame *canonical.Frame, b *raw.Batch) {
	c := t.compat
	from := len(dst.series)
	c.pass++
	if n := len(c.blocks[c.rendered[family].version]); len(c.marks) < n {
		c.marks = append(c.marks, make([]uint64, n-len(c.marks))...)
	}
	found := false
	for _, g := range c.groups {
		if g.quantity == quantity {
			found = found || slices.ContainsFunc(c.values[g.from:g.to], canonical.Given)
			t.add(dst, family, b.Samples[g.from:g.to], c.values[g.from:g.to])
		}
	}
	for _, d := range derivations {
		if found || c.quantityOf[d.field] != quantity {
			continue
		}
		for _, g := range c.groups {
			if g.quantity == c.quantityOf[d.of] {
				t.addDerived(dst, family, b.Samples[g.from:g.to], frame, d.field)
			}
		}
	}
	dst.spans[family] = span{from, len(dst.series)}
}

// add adds samples with their values in SI.
func (t *Translator) add(dst *Rendition, family int, samples []raw.Sample, values []float64) {
	c := t.compat
	version, rule := c.rendered[family].version, c.rendered[family].rule
	texts, marks, pass, series := c.texts, c.marks, c.pass, dst.series // not read anew for each of thousands of values
	for i, v := range values {
		block := samples[i].Labels
		device, text := t.deviceAt(block), texts[block][version]
		if device < 0 || !canonical.Given(v) || marks[text] == pass {
			continue
		}
		if v = rule.write(v); rule.blanks.in(v) {
			continue
		}
		marks[text] = pass
		series = append(series, renderedSeries{text, device, v})
	}
	dst.series = series
}

// addDerived adds the readings of a field in frame, on the rows of samples.
func (t *Translator) addDerived(dst *Rendition, family int, samples []raw.Sample, frame *canonical.Frame, field canonical.Field) {
	for i := range samples {
		if device := t.deviceAt(samples[i].Labels); device >= 0 {
			t.add(dst, family, samples[i:i+1], frame.Row(int(device))[field:field+1])
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

// Len returns the number of possible families, empty ones included. A number means the same
// family in all Renditions.
func (r *Rendition) Len() int { return len(r.families) }

// Begun reports whether the text of the source itself has lines of a family.
func (r *Rendition) Begun(family int) bool { return r.begun[family] }

// AppendFamily appends the series of a family, after its HELP and TYPE lines if header is
// set. It leaves out devices that are not shown, and appends nothing if no series is left. It
// may be called from any goroutine.
func (r *Rendition) AppendFamily(dst []byte, family int, header bool, shown func(device int) bool) []byte {
	f, s := &r.families[family], r.spans[family]
	blocks := r.blocks[f.version]
	for i := range r.series[s.from:s.to] {
		one := &r.series[s.from+i]
		if !shown(int(one.device)) {
			continue
		}
		if header {
			dst, header = append(dst, f.header...), false
		}
		dst = append(append(dst, f.name...), blocks[one.text]...)
		dst = append(exposition.AppendFloat(dst, one.value), '\n')
	}
	return dst
}
