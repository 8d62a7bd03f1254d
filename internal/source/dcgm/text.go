package dcgm

import (
	"bytes"
	"iter"
	"strconv"
	"strings"
	"unicode"
)

// lines yields the lines of an output, without blanks at either end.
func lines(output []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range bytes.Lines(output) {
			if !yield(strings.TrimSpace(string(line))) {
				return
			}
		}
	}
}

// row returns the two cells of a line of a dcgmi table, `| 0 | Name: x |`. The last bar may be missing. Rules and other
// text have empty cells.
func row(line string) (left, right string) {
	rest, ok := strings.CutPrefix(line, "|")
	if !ok {
		return "", ""
	}
	left, right, _ = strings.Cut(strings.TrimSuffix(rest, "|"), "|")
	return strings.TrimSpace(left), strings.TrimSpace(right)
}

// maxText is more than any name has, in bytes.
const maxText = 256

// known returns a value of a command, fit for labels and terminals, or "" if there is none or it is too long.
func known(s string) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "")))
	if len(s) > maxText || s == "N/A" || strings.HasPrefix(s, "<<<") || strings.HasPrefix(s, "[") {
		return ""
	}
	return s
}

// id reads a number as ids are written, without sign or leading zeros, up to 2^31-1; else it returns Unknown.
func id(s string) int {
	n, _ := strconv.ParseInt(s, 10, 32) // what it cannot read is written otherwise
	if n < 0 || strconv.FormatInt(n, 10) != s {
		return Unknown
	}
	return int(n)
}

// between returns the text in s between open and end, "" if either is missing.
func between(s, open, end string) string {
	_, rest, _ := strings.Cut(s, open)
	text, _, ok := strings.Cut(rest, end)
	if !ok {
		return ""
	}
	return text
}

// gpuUUID returns s if it is the UUID of a board, else "".
func gpuUUID(s string) string { return uuid(s, "GPU-") }

func uuid(s, prefix string) string {
	s = known(s)
	if !strings.HasPrefix(s, prefix) || len(s) == len(prefix) || strings.ContainsAny(s, " ,\"") {
		return ""
	}
	return s
}
