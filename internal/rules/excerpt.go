package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// widest is how much of a line is shown, in characters; of a longer one what is
// around the place.
const widest = 100

// placeIn returns where byte at stands in an expression: its line, and the character
// in that line, both from 1.
func placeIn(expr string, at int) (line, column int) {
	before := expr[:min(at, len(expr))]
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}

// excerpt returns the line of an expression in which a part of it begins, and below
// it marks as far as the part goes in that line: ^~~.
func excerpt(expr string, start, end int) string {
	start = min(start, len(expr))
	from := strings.LastIndexByte(expr[:start], '\n') + 1
	to := len(expr)
	if n := strings.IndexByte(expr[start:], '\n'); n >= 0 {
		to = start + n
	}
	before := []rune(strings.Map(printable, expr[from:start]))
	wrong := utf8.RuneCountInString(expr[start:max(start, min(end, to))])
	line := []rune(strings.Map(printable, expr[from:to]))
	first := max(0, len(before)-widest/2)
	shown := line[first:min(len(line), first+widest)]
	marks := min(max(wrong-1, 0), max(0, len(shown)-(len(before)-first)-1))
	return string(shown) + "\n" + strings.Repeat(" ", len(before)-first) + "^" + strings.Repeat("~", marks)
}

// printable keeps the marks under what they mark.
func printable(r rune) rune {
	if unicode.IsGraphic(r) {
		return r
	}
	return ' '
}
