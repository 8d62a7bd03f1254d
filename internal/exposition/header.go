package exposition

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// header reads the line of t that starts with #, from the byte after it.
func (e *Entry) header(t string, i int) {
	e.End = NextLine(t, i)
	comment := i == len(t) || !isBlank(t[i])
	rest := t[SkipBlanks(t, i):e.End]
	if comment && strings.IndexByte(rest, 0) >= 0 || strings.HasPrefix(rest, "\x00") {
		return // textparse reads nothing after it
	}
	n := strings.IndexAny(rest, " \t")
	word := strings.ReplaceAll(rest[:max(n, 0)], "\x00", "") // which textparse skips
	if comment || word != "HELP" && word != "TYPE" {
		e.Kind = Comment
		return
	}
	if !e.namedHeader(t, e.End-len(strings.TrimLeft(rest[n:], blanksOrNULs))) {
		return
	}
	if word == "HELP" && utf8.ValidString(e.Text) {
		e.Kind = Help
	}
	if word == "TYPE" && slices.Contains(types, e.Text) {
		e.Kind = Type
	}
}

// types are the metric types of the text format.
var types = []string{"gauge", "counter", "untyped", "histogram", "summary"}

// namedHeader reads the name and text of a header of t from i on. It reports
// whether the name is well formed.
func (e *Entry) namedHeader(t string, i int) bool {
	if i == len(t) {
		return false
	}
	var end int
	if e.Quoted = t[i] == '"'; e.Quoted {
		if end = closeQuote(t, i, false); end < 0 {
			return false
		}
		e.Name = t[i+1 : end-1]
	} else {
		if end = NameEnd(t, i); end == i {
			return false
		}
		e.Name = t[i:end]
	}
	// textparse drops the first byte of the text, whatever it is, and a text of nothing but blanks.
	e.End = NextLine(t, end)
	if text := strings.TrimSuffix(t[end:e.End], "\n"); text != "" && (!isBlank(text[0]) || strings.Trim(text, blanksOrNULs) != "") {
		e.Text = text[1:]
	}
	return end == len(t) || t[end] != 0
}
