package tui

import (
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// TestCanvasWritesOnTheAlternateScreenOnly holds that frames are written between the
// sequences with which bubbletea takes the screen and gives it back, and whole after each
// thing that it writes.
func TestCanvasWritesOnTheAlternateScreenOnly(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	c := &canvas{File: out} // without its goroutine: what is written is what this test has written
	var g screen.Grid
	p := new(screen.Palette)
	frame := func(text string) {
		g.Reset(6, 1, screen.Braille)
		g.All().Text(0, 0, 6, text, 0)
		c.show(&g, p)
	}
	b := make([]byte, 1<<10)
	for _, step := range []struct {
		frame, wrote string
		want         string
	}{
		{"early", "modes", "modes"},
		{"first", ansi.SetModeAltScreenSaveCursor, ansi.SetModeAltScreenSaveCursor + "first \x1b[H"},
		{"second", "title", "titlesecond\x1b[H"},
		{"second", "erases", "erasessecond\x1b[H"},
		{"last", ansi.ResetModeAltScreenSaveCursor, ansi.ResetModeAltScreenSaveCursor},
		{"late", "shell", "shell"},
		{"resumed", ansi.ResetModeAltScreenSaveCursor + ansi.SetModeAltScreenSaveCursor, ansi.ResetModeAltScreenSaveCursor + ansi.SetModeAltScreenSaveCursor + "resum…\x1b[H"},
	} {
		frame(step.frame)
		if n, err := c.Write([]byte(step.wrote)); n != len(step.wrote) || err != nil {
			t.Fatalf("%d bytes of %q are written: %v", n, step.wrote, err)
		}
		n, err := in.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		got := string(b[:n])
		got = strings.NewReplacer("\x1b[0m", "", "\x1b[1;1H", "").Replace(got)
		if got != step.want {
			t.Errorf("after %q: got %q, want %q", step.frame, got, step.want)
		}
	}
	frame("7")
	c.synchronize()
	if got := string(c.appendFrame(nil)); !strings.HasPrefix(got, ansi.SetModeSynchronizedOutput) || !strings.HasSuffix(got, ansi.ResetModeSynchronizedOutput) {
		t.Errorf("a frame that is to be shown at once is %q", got)
	}
	if got := c.appendFrame(nil); len(got) > 0 {
		t.Errorf("the same frame again is %q", got)
	}
}
