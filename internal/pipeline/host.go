package pipeline

import (
	"context"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// hostEvery is how long a reading of the host is reused.
	hostEvery = time.Second
	// hostPatience is how long a reading waits for the host to be read, which normally takes far
	// less. /proc may be a file system that hangs, as in some containers.
	hostPatience = 50 * time.Millisecond
)

// hostWatch reads the host for the reading goroutine. It may delay one reading by
// hostPatience; while a read of the host hangs, the others are not kept waiting.
type hostWatch struct {
	read func() canonical.Host // nil if there is none to read

	asks    chan struct{}
	answers chan canonical.Host
	timer   *time.Timer

	asked   time.Time // when the host was last asked
	pending bool      // it was asked, and has not answered
	latest  canonical.Host
	known   bool // latest is the answer to that
}

// look sets dst to the load of the host, at most hostEvery ago, and reports whether
// that is known. ctx ends the goroutine that reads it.
func (w *hostWatch) look(ctx context.Context, dst *canonical.Host) bool {
	if w.read == nil {
		return false
	}
	if !w.known || time.Since(w.asked) >= hostEvery {
		w.known = w.ask(ctx)
	}
	*dst = w.latest
	return w.known
}

// ask reads the host, and reports whether it answered in time.
func (w *hostWatch) ask(ctx context.Context) bool {
	if w.asks == nil {
		w.asks, w.answers = make(chan struct{}, 1), make(chan canonical.Host, 1)
		w.timer = time.NewTimer(hostPatience)
		go w.serve(ctx)
	}
	if w.pending {
		select {
		case <-w.answers: // too late: its time is unknown
			w.pending = false
		default:
			return false
		}
	}
	w.asked, w.pending = time.Now(), true
	w.asks <- struct{}{}
	w.timer.Reset(hostPatience)
	select {
	case w.latest = <-w.answers:
		w.pending = false
	case <-w.timer.C:
	}
	return !w.pending
}

// serve reads the host whenever it is asked to. It is never asked again before it
// has answered.
func (w *hostWatch) serve(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.asks:
			w.answers <- w.read()
		}
	}
}
