package translate

import "github.com/kpulse/kpulse-proxy/internal/raw"

// group is consecutive samples of one family: their quantity and rows, and the index in
// Rendition.values of their first value.
type group struct {
	gives  int
	rows   rows
	values int
}

// rowsRead are label blocks in the order in which the source has them.
type rowsRead struct {
	blocks  []uint32
	devices []int32              // of each, below 0 for none
	texts   [numVersions][]int32 // of each in each version, in Rendition.blocks
}

// rows are a range of Rendition.rows. Most families of an exporter have the same rows, and
// share them.
type rows struct {
	from, n int
	devices int               // how many are of a device
	twice   [numVersions]bool // two rows of devices have the same text
}

// rowsOf returns the rows of samples. It adds them to dst unless an earlier group had the
// same.
func (t *Translator) rowsOf(dst *Rendition, samples []raw.Sample) rows {
	c := t.compat
	for i := len(c.sequences) - 1; i >= 0; i-- {
		if dst.areOf(&c.sequences[i], samples) {
			return c.sequences[i]
		}
	}
	all := &dst.rows
	r := rows{from: len(all.blocks), n: len(samples)}
	for i := range samples {
		block := samples[i].Labels
		device := t.deviceAt(block)
		if device >= 0 {
			r.devices++
		}
		all.blocks, all.devices = append(all.blocks, block), append(all.devices, device)
		for _, v := range c.versions {
			all.texts[v] = append(all.texts[v], c.texts[block][v])
		}
	}
	for _, v := range c.versions {
		r.twice[v] = c.repeats(dst, &r, v)
	}
	if len(c.sequences) < maxSequences {
		c.sequences = append(c.sequences, r)
	}
	return r
}

// maxSequences bounds how many earlier rows those of a group are compared with.
const maxSequences = 8

// areOf reports whether rows are those of samples.
func (r *Rendition) areOf(of *rows, samples []raw.Sample) bool {
	if of.n != len(samples) {
		return false
	}
	for i, block := range r.rows.blocks[of.from:][:len(samples)] {
		if samples[i].Labels != block {
			return false
		}
	}
	return true
}

// repeats reports whether two rows of devices have the same text in a version.
func (c *compat) repeats(dst *Rendition, of *rows, v Version) bool {
	c.begin(len(dst.blocks[v]))
	texts := dst.rows.texts[v][of.from:]
	for i, device := range dst.rows.devices[of.from:][:of.n] {
		if device >= 0 && !c.mark(texts[i]) {
			return true
		}
	}
	return false
}

// reset forgets the rows, and keeps their memory.
func (r *rowsRead) reset() {
	r.blocks, r.devices = r.blocks[:0], r.devices[:0]
	for v := range r.texts {
		r.texts[v] = r.texts[v][:0]
	}
}

// begin starts a pass over n texts, in which none is marked yet.
func (c *compat) begin(n int) {
	c.pass++
	if len(c.marks) < n {
		c.marks = append(c.marks, make([]uint64, n-len(c.marks))...)
	}
}

// mark marks a text, and reports whether the current pass had not marked it before.
func (c *compat) mark(text int32) bool {
	before := c.marks[text]
	c.marks[text] = c.pass
	return before != c.pass
}
