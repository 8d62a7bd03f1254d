package holders

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// firstPause and longestPause bound the pause without requests to an API server that did not
	// answer properly: it doubles from one failure to the next.
	firstPause   = time.Second
	longestPause = time.Minute
)

// outage tracks whether the API server answers. While it does not, one request at a time tries
// again, after a pause. Beginning and end are logged. It is safe for concurrent use.
type outage struct {
	logger *slog.Logger
	probe  chan struct{} // has an element while one caller tries

	mu    sync.Mutex
	cause string // of the latest failure, "" while there is no outage
	since time.Time
	pause time.Duration
	until time.Time
}

func newOutage(logger *slog.Logger) *outage {
	return &outage{logger: logger, probe: make(chan struct{}, 1)}
}

// enter waits until a request makes sense. The caller calls leave after it.
func (o *outage) enter(ctx context.Context) (leave func(), err error) {
	if _, is := o.remaining(); !is {
		return func() {}, nil
	}
	select {
	case o.probe <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	leave = func() { <-o.probe }
	rest, is := o.remaining()
	if !is { // another caller found that it is over
		leave()
		return func() {}, nil
	}
	select {
	case <-time.After(rest):
		return leave, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// remaining returns how long to send no requests, and whether there is an outage.
func (o *outage) remaining() (time.Duration, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Until(o.until), o.cause != ""
}

// failed notes that the API server did not answer correctly. It returns whether an outage
// begins.
func (o *outage) failed(err error) (began bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	began = o.cause == ""
	o.cause = err.Error()
	switch {
	case began:
		o.since, o.pause = now, firstPause
		o.logger.Warn("the holders of GPUs are not fully known", "cause", o.note().Cause, "remedy", o.note().Remedy)
	case now.Before(o.until): // the request was under way when the outage began
		return false
	default:
		o.pause = min(2*o.pause, longestPause)
	}
	// Not all nodes retry at once.
	o.until = now.Add(o.pause/2 + rand.N(o.pause)) //nolint:gosec // spreads load
	return began
}

// answered notes that the API server answered. It returns whether that ends an outage.
func (o *outage) answered() (ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cause == "" {
		return false
	}
	o.logger.Info("the Kubernetes API server answers again", "after", time.Since(o.since).Round(time.Second))
	o.cause = ""
	return true
}

// is reports whether there is an outage.
func (o *outage) is() bool {
	_, is := o.remaining()
	return is
}

// notes describes the outage, if there is one.
func (o *outage) notes() []canonical.Note {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cause == "" {
		return nil
	}
	return []canonical.Note{o.note()}
}

func (o *outage) note() canonical.Note {
	return canonical.Note{
		Cause:  "the Kubernetes API server does not answer correctly, so the workloads of new pods are not known: " + o.cause,
		Remedy: "check that this machine reaches it (network policies, --kube.config), and that the credentials are valid",
	}
}
