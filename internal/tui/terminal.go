package tui

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// answerTime is how long a terminal may take to report its background. If the program quits
// earlier, the shell reads the report as input.
const answerTime = 300 * time.Millisecond

// terminal is a Tty that picks the terminal's report of its background out of what is typed.
type terminal struct {
	tcell.Tty
	answers chan<- bool // whether the background is light
}

// The query of the background colour (xterm's OSC 11), and what its answer begins with.
const askBackground, backgroundIs = "\x1b]11;?\x1b\\", "\x1b]11;rgb:"

// Read implements io.Reader. An answer in several pieces is no loss: tcell drops it.
func (t *terminal) Read(p []byte) (int, error) {
	n, err := t.Tty.Read(p)
	before, rest, found := bytes.Cut(p[:n], []byte(backgroundIs))
	end := bytes.IndexAny(rest, "\x07\x1b")
	if !found || end < 0 {
		return n, err
	}
	light := isLight(string(rest[:end]))
	rest = bytes.TrimPrefix(bytes.TrimPrefix(rest[end:], []byte("\x1b\\")), []byte("\x07"))
	n = len(before) + copy(p[len(before):], rest)
	select {
	case t.answers <- light:
	default:
	}
	return n, err
}

// isLight reports whether a colour in xterm's form, such as ffff/ffff/dddd, is nearer to white
// than to black.
func isLight(color string) bool {
	sum := 0.0
	for channel := range strings.SplitSeq(color, "/") {
		v, _ := strconv.ParseUint(channel, 16, 32)
		sum += float64(v) / float64(uint64(1)<<(4*min(len(channel), 8))-1)
	}
	return sum > 1.5
}

// openScreen enters the alternate screen. answers gets whether the background is light if the
// terminal says so; it is nil if it was not asked.
func openScreen() (screen tcell.Screen, answers <-chan bool, err error) {
	device, err := tcell.NewDevTty()
	if err != nil {
		return nil, nil, err
	}
	asked := make(chan bool, 1)
	screen, err = tcell.NewTerminfoScreenFromTty(&terminal{device, asked})
	if err != nil {
		return nil, nil, err
	}
	if err := screen.Init(); err != nil {
		return nil, nil, err
	}
	screen.SetTitle("kpulse")
	name := os.Getenv("TERM")
	if isConsole(name) {
		screen = console{screen}
	}
	if strings.HasPrefix(name, "linux") { // the console would print the question
		return screen, nil, nil
	}
	_, err = device.Write([]byte(askBackground))
	return screen, asked, err
}

// isConsole reports whether a terminal, as TERM names it, may be a console, or run on one.
func isConsole(term string) bool {
	return term == "screen" || strings.HasPrefix(term, "screen.linux") || strings.HasPrefix(term, "linux") || strings.HasPrefix(term, "vt")
}

// console is a screen whose font may have no more than ASCII, whatever the locale says: those of Linux' console have 256 or 512 glyphs,
// without braille and eighths of a cell.
type console struct{ tcell.Screen }

// CharacterSet implements tcell.Screen.
func (console) CharacterSet() string { return "US-ASCII" }

// depthOf returns how many colours to draw with on a screen.
func depthOf(screen tcell.Screen) view.Depth {
	least := [...]int{view.NoColors: 0, view.Colors8: 8, view.Colors16: 16, view.Colors256: 256, view.TrueColor: 257}
	depth := view.TrueColor
	for screen.Colors() < least[depth] {
		depth--
	}
	return depth
}
