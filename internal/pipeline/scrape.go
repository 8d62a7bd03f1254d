package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// errDeadline ends a flight whose last waiter's deadline has passed.
var errDeadline = errors.New("no waiter left in time")

// flight is one read of a scraped source, shared by all scrapes that ask while it is
// under way. It belongs to none of them and lives until the latest of their
// deadlines. A scrape that finds it older than its own timeout does not extend it:
// else scrapes that keep overlapping would all wait for one request that hangs for
// good, long after the source recovered. x/sync/singleflight knows neither deadlines
// nor waiters that leave.
type flight struct {
	begun    time.Time
	deadline time.Time
	timer    *time.Timer // ends the flight at its deadline
	expired  bool        // the deadline has passed: nobody may join any more
	late     bool        // set with failure: it failed of its deadline
	waiters  int
	done     chan struct{}

	// Set when done is closed; each waiter holds a reference to result.
	result  *reading
	failure *canonical.Failure
}

// Read returns a snapshot fit to be served now, and the function that releases it,
// to be called once. Of a scraped source it is a fresh reading, one shared with
// overlapping scrapes, or one younger than the minimum interval; of a stream it is
// the latest tick that is not stale. Errors are *canonical.Failure.
func (p *Pipeline) Read(ctx context.Context) (*canonical.Snapshot, func(), error) {
	if p.caps.Kind == source.Streamed {
		return p.tick(ctx)
	}
	begun := time.Now()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = begun.Add(p.opts.Timeout)
	}
	for {
		r, f := p.join(deadline)
		if r != nil {
			return &r.snapshot, r.Release, nil
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			if p.leave(f) {
				return nil, nil, p.tooLate(begun, deadline)
			}
		}
		switch {
		case f.failure == nil:
			return &f.result.snapshot, f.result.Release, nil
		case f.late && ctx.Err() == nil && time.Now().Before(deadline):
			// It was cut short for waiters with less time; this one asks anew.
		default:
			return nil, nil, f.failure
		}
	}
}

// join returns the latest reading if it is young enough, else the flight to wait for,
// which it starts unless one is under way that has not expired: the failure of an
// expired one is certain.
func (p *Pipeline) join(deadline time.Time) (*reading, *flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if r := p.latest; r != nil && p.state.Failure == nil && now.Sub(p.good) < p.opts.MinInterval {
		r.refs++
		return r, nil
	}
	if f := p.flight; f != nil && !f.expired {
		f.waiters++
		if patience := deadline.Sub(now); deadline.After(f.deadline) && now.Sub(f.begun) < patience {
			f.deadline = deadline
			f.timer.Reset(patience)
		}
		return nil, f
	}
	ctx, cancel := context.WithCancelCause(p.ctx)
	f := &flight{begun: now, deadline: deadline, waiters: 1, done: make(chan struct{})}
	f.timer = time.AfterFunc(deadline.Sub(now), func() { p.expire(f, cancel) })
	p.flight = f
	go func() {
		defer cancel(nil)
		p.fly(ctx, f)
	}()
	return nil, f
}

// leave gives up waiting for f. It reports false if f is done by now: the waiter then
// holds a reference to its result.
func (p *Pipeline) leave(f *flight) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-f.done:
		return false
	default:
		f.waiters--
		return true
	}
}

// expire ends f, unless a waiter has extended its deadline meanwhile: then the timer
// fires again.
func (p *Pipeline) expire(f *flight, cancel context.CancelCauseFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().Before(f.deadline) {
		return
	}
	f.expired = true
	cancel(errDeadline)
}

// fly reads the source once, hands the outcome to the waiters of f and then to the
// observer. Flights read one after the other, however long one takes to notice its
// end.
func (p *Pipeline) fly(ctx context.Context, f *flight) {
	var r *reading
	var err error
	select {
	case p.reader <- struct{}{}:
		defer func() { <-p.reader }()
		r, err = p.read(ctx)
	case <-ctx.Done():
		err = ctx.Err()
	}
	f.timer.Stop()
	p.mu.Lock()
	if p.flight == f {
		p.flight = nil
	}
	if err == nil {
		p.publish(r, f.waiters)
		f.result = r
	} else {
		f.late = errors.Is(context.Cause(ctx), errDeadline)
		if f.failure = failureOf(err); f.late {
			f.failure = p.tooLate(f.begun, f.deadline)
		}
		p.fail(f.failure)
	}
	close(f.done)
	p.mu.Unlock()
	switch {
	case err == nil:
		p.observe(r)
	case p.opts.Observer != nil:
		p.opts.Observer.Failed(p.Name(), f.begun)
	}
}

// leastPause keeps a poll interval below the minimum interval, in which a young
// reading is reused and no read is due to begin, from spinning.
const leastPause = 100 * time.Millisecond

// poll reads the source at once, and then whenever nobody did for the poll
// interval, until ctx ends. Until the first good reading it tries more often: an
// exporter that starts beside us is only just coming up.
func (p *Pipeline) poll(ctx context.Context) {
	if p.opts.Poll <= 0 {
		<-ctx.Done()
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if p.due() <= 0 {
			p.readOnce(ctx)
		}
		timer.Reset(max(p.due(), leastPause))
	}
}

// due is how long the source may still go unread. While the observer takes its time
// it is not due: a read that waits for that would fail, and seem to be its fault.
func (p *Pipeline) due() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.observing {
		return leastPause
	}
	interval := p.opts.Poll
	if p.good.IsZero() {
		interval = min(interval, retryAfter)
	}
	return interval - time.Since(p.attempt)
}

// readOnce reads for our own sake; its outcome is recorded like any other.
func (p *Pipeline) readOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.opts.Timeout)
	defer cancel()
	if _, release, err := p.Read(ctx); err == nil {
		release()
	}
}
