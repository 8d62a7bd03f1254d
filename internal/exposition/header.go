package exposition

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// header reads the line of t that starts with #, from the byte after it.
func (e *Entry) header(t string, i int) {
	if e.End = NextLine(t, i); strings.IndexByte(t[i:e.End], 0) >= 0 {
		return // it may end textparse's reading
	}
	if e.Kind = Comment; i == len(t) || !isBlank(t[i]) {
		return
	}
	word, rest := "", t[SkipBlanks(t, i):e.End]
	if n := strings.IndexAny(rest, " \t"); n >= 0 {
		word = rest[:n]
	}
	if word != "HELP" && word != "TYPE" {
		return
	}
	e.Kind = Malformed
	if !e.namedHeader(t, SkipBlanks(t, e.End-len(rest)+len(word))) {
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
		if end = closeQuote(t, i); end < 0 {
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
	if text := strings.TrimSuffix(t[end:e.End], "\n"); SkipBlanks(text, 0) < len(text) {
		e.Text = text[1:]
	}
	return true
}
