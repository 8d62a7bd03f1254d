package host

import (
	"regexp"
	"strings"
)

// endOf returns where the text from i on ends: at the first of the bytes in stop,
// or with the text.
func endOf(text string, i int, stop string) int {
	if n := strings.IndexAny(text[i:], stop); n >= 0 {
		return i + n
	}
	return len(text)
}

const (
	endOfArgument = gap
	endOfWord     = gap + " "
	// afterQuote is what may follow a quoted value in JSON, Python and shells. Other
	// text there belongs to the value, as in "a"b.
	afterQuote = gap + ` ,;:&|)}]"'`
)

// isDone tells whether a value was masked before, or cut off.
func isDone(value string) bool {
	value = strings.TrimFunc(value, func(r rune) bool { return r == '\\' || strings.ContainsRune(afterQuote, r) })
	return value == masked || value == cutMark
}

var openingQuote = regexp.MustCompile(`^\\*["']`)

// maskValue writes what stands for the value at text[from:], and returns where the
// text goes on behind it. A value in quotes, which may themselves be escaped, ends
// with them, another one at stop.
func maskValue(out *strings.Builder, text string, from int, stop string) int {
	if end := endOf(text, from, stop); isDone(text[from:end]) {
		out.WriteString(text[from:end])
		return end
	}
	argument := text[:endOf(text, from, endOfArgument)]
	quote := openingQuote.FindString(argument[from:])
	if quote == "" {
		end := endOf(text, from, stop)
		if end > from {
			out.WriteString(masked)
		}
		return end
	}
	out.WriteString(quote + masked)
	end := closing(argument, from+len(quote), quote)
	if end < 0 {
		return len(argument)
	}
	out.WriteString(quote)
	return endOf(text, end, afterQuote)
}

// closing returns where the text behind the closing quote begins, -1 if there is
// none. A quote behind a backslash more than the opening one has is none.
func closing(text string, from int, quote string) int {
	for {
		i := strings.Index(text[from:], quote)
		if i < 0 {
			return -1
		}
		at := from + i
		from = at + len(quote)
		if text[at-1] != '\\' {
			return from
		}
	}
}
