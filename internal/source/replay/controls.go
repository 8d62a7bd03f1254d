package replay

import (
	"sync"
	"time"
)

// Controls drive a Source while it plays, like the keys of a player. Their methods
// may be called from any goroutine, and take effect at once. They belong to one
// Source.
type Controls struct {
	mu       sync.Mutex
	position Position
	move     int  // ticks to move, negative for back
	restart  bool // go to the beginning before that
	wake     chan struct{}
}

// Position is the position of a controlled Source, and how it continues.
type Position struct {
	Paused bool
	// Ended is whether the Source is past its last tick. It is then paused.
	Ended bool
	// Speed is relative to the capture's own.
	Speed float64
	// Tick is the number of the last tick returned, counted from 1. Ticks is how
	// many there are; 0 while unknown, and for the demo, which has no end.
	Tick, Ticks int
	// At is the timestamp of that tick.
	At time.Time
}

const (
	// minSpeed is the lowest speed that SetSpeed sets: a stream is stale after ten
	// of its periods, and below a quarter it would come near that.
	minSpeed = 0.25
	// maxSpeed is the highest.
	maxSpeed = 16
)

// NewControls returns controls that play at the capture's own speed.
func NewControls() *Controls {
	return &Controls{position: Position{Speed: 1}, wake: make(chan struct{}, 1)}
}

// Position returns where the Source is.
func (c *Controls) Position() Position {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.position
}

// Pause stops the Source at its tick, or lets it continue. At the end it has
// no effect.
func (c *Controls) Pause(paused bool) {
	c.change(func() { c.position.Paused = paused || c.position.Ended })
}

// Step moves n ticks forward, or back if n is negative, and plays the tick
// there. It stops at the first and the last tick. It does not end a pause.
func (c *Controls) Step(n int) { c.change(func() { c.move += n }) }

// SetSpeed sets the speed, at least minSpeed and at most maxSpeed.
func (c *Controls) SetSpeed(f float64) {
	c.change(func() { c.position.Speed = min(max(f, minSpeed), maxSpeed) })
}

// Restart goes to the first tick, and plays from there if the Source had ended.
func (c *Controls) Restart() {
	c.change(func() {
		c.restart, c.move = true, 0
		c.position.Paused = c.position.Paused && !c.position.Ended
	})
}

func (c *Controls) change(what func()) {
	c.mu.Lock()
	what()
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// order returns what to do now, once: the tick to go to from the one given, 0 for none;
// else the speed to play at, 0 for a pause.
func (c *Controls) order(given int) (target int, speed float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	move, restart := c.move, c.restart
	c.move, c.restart = 0, false
	switch {
	case restart:
		return max(1+move, 1), 0
	case move != 0:
		return max(given+move, 1), 0
	case c.position.Paused:
		return 0, 0
	default:
		return 0, c.position.Speed
	}
}

// arrived records the tick that Read returns.
func (c *Controls) arrived(tick, ticks int, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.position.Tick, c.position.Ticks, c.position.At, c.position.Ended = tick, ticks, at, false
}

// end pauses after the last tick.
func (c *Controls) end(ticks int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.position.Ticks, c.position.Ended, c.position.Paused = ticks, true, true
}
