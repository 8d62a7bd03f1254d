package translate

import (
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// quantity is one reading of the exporter in all dialects: the rows that give it under various
// names and in various units. Rows of one canonical.Field are different quantities if one is a
// substitute for the other.
type quantity struct {
	field  canonical.Field
	worded [numVersions]wording
}

// wording is a version's name and unit for a quantity. The name is "" if it has none.
type wording struct {
	name string
	unit Unit
}

// Prefixes of the vendor's names: of 1.x, and of all later dialects.
const (
	oldPrefix = "dcgm_"
	newPrefix = "DCGM_"
)

// newQuantities groups the rows of the dialect table by quantity. ofRow has the index of
// each row's quantity.
//
// The order of a row's names, and of a field's rows, shows the versions: V1 has the
// lower-case name, V2 and V48 the first upper-case one, and V49 the last of a
// row that was only renamed, or the first of the row with the base unit. The names in
// versions are exceptions.
func newQuantities() (list []quantity, ofRow []int) {
	at := map[canonical.Field]int{}
	for i := range dialect {
		row := &dialect[i]
		n, known := at[row.Field]
		// A substitute is another quantity, except for the family whose unit varies.
		standsIn := row.Fallback && row.Unit != percentOrRatio
		if !known || standsIn {
			n = len(list)
			list = append(list, quantity{field: row.Field})
		}
		if !standsIn {
			at[row.Field] = n
		}
		list[n].add(row)
		ofRow = append(ofRow, n)
	}
	for v := range numVersions {
		for field, name := range versions[v].names {
			list[at[field]].worded[v].name = name
		}
	}
	return list, ofRow
}

// add adds the wordings of a row.
func (q *quantity) add(row *Row) {
	var modern []string
	for _, name := range row.Names {
		switch {
		case strings.HasPrefix(name, oldPrefix):
			q.worded[V1] = wording{name, row.Unit}
		case strings.HasPrefix(name, newPrefix):
			modern = append(modern, name)
		}
	}
	if len(modern) == 0 {
		return
	}
	if q.worded[V48].name == "" {
		q.worded[V2], q.worded[V48] = wording{modern[0], row.Unit}, wording{modern[0], row.Unit}
		q.worded[V49] = wording{modern[len(modern)-1], row.Unit}
		return
	}
	q.worded[V49] = wording{modern[0], row.Unit}
	if row.Unit == percentOrRatio {
		q.worded[V49].unit = Ratio
	}
}

// NamesIn returns the names, sorted, under which Render would give the readings of
// families in v, except those that are already among the families.
func NamesIn(v Version, families []string) (names []string) {
	quantities, ofRow := newQuantities()
	for _, family := range families {
		row := slices.IndexFunc(dialect, func(r Row) bool { return slices.Contains(r.Names, family) })
		if row < 0 {
			continue
		}
		name := quantities[ofRow[row]].worded[v].name
		if name != "" && !slices.Contains(families, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
