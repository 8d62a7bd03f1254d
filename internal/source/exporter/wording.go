package exporter

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// quoted is how many characters of an upstream's text are shown.
const quoted = 100

// firstLine returns the first line of text that is not blank, at most 100
// characters of it, with a dot for each one that does not print.
func firstLine(text []byte) string {
	text = text[:min(len(text), errorBody)]
	text = bytes.TrimSpace(text)
	var line strings.Builder
	for n := 0; len(text) > 0 && text[0] != '\n' && text[0] != '\r'; n++ {
		if n == quoted {
			line.WriteString("…")
			break
		}
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = '.'
		}
		line.WriteRune(r)
		text = text[size:]
	}
	return strings.TrimRight(line.String(), " ")
}

// mebibytes writes n in the largest unit that divides it, as --source.max-body
// reads it.
func mebibytes(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return fmt.Sprintf("%dB", n)
}
