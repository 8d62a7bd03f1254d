package translate

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// Rendition is one reading in the words of other versions: the families of
// Options.Compat that its source does not give itself. A Translator fills it and reuses
// its memory; from then on until it is filled again, any goroutine may read it. It
// implements canonical.Families.
type Rendition struct {
	families []renderedFamily // of the Translator, never written to
	blocks   [][]string       // of each version, the text between name and value by id
	series   []renderedSeries
	runs     []run  // of series, family by family
	ends     []int  // of each family, in runs
	given    []bool // of each family: the source has samples of it
	begun    []bool // of each family: its text has lines of it
}

// renderedFamily is a family of one version.
type renderedFamily struct {
	name, header string
	version      Version
	// rule turns the family's numbers into SI, and write back.
	rule *rule
}

// run is series of a family that stand one behind the other in Rendition.series.
type run struct{ family, from, to int }

// renderedSeries is a series and its value.
type renderedSeries struct {
	block  int32 // in the blocks of the family's version
	device int32 // in the Topology
	value  float64
}

// Len returns how many families there can be, empty ones included. It depends on the
// program alone: the same number is the same family in all Renditions.
func (r *Rendition) Len() int { return len(r.families) }

// Begun reports whether the text of the source itself has lines of a family.
func (r *Rendition) Begun(family int) bool { return r.begun[family] }

// AppendFamily appends the series of a family, behind its HELP and TYPE lines if header
// is set. Of devices that are not shown there are none, and without a series nothing is
// appended. It may be called from any goroutine.
func (r *Rendition) AppendFamily(dst []byte, family int, header bool, shown func(device int) bool) []byte {
	f := &r.families[family]
	blocks := r.blocks[f.version]
	for _, run := range r.runsOf(family) {
		for _, s := range r.series[run.from:run.to] {
			if !shown(int(s.device)) {
				continue
			}
			if header {
				dst, header = append(dst, f.header...), false
			}
			dst = append(append(dst, f.name...), blocks[s.block]...)
			dst = append(exposition.AppendFloat(dst, s.value), '\n')
		}
	}
	return dst
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
	r.series = r.series[:0]
	r.ends = slices.Grow(r.ends[:0], n)[:n]
	r.given, r.begun = slices.Grow(r.given[:0], n)[:n], slices.Grow(r.begun[:0], n)[:n]
	clear(r.given)
	clear(r.begun)
	r.blocks = r.blocks[:0]
	for v := range numVersions {
		r.blocks = append(r.blocks, c.blocks[v])
	}
}
