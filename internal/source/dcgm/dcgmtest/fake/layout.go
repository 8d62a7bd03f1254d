package fake

import (
	"fmt"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// padding is the number of blanks after the widest text of a column.
const padding = 2

// firstColumn returns the width of the entity column. Before 4.5 an id that
// fills it touches the next value.
func firstColumn(r dcgmtest.Release) int {
	switch {
	case r.Since("4.5.0"):
		return 14 + padding
	case r.Since("4.0.0"):
		return 11
	}
	return 10
}

// cell returns text padded to the column of f, and cut if it is too long.
func cell(f dcgmtest.Field, text string) string {
	width := f.Width + 6
	if len(text) > width {
		text = text[:width-3] + "..."
	}
	return fmt.Sprintf("%-*s", width+padding, text)
}

// header returns the two lines above the rows.
func header(r dcgmtest.Release, fields []dcgmtest.Field) string {
	var names, units strings.Builder
	fmt.Fprintf(&names, "%-*s", firstColumn(r), "#Entity")
	fmt.Fprintf(&units, "%-*s", firstColumn(r), "ID")
	for _, f := range fields {
		names.WriteString(cell(f, f.Column))
		units.WriteString(cell(f, f.Unit))
	}
	return names.String() + "\n" + units.String() + "\n"
}

// row returns the line of entity e in sample number tick, with its newline.
func row(s dcgmtest.Scenario, r dcgmtest.Release, e dcgmtest.Entity, fields []dcgmtest.Field, tick int) string {
	var line strings.Builder
	fmt.Fprintf(&line, "%-*s", firstColumn(r), e)
	for _, f := range fields {
		line.WriteString(cell(f, s.Cell(e, f, tick)))
	}
	line.WriteByte('\n')
	return line.String()
}
