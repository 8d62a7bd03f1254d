package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// widest is how much of a line is shown, in characters; of a longer one what is
// around the place.
const widest = 100

// place returns where the problem starts in the expression: its line, and the
// character in that line, both from 1.
func (p Problem) place() (line, column int) {
	before := p.Expr[:min(p.Start, len(p.Expr))]
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}

// excerpt returns the line of the expression that has the problem, and below it
// marks as far as the problem goes in that line: ^~~.
func (p Problem) excerpt() string {
	start := min(p.Start, len(p.Expr))
	from := strings.LastIndexByte(p.Expr[:start], '\n') + 1
	to := len(p.Expr)
	if n := strings.IndexByte(p.Expr[start:], '\n'); n >= 0 {
		to = start + n
	}
	before := []rune(strings.Map(printable, p.Expr[from:start]))
	wrong := utf8.RuneCountInString(p.Expr[start:max(start, min(p.End, to))])
	line := []rune(strings.Map(printable, p.Expr[from:to]))
	first := max(0, len(before)-widest/2)
	shown := line[first:min(len(line), first+widest)]
	marks := min(max(wrong-1, 0), max(0, len(shown)-(len(before)-first)-1))
	return "    " + string(shown) + "\n    " + strings.Repeat(" ", len(before)-first) + "^" + strings.Repeat("~", marks)
}

// printable keeps the marks under what they mark.
func printable(r rune) rune {
	if unicode.IsGraphic(r) {
		return r
	}
	return ' '
}
