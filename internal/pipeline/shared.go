package pipeline

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// maxReads is the most reads of a source under way at a time. There are several only if an
// upstream hangs; each takes the memory of a body.
const maxReads = 4

// sharedRead is one read of a scraped source, shared by all scrapes that ask while it is under
// way. It goes on while somebody waits for it, and at most for Options.Timeout from its start.
// x/sync/singleflight has neither deadlines nor waiters that leave.
type sharedRead struct {
	begun  time.Time
	timer  *time.Timer // ends it when it has taken too long
	ctx    context.Context
	cancel context.CancelFunc

	// Guarded by Pipeline.mu.
	waiters int
	missed  int  // waiters that ran out of time
	over    bool // it has an outcome, or no caller waits for one

	// Set when done is closed; each waiter holds a reference to result.
	done    chan struct{}
	result  *reading // nil with a failure
	failure *canonical.Failure
	overdue bool // it failed by Options.Timeout
}

// Read returns a snapshot fit to be served now, and the function that releases it, to be called
// once. Of a scraped source it is a fresh reading, one shared with overlapping scrapes, or one
// younger than the minimum interval; of a stream the latest tick that is not stale. Errors are
// *canonical.Failure.
func (p *Pipeline) Read(ctx context.Context) (*canonical.Snapshot, func(), error) {
	if p.caps.Kind == source.Streamed {
		return p.tick(ctx)
	}
	begun := time.Now()
	for {
		patience := p.opts.Timeout
		if deadline, is := ctx.Deadline(); is {
			patience = time.Until(deadline)
		}
		r, s, begins := p.join(patience)
		if r != nil {
			return &r.snapshot, r.Release, nil
		}
		if begins {
			go p.readFor(s)
		}
		select {
		case <-s.done:
		case <-ctx.Done():
			failure := p.tooLate(ctx, begun)
			if p.leave(s, failure, errors.Is(ctx.Err(), context.DeadlineExceeded)) {
				return nil, nil, failure
			}
		}
		switch {
		case s.result != nil:
			return &s.result.snapshot, s.result.Release, nil
		case s.overdue && s.begun.Before(begun) && ctx.Err() == nil:
			// It began before this scrape came: ask again.
		default:
			return nil, nil, s.failure
		}
	}
}

// join returns the latest reading if it is young enough, else the read to wait for: the latest,
// unless it is older than the caller can wait and so likely to hang. begins says that the caller
// starts it.
func (p *Pipeline) join(patience time.Duration) (latest *reading, s *sharedRead, begins bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if r := p.memory.latest; r != nil && p.status.state.Failure == nil && p.status.age(now) < p.opts.MinInterval {
		r.refs++
		return r, nil, false
	}
	if n := len(p.reads); n > 0 {
		if s := p.reads[n-1]; n == maxReads || now.Sub(s.begun) <= patience {
			s.waiters++
			return nil, s, false
		}
	}
	s = &sharedRead{begun: now, waiters: 1, done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(p.ctx)
	s.timer = time.AfterFunc(p.opts.Timeout, func() { p.expire(s) })
	p.reads = append(p.reads, s)
	return nil, s, true
}

// leave stops waiting for s; the last waiter ends it. late says that time ran out, and the client
// did not just go away. leave reports false if s has an outcome, to which the waiter has a reference.
func (p *Pipeline) leave(s *sharedRead, failure *canonical.Failure, late bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.over {
		return false
	}
	s.waiters--
	if late {
		s.missed++
		p.miss(failure)
	}
	if s.waiters == 0 {
		p.finish(s)
	}
	return true
}

// expire ends s with a failure: it has taken as long as a read may.
func (p *Pipeline) expire(s *sharedRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.over {
		return
	}
	s.failure, s.overdue = p.overdue(), true
	p.fail(s.failure)
	p.finish(s)
}

// finish ends s for those who wait for it. The caller holds mu and has set the outcome.
func (p *Pipeline) finish(s *sharedRead) {
	s.over = true
	s.timer.Stop()
	s.cancel()
	close(s.done)
	p.reads = slices.DeleteFunc(p.reads, func(one *sharedRead) bool { return one == s })
}

// readFor reads the source for the waiters of s. A good reading is for the waiters of all reads
// under way.
func (p *Pipeline) readFor(s *sharedRead) {
	defer s.cancel()
	r := p.acquire()
	var err error
	if p.fetcher != nil {
		err = p.fetcher.Fetch(s.ctx, &r.batch)
	}
	if err == nil {
		// One at a time, even one that takes long to notice its end.
		select {
		case p.reader <- struct{}{}:
			defer func() { <-p.reader }()
			switch {
			case s.ctx.Err() != nil: // a later read may already have a reading
				err = s.ctx.Err()
			case p.fetcher != nil:
				err = p.fetcher.Scan(&r.batch)
			default:
				err = p.opts.Source.Read(s.ctx, &r.batch)
			}
		case <-s.ctx.Done():
			err = s.ctx.Err()
		}
	}
	if err == nil {
		p.conclude(r)
	} else if cap(r.batch.Body) == 0 { // there was no room, so what it had goes too
		p.judging.Lock()
		r.snapshot.Body, r.snapshot.Valid = nil, nil
		p.judging.Unlock()
	}
	p.end(s, r, err)
}

// end hands the outcome of s to its waiters, and then to the observer.
func (p *Pipeline) end(s *sharedRead, r *reading, err error) {
	p.mu.Lock()
	good := err == nil && !s.over
	switch {
	case good:
		p.arrive(r)
	case !s.over:
		s.failure = source.FailureOf(err)
		p.fail(s.failure)
		p.finish(s)
	}
	failed := s.failure != nil || s.missed > 0
	p.mu.Unlock()
	if good {
		p.observe(r)
		return
	}
	r.Release()
	if failed && p.opts.Observer != nil {
		p.opts.Observer.Failed(p.Name(), s.begun)
	}
}

// arrive publishes r and ends all reads under way with it. The caller holds mu.
func (p *Pipeline) arrive(r *reading) {
	waiters, missed := 0, 0
	for _, s := range p.reads {
		waiters += s.waiters
		missed += s.missed
	}
	p.publish(r, waiters)
	if missed == 0 {
		p.inTime()
	}
	for len(p.reads) > 0 {
		s := p.reads[0]
		s.result = r
		p.finish(s)
	}
}
