package diag

import (
	"strings"
	"testing"
)

// TestShort: a long text is cut between characters, and fits.
func TestShort(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"", 0, ""},
		{"exactly", 7, "exactly"},
		{"too long", 7, "too…"},
		{"eight by", 7, "eigh…"},
		{strings.Repeat("é", 5), 10, "ééééé"},
		{strings.Repeat("é", 5), 9, "ééé…"},
		{strings.Repeat("é", 5), 8, "éé…"},
		{"👍👍", 7, "👍…"},
		{"👍👍", 6, "…"},
		{"\xbf\xbf\xbf\xbf\xbf", 4, "…"}, // no character begins
		{"abc", 2, "…"},                  // no room for a character
	} {
		if got := Short(tt.text, tt.most); got != tt.want {
			t.Errorf("%q in %d bytes is %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
	if got, want := Line(" \x1b[2Ja\nb\xff ", 99), "[2Ja b\uFFFD"; got != want {
		t.Errorf("a line is shown as %q, want %q", got, want)
	}
	if got, want := Line("\t12345678", 6), "123…"; got != want {
		t.Errorf("a long line is shown as %q, want %q", got, want)
	}
}
