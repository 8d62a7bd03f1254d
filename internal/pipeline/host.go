package pipeline

import (
	"context"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// hostEvery is how long what was read of the host is told of.
	hostEvery = time.Second
	// hostPatience is how long a reading waits for the host to be read, which takes
	// far less. /proc may be a file system that hangs, as in some containers.
	hostPatience = 50 * time.Millisecond
)

// hostWatch reads the host for the reading goroutine. It may delay one reading by
// hostPatience; while a read of the host hangs, the others are not kept waiting.
type hostWatch struct {
	read func() canonical.Host // nil where there is none to read

	asks    chan struct{}
	answers chan canonical.Host
	timer   *time.Timer

	asked  time.Time // when the host was asked for latest
	owed   bool      // it was asked, and has not answered
	latest canonical.Host
	known  bool // latest answers the question of asked
}

// look sets dst to how the host is doing, at most hostEvery ago, and tells whether
// that is known. What it needs to read on is ended with life.
func (w *hostWatch) look(life context.Context, dst *canonical.Host) bool {
	if w.read == nil {
		return false
	}
	if !w.known || time.Since(w.asked) >= hostEvery {
		w.known = w.ask(life)
	}
	*dst = w.latest
	return w.known
}

// ask has the host read, and tells whether it was in time.
func (w *hostWatch) ask(life context.Context) bool {
	if w.asks == nil {
		w.asks, w.answers = make(chan struct{}, 1), make(chan canonical.Host, 1)
		w.timer = time.NewTimer(hostPatience)
		go w.serve(life)
	}
	if w.owed {
		select {
		case <-w.answers: // too late: it may be of any time
			w.owed = false
		default:
			return false
		}
	}
	w.asked, w.owed = time.Now(), true
	w.asks <- struct{}{}
	w.timer.Reset(hostPatience)
	select {
	case w.latest = <-w.answers:
		w.owed = false
	case <-w.timer.C:
	}
	return !w.owed
}

// serve reads the host whenever it is asked to. It is never asked again before it
// has answered.
func (w *hostWatch) serve(life context.Context) {
	for {
		select {
		case <-life.Done():
			return
		case <-w.asks:
			w.answers <- w.read()
		}
	}
}
