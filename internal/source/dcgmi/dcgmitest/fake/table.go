package fake

import (
	"fmt"
	"strings"
)

// rule returns a line of c as wide as the columns.
func rule(c string, widths ...int) string {
	line := "+"
	for _, width := range widths {
		line += strings.Repeat(c, width) + "+"
	}
	return line + "\n"
}

// tableRow returns one line of cells; a column's text is two narrower than it.
func tableRow(cells []string, widths ...int) string {
	line := "|"
	for i, width := range widths {
		line += fmt.Sprintf(" %-*s |", width-2, cells[i])
	}
	return line + "\n"
}

// table returns a table with the headings and sections, each of which is a list
// of rows. Sections are parted by a rule only where separate says so.
func table(headings []string, sections [][][]string, separate bool, widths ...int) string {
	text := rule("-", widths...) + tableRow(headings, widths...) + rule("-", widths...)
	for i, section := range sections {
		if i > 0 && separate {
			text += rule("-", widths...)
		}
		for _, cells := range section {
			text += tableRow(cells, widths...)
		}
	}
	return text + rule("-", widths...)
}
