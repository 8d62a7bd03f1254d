package translate

import "slices"

// Native is how `dcgmi dmon` prints the reading of an exporter's family.
type Native struct {
	// Column is the heading of its numbers, "" if dmon does not print it.
	Column string
	// A number n of the column is n × Times / Per of the family.
	Times, Per float64
	// Ambiguous is set if there is no column because the family's unit is unknown.
	Ambiguous bool
}

// NativeOf returns how dmon prints a family, in any unit. If the name does not imply the
// family's unit, its HELP text and the names of the other families may show it.
func NativeOf(family, help string, beside []string) Native {
	row := firstRow(func(r *Row) bool { return slices.Contains(r.Names, family) })
	if row == nil {
		return Native{}
	}
	if row.Column != "" {
		return Native{Column: row.Column, Times: 1, Per: 1}
	}
	unit := row.Unit
	if unit == percentOrRatio {
		unit = unitEvidence{help: unitOfHelp(help), siblings: slices.ContainsFunc(beside, isSibling)}.unit()
	}
	of := firstRow(func(r *Row) bool { return r.Field == row.Field && r.Column != "" })
	if of == nil || unit == "" {
		return Native{Ambiguous: unit == ""}
	}
	from, to := units[of.Unit], units[unit]
	return Native{Column: of.Column, Times: from.times * to.per, Per: from.per * to.times}
}

// firstRow returns the first row of the dialect that satisfies is, or nil.
func firstRow(is func(*Row) bool) *Row {
	for i := range dialect {
		if is(&dialect[i]) {
			return &dialect[i]
		}
	}
	return nil
}
