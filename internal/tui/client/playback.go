package client

import "time"

// Playback is what plays a recording, and can be told how. Its methods may be called
// from any goroutine and do not wait.
type Playback interface {
	Pause(paused bool)
	// Step goes so many ticks on, or back where n is negative.
	Step(n int)
	// SetSpeed bounds what it takes by what it can do.
	SetSpeed(f float64)
	Restart()
	State() PlaybackState
}

// PlaybackState is where a Playback is.
type PlaybackState struct {
	Paused bool
	Ended  bool // behind the last tick, and paused there
	Speed  float64
	// Tick counts from 1, of Ticks; 0 where that is not known.
	Tick, Ticks int
	At          time.Time // what the tick is stamped with
}
