package exporter

import (
	"strings"
	"testing"
)

func TestFirstLine(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{" \n\t\r\n", ""},
		{"\n\n  internal server error \nmore", "internal server error"},
		{"a\x00b\x1b[31m\xffc", "a b [31m�c"},
		{strings.Repeat("x", 101), strings.Repeat("x", 97) + "…"},
	} {
		if got := firstLine([]byte(tt.in)); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestMebibytes(t *testing.T) {
	for n, want := range map[int64]string{64 << 20: "64MiB", 1536: "1536B", 4096: "4KiB", 1 << 30: "1024MiB", 0: "0B"} {
		if got := mebibytes(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
