package tui

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// TestCanvasWritesOnTheAlternateScreenOnly checks that frames are written only between the
// sequences with which bubbletea enters and leaves the alternate screen, and in full after
// each write of bubbletea.
func TestCanvasWritesOnTheAlternateScreenOnly(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	c := &canvas{terminal: out} // without its goroutine, so that only this test writes
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
	same, other := *p, *p
	other[0] = "\x1b[0;1m"
	for _, look := range []*screen.Palette{p, &same} {
		c.show(&g, look)
		if got := c.appendFrame(nil); len(got) > 0 {
			t.Errorf("the same frame again is %q", got)
		}
	}
	c.show(&g, &other)
	if got := c.appendFrame(nil); !strings.Contains(string(got), "\x1b[0;1m7") {
		t.Errorf("the same frame in other colours is %q", got)
	}
}

// BenchmarkFrame adds a reading of 16 GPUs to the history, draws it on 160 × 45 cells and
// encodes the difference for the terminal.
func BenchmarkFrame(b *testing.B) {
	c := &clock{start}
	m := newModel([]*client.Node{{URL: "u", Name: "dgx-1"}}, c.now)
	m.canvas.on = true
	m.Update(sizeMsg{160, 45})
	var sent []byte
	frames, bytes := 0, 0
	for b.Loop() {
		c.at = c.at.Add(500 * time.Millisecond)
		n := &client.Node{URL: "u", Name: "dgx-1", Up: true, At: c.at, FetchedAt: c.at, Period: 500 * time.Millisecond}
		for i := range 16 {
			g := gpu(strconv.Itoa(i), "")
			g.Key.Node, g.RealUtilization = "u", 0.5+0.4*math.Sin(float64(frames)/9+float64(i))
			for f := range canonical.NumFields {
				g.Values[f] = g.RealUtilization
			}
			n.GPUs = append(n.GPUs, g)
		}
		m.Update(nodeMsg{0, n})
		m.View()
		sent = m.canvas.appendFrame(sent[:0])
		frames, bytes = frames+1, bytes+len(sent)
	}
	b.ReportMetric(float64(bytes)/float64(frames), "bytes/frame")
	b.ReportAllocs()
}
