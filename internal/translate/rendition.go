package translate

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// Rendition is one reading under the names of other versions: the families of
// Options.Compat that its source does not give itself. A Translator fills it and reuses
// its memory; until it is filled again, any goroutine may read it. It
// implements canonical.Families.
type Rendition struct {
	families []renderedFamily // the Translator's, never written to
	blocks   [][]string       // by version and id: the text between name and value
	rows     rowsRead
	values   []float64 // in the units of their families, NaN for none
	runs     []run     // of series, family by family
	ends     []int     // by family: where its runs end
	given    []bool    // by family: the source has samples of it
	begun    []bool    // by family: the source's text has lines of it
}

// renderedFamily is a family of one version.
type renderedFamily struct {
	name, header string
	version      Version
	// rule converts the family's numbers to SI and back.
	rule *rule
}

// has reports whether a number is written as part of the family.
func (f *renderedFamily) has(v float64) bool {
	return canonical.Given(v) && !f.rule.blanks.in(v)
}

// run is consecutive series of a family: rows of the source, and the index in
// Rendition.values of their first value.
type run struct {
	family int
	rows   rows
	values int
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
	f := &r.families[family]
	name, blocks := f.name, r.blocks[f.version]
	for _, run := range r.runsOf(family) {
		texts, devices := r.rows.texts[f.version][run.rows.from:][:run.rows.n], r.rows.devices[run.rows.from:][:run.rows.n]
		for i, v := range r.values[run.values:][:run.rows.n] {
			if !isOrdinary(v) && !f.has(v) || !shown(int(devices[i])) {
				continue
			}
			if header {
				dst, header = append(dst, f.header...), false
			}
			dst = append(append(dst, name...), blocks[texts[i]]...)
			dst = append(exposition.AppendFloat(dst, v), '\n')
		}
	}
	return dst
}

// serves reports whether a family has a series.
func (r *Rendition) serves(family int) bool {
	for _, run := range r.runsOf(family) {
		if slices.ContainsFunc(r.values[run.values:][:run.rows.n], r.families[family].has) {
			return true
		}
	}
	return false
}

// runsOf returns the runs of a family.
func (r *Rendition) runsOf(family int) []run {
	from := 0
	if family > 0 {
		from = r.ends[family-1]
	}
	return r.runs[from:r.ends[family]]
}

// reset empties r for the families of c.
func (r *Rendition) reset(c *compat) {
	n := len(c.rendered)
	r.families = c.rendered
	r.rows.reset()
	r.values = r.values[:0]
	r.ends = slices.Grow(r.ends[:0], n)[:n]
	r.given, r.begun = slices.Grow(r.given[:0], n)[:n], slices.Grow(r.begun[:0], n)[:n]
	clear(r.given)
	clear(r.begun)
	r.blocks = r.blocks[:0]
	for v := range numVersions {
		r.blocks = append(r.blocks, c.blocks[v])
	}
}
