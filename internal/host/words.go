package host

import (
	"bytes"
	"math"
)

var newline = []byte("\n")

// firstWord returns the first word of a line of /proc and what follows it.
func firstWord(line []byte) (word, rest []byte) {
	line = bytes.TrimLeft(line, " \t")
	if i := bytes.IndexAny(line, " \t"); i >= 0 {
		return line[:i], line[i:]
	}
	return line, nil
}

// parseCount reads digits.
func parseCount(word []byte) (n uint64, ok bool) {
	for _, c := range word {
		if c < '0' || c > '9' || n > (math.MaxUint64-9)/10 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, len(word) > 0
}
