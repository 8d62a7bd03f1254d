package dmon

import (
	"bytes"
	"testing"
)

// TestBlankUntil puts one character at each place, including the first and last of a word of
// eight blanks.
func TestBlankUntil(t *testing.T) {
	const most = 40
	for at := range 10 {
		for stop := at; stop <= most; stop++ {
			for x := range most {
				text := bytes.Repeat([]byte{' '}, most)
				text[x] = 'x'
				if got, want := blankUntil(text, at, stop), x < at || x >= stop; got != want {
					t.Fatalf("from %d to %d, with a character at %d: %t", at, stop, x, got)
				}
			}
		}
	}
}
