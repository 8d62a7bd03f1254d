package dmon

import (
	"bytes"
	"testing"
)

func TestIsAbsent(t *testing.T) {
	for cell, want := range map[string]bool{
		"N/A": true, "NAN": true, "nan": true, "-nan": true, "INF": true, "inf": true, "-INF": true,
		"": false, "-": false, "n/a": false, "--INF": false, ".INF": false, "-N/A": false, "INFO": false, "0": false, "x": false,
	} {
		if isAbsent([]byte(cell)) != want {
			t.Errorf("%q is absent: %t", cell, !want)
		}
	}
}

func TestIsName(t *testing.T) {
	for name, want := range map[string]bool{
		"SMACT": true, "A": true, "a": true, "Z": true, "z": true, "FB_2": true, "_": true, "0": true, "N9": true,
		"": false, "VERYLONGN...": false, "A-B": false, "A B": false, "@": false, "[": false, "`": false, "{": false, "/": false, ":": false, "?": false, "É": false,
	} {
		if isName([]byte(name)) != want {
			t.Errorf("%q is a name: %t", name, !want)
		}
	}
}

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
