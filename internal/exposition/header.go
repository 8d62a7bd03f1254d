package exposition

import (
	"strings"
	"unicode/utf8"
)

// header reads the line of t that starts with #, from the byte after it. If
// textparse rejects the line, or stops there permanently, e stays Malformed.
func (e *Entry) header(t string, i int) {
	if i == len(t) || !isBlank(t[i]) {
		// Without a blank after the #, a NUL ends textparse's reading.
		if e.End = NextLine(t, i); strings.IndexByte(t[i:e.End], 0) < 0 {
			e.Kind = Comment
		}
		return
	}
	i = SkipBlanks(t, i)
	if i < len(t) && t[i] == 0 {
		return
	}
	if end := keyword(t, i, "HELP"); end > 0 {
		if e.namedHeader(t, end) && utf8.ValidString(e.Text) {
			e.Kind = Help
		}
		return
	}
	if end := keyword(t, i, "TYPE"); end > 0 {
		if e.namedHeader(t, end) && isType(e.Text) {
			e.Kind = Type
		}
		return
	}
	e.Kind, e.End = Comment, NextLine(t, i)
}

// keyword returns the index after word and the blanks that must follow it, or
// -1. NUL bytes among them are ignored.
func keyword(t string, i int, word string) int {
	for k := range len(word) {
		if i == len(t) || t[i] != word[k] {
			return -1
		}
		i = skipNULs(t, i+1)
	}
	if i == len(t) || !isBlank(t[i]) {
		return -1
	}
	for i < len(t) && (isBlank(t[i]) || t[i] == 0) {
		i++
	}
	return i
}

// namedHeader reads the name and text of a header of t from i on. It reports
// whether the name is well formed.
func (e *Entry) namedHeader(t string, i int) bool {
	if i == len(t) {
		return false
	}
	var end int
	if e.Quoted = t[i] == '"'; e.Quoted {
		if end = closeName(t, i); end < 0 {
			return false
		}
		e.Name = t[i+1 : end-1]
	} else {
		if end = NameEnd(t, i); end == i {
			return false
		}
		e.Name = t[i:end]
	}
	if end < len(t) && t[end] == 0 {
		return false
	}
	e.End = NextLine(t, end)
	e.Text = headerText(strings.TrimSuffix(t[end:e.End], "\n"))
	return true
}

// headerText returns the text of a header from what follows its name: textparse
// drops the first byte, whatever it is, and a text of nothing but blanks, even
// with NULs among them.
func headerText(rest string) string {
	if rest == "" {
		return ""
	}
	if isBlank(rest[0]) {
		i := 1
		for i < len(rest) && (isBlank(rest[i]) || rest[i] == 0) {
			i++
		}
		if i == len(rest) {
			return ""
		}
	}
	return rest[1:]
}

// isType reports whether text is a metric type of the text format.
func isType(text string) bool {
	switch text {
	case "gauge", "counter", "untyped", "histogram", "summary":
		return true
	}
	return false
}
