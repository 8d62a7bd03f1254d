package dcgm

import (
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	var text strings.Builder
	var tl tail
	for i := range 3000 {
		chunk := strings.Repeat(string(rune('a'+i%26)), i%37)
		text.WriteString(chunk)
		if n, err := tl.Write([]byte(chunk)); n != len(chunk) || err != nil {
			t.Fatal(n, err)
		}
		whole := text.String()
		if want := whole[max(0, len(whole)-tailSize):]; tl.String() != want {
			t.Fatalf("after %d bytes the tail is wrong", len(whole))
		}
	}
	tl.Write([]byte(strings.Repeat("x", 3*tailSize) + "END"))
	if got := tl.String(); len(got) != tailSize || !strings.HasSuffix(got, "xEND") {
		t.Errorf("a long write left %d bytes", len(got))
	}
}

func TestComplaint(t *testing.T) {
	for text, want := range map[string]string{
		"":           "",
		" \n\n":      "",
		"one\ntwo\n": "two",
		"warming up\nError: no connection\nError: second\ngoodbye\n": "Error: no connection",
		"a\x1b[31mb\tc\xff":      "a [31mb c\uFFFD",
		strings.Repeat("é", 200): strings.Repeat("é", 118) + "…",
	} {
		if got := errorLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
