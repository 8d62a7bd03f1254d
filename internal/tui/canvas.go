package tui

import (
	"bytes"
	"os"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// canvas writes frames to the terminal, as their differences from the last. bubbletea would
// take a frame as text, parse it into its own cells and compare those, which took three
// quarters of the time of a frame. bubbletea still sets the modes of the terminal through
// canvas. canvas hides the file: with a file, bubbletea would keep three frames of the
// terminal's size. sendSizes tells the model that size instead.
type canvas struct {
	terminal *os.File

	fresh chan struct{} // there is a frame to write

	mu      sync.Mutex // guards the frame to show
	next    screen.Grid
	palette *screen.Palette
	synced  bool // the terminal can show a frame at once

	out    sync.Mutex // guards the terminal
	on     bool       // bubbletea has entered the alternate screen, where frames go
	shown  screen.Grid
	look   *screen.Palette // of shown
	buffer []byte
}

// newCanvas returns the canvas of a terminal. end ends it.
func newCanvas(out *os.File) *canvas {
	c := &canvas{terminal: out, fresh: make(chan struct{}, 1)}
	go c.run()
	return c
}

// show makes g the frame to show. It does not wait: a slow terminal skips frames.
func (c *canvas) show(g *screen.Grid, p *screen.Palette) {
	c.mu.Lock()
	c.next.Copy(g)
	c.palette = p
	c.mu.Unlock()
	select {
	case c.fresh <- struct{}{}:
	default:
	}
}

// synchronize makes the terminal show each frame at once. Call it if the terminal can.
func (c *canvas) synchronize() {
	c.mu.Lock()
	c.synced = true
	c.mu.Unlock()
}

// end ends the canvas; show must not be called after it.
func (c *canvas) end() { close(c.fresh) }

// run writes frames as they come, at most maxFPS a second.
func (c *canvas) run() {
	for range c.fresh {
		c.out.Lock()
		if c.buffer = c.appendFrame(c.buffer[:0]); len(c.buffer) > 0 {
			_, _ = c.terminal.Write(c.buffer) // a terminal that is gone ends bubbletea, which reads it
		}
		c.out.Unlock()
		time.Sleep(time.Second / maxFPS)
	}
}

// Write writes bubbletea's control sequences, and then the whole frame, which they may have erased.
func (c *canvas) Write(p []byte) (int, error) {
	c.out.Lock()
	defer c.out.Unlock()
	if enters, leaves := bytes.LastIndex(p, []byte(ansi.SetModeAltScreenSaveCursor)), bytes.LastIndex(p, []byte(ansi.ResetModeAltScreenSaveCursor)); enters != leaves {
		c.on = enters > leaves
	}
	c.shown.Reset(0, 0, 0)
	c.buffer = c.appendFrame(append(c.buffer[:0], p...))
	n, err := c.terminal.Write(c.buffer)
	return min(n, len(p)), err
}

// appendFrame appends the bytes that make the terminal show the next frame.
func (c *canvas) appendFrame(dst []byte) []byte {
	if !c.on {
		return dst
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.palette == nil {
		return dst
	}
	if c.look != c.palette { // most are equal: the terminal confirms what was assumed
		if c.look == nil || *c.look != *c.palette {
			c.shown.Reset(0, 0, 0)
		}
		c.look = c.palette
	}
	begun := len(dst)
	if c.synced {
		dst = append(dst, ansi.SetModeSynchronizedOutput...)
	}
	before := len(dst)
	dst = c.next.AppendDiff(dst, &c.shown, c.palette)
	if len(dst) == before {
		return dst[:begun]
	}
	c.shown.Copy(&c.next)
	if c.synced {
		dst = append(dst, ansi.ResetModeSynchronizedOutput...)
	}
	return dst
}
