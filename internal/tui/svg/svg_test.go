package svg

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	rows := parse("a\x1b[1;38;2;1;2;3mb\x1b[7mc\x1b[0m d\n\x1b[38;5;196me\x1b[90;48;5;232m▁\n", 24)
	want := [][]cell{
		{{style{}, "a"}, {style{ink: "#010203", bold: true}, "b"}, {style{ink: "#010203", bold: true, reverse: true}, "c"}, {style{}, " "}, {style{}, "d"}},
		{{style{ink: "#ff0000"}, "e"}, {style{ink: "#7f7f7f", paper: "#080808"}, "▁"}},
	}
	if len(rows) != len(want) {
		t.Fatalf("%d rows", len(rows))
	}
	for y := range want {
		if len(rows[y]) != len(want[y]) {
			t.Fatalf("row %d: %+v", y, rows[y])
		}
		for x := range want[y] {
			if rows[y][x] != want[y][x] {
				t.Errorf("cell %d of row %d is %+v, want %+v", x, y, rows[y][x], want[y][x])
			}
		}
	}
	for _, broken := range []string{"", "\x1b[", "\x1b[38;2;1m", "\x1b[38;5mx", "\x1b[999mx", "\xff"} {
		_ = parse(broken, 24) // must not panic
	}
}

// TestWide: a wide character takes two cells, and the text after it is where a terminal shows it.
func TestWide(t *testing.T) {
	picture := draw(parse("日本 x", 1), "#000000", "#ffffff")
	for _, want := range []string{`<text x="12.0" y="25.0" textLength="33.6" lengthAdjust="spacingAndGlyphs" fill="#ffffff">日本</text>`, `<text x="54.0" `, `viewBox="0 0 74 `} {
		if !bytes.Contains(picture, []byte(want)) {
			t.Errorf("no %s in\n%s", want, picture)
		}
	}
}

// TestDraw checks that words and blocks are at the places of their cells.
func TestDraw(t *testing.T) {
	picture := draw(parse("  ab <c>█▏▂\n\x1b[7mx\x1b[0m", 24), "#000000", "#ffffff")
	for _, want := range []string{
		`<text x="28.8" y="25.0" textLength="16.8" lengthAdjust="spacingAndGlyphs" fill="#ffffff">ab</text>`,
		`<text x="54.0" y="25.0" textLength="25.2" lengthAdjust="spacingAndGlyphs" fill="#ffffff">&lt;c&gt;</text>`,
		`<rect x="79.2" y="12.0" width="8.70" height="17.30" fill="#ffffff"/>`,
		`<rect x="87.6" y="12.0" width="1.35" height="17.30" fill="#ffffff"/>`,
		`<rect x="96.0" y="24.8" width="8.70" height="4.55" fill="#ffffff"/>`,
		`<rect x="12.0" y="29.0" width="8.4" height="17" fill="#ffffff"/>`,
		`<text x="12.0" y="42.0" textLength="8.4" lengthAdjust="spacingAndGlyphs" fill="#000000">x</text>`,
	} {
		if !bytes.Contains(picture, []byte(want)) {
			t.Errorf("no %s in\n%s", want, picture)
		}
	}
	decoder, texts := xml.NewDecoder(bytes.NewReader(picture)), 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "text" {
			texts++
		}
	}
	if texts != 3 || !strings.HasPrefix(string(picture), `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 116 58"`) {
		t.Errorf("%d texts in\n%s", texts, picture)
	}
}

// TestBlocksJoin checks that equal full-width blocks next to each other become one rectangle, and
// that others do not.
func TestBlocksJoin(t *testing.T) {
	picture := draw(parse("▇▇▇▅▅ ▇▏▏", 1), "#000000", "#ffffff")
	for _, want := range []string{
		`<rect x="12.0" y="14.1" width="25.50" height="15.18" fill="#ffffff"/>`,
		`<rect x="37.2" y="18.4" width="17.10" height="10.93" fill="#ffffff"/>`,
		`<rect x="62.4" y="14.1" width="8.70" height="15.18" fill="#ffffff"/>`,
		`<rect x="70.8" y="12.0" width="1.35" height="17.30" fill="#ffffff"/>`,
		`<rect x="79.2" y="12.0" width="1.35" height="17.30" fill="#ffffff"/>`,
	} {
		if !bytes.Contains(picture, []byte(want)) {
			t.Errorf("no %s in\n%s", want, picture)
		}
	}
	if n := bytes.Count(picture, []byte("<rect")); n != 6 { // one is the paper
		t.Errorf("%d rectangles:\n%s", n, picture)
	}
}
