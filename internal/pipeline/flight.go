package pipeline

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// maxFlights is the most reads of a source under way at a time. There are several only if an
// upstream hangs; each takes the memory of a body.
const maxFlights = 4

// flight is one read of a scraped source, shared by all scrapes that ask while it is under way.
// It belongs to none of them: it goes on while somebody waits for it, and at most for
// Options.Timeout from its start, which is never extended. x/sync/singleflight has neither
// deadlines nor waiters that leave.
type flight struct {
	begun  time.Time
	timer  *time.Timer // ends it when it has taken too long
	cancel context.CancelFunc

	// Guarded by Pipeline.mu.
	waiters int
	missed  int  // waiters that ran out of time
	over    bool // it has an outcome, or no caller waits for one

	// Set when done is closed; each waiter holds a reference to result.
	done    chan struct{}
	result  *reading // nil with a failure, or if it gave way
	failure *canonical.Failure
	overdue bool // it failed by Options.Timeout

	waits   atomic.Bool // it waits for its turn
	fetched atomic.Bool // the source fetches, and has done so
}

// join returns the latest reading if it is young enough, else the flight to wait for: the latest,
// unless it is older than the caller can wait. A request that has taken so long is likely to
// hang, and a new one may be answered at once. If maxFlights are under way, the second oldest
// gives way to it.
func (p *Pipeline) join(patience time.Duration) (*reading, *flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if r := p.latest; r != nil && p.state.Failure == nil && p.age(now) < p.opts.MinInterval {
		r.refs++
		return r, nil
	}
	if n := len(p.flights); n > 0 {
		if f := p.flights[n-1]; now.Sub(f.begun) <= patience {
			f.waiters++
			return nil, f
		}
		if n == maxFlights {
			p.land(p.flights[1]) // its waiters join the new one; the oldest may just be slow
		}
	}
	return nil, p.launch(now)
}

// launch starts a flight with one waiter. The caller holds mu.
func (p *Pipeline) launch(now time.Time) *flight {
	ctx, cancel := context.WithCancel(p.ctx)
	f := &flight{begun: now, cancel: cancel, waiters: 1, done: make(chan struct{})}
	f.timer = time.AfterFunc(p.opts.Timeout, func() { p.expire(f) })
	p.flights = append(p.flights, f)
	go p.fly(ctx, f)
	return f
}

// leave stops waiting for f. The failure counts if late is set: time ran out, and the client did
// not just go away. The last waiter to leave ends f. leave reports false if f already has an
// outcome: the waiter then holds a reference to its result.
func (p *Pipeline) leave(f *flight, failure *canonical.Failure, late bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.over {
		return false
	}
	f.waiters--
	if late {
		f.missed++
		p.miss(failure)
	}
	if f.waiters == 0 {
		p.land(f)
	}
	return true
}

// expire ends f with a failure: it has taken as long as a read may.
func (p *Pipeline) expire(f *flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.over {
		return
	}
	f.failure, f.overdue = f.blame(p.overdue()), true
	p.fail(f.failure)
	p.land(f)
}

// giveWay ends f with a failure: it has had its turn, and other sources wait for theirs.
func (p *Pipeline) giveWay(f *flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.over {
		return
	}
	f.failure = p.gaveWay(time.Since(f.begun))
	p.fail(f.failure)
	p.land(f)
}

// land ends f for those who wait for it. The caller holds mu and has set the outcome.
func (p *Pipeline) land(f *flight) {
	f.over = true
	f.timer.Stop()
	f.cancel()
	close(f.done)
	p.flights = slices.DeleteFunc(p.flights, func(one *flight) bool { return one == f })
}

// fly reads the source for the waiters of f, hands the outcome to them and then to the
// observer. A good reading is for the waiters of all flights.
func (p *Pipeline) fly(ctx context.Context, f *flight) {
	defer f.cancel()
	r, end, err := p.fetch(ctx, f)
	defer end()
	if err == nil {
		select {
		case p.reader <- struct{}{}:
			defer func() { <-p.reader }()
			err = p.take(ctx, r)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	p.mu.Lock()
	good := err == nil && !f.over
	switch {
	case good:
		p.arrive(r)
	case !f.over:
		f.failure = failureOf(err)
		p.fail(f.failure)
		p.land(f)
	}
	failed := f.failure != nil || f.missed > 0
	p.mu.Unlock()
	if good {
		p.observe(r)
		return
	}
	r.Release()
	if failed && p.opts.Observer != nil {
		p.opts.Observer.Failed(p.Name(), f.begun)
	}
}

// fetch waits for the turn of f, if there are turns, and fetches if the source does, even while
// an earlier request may hang. A request that has to give way is repeated at its next turn. end
// ends the turn.
func (p *Pipeline) fetch(ctx context.Context, f *flight) (r *reading, end func(), err error) {
	for {
		turn, giveWay := ctx, func() {}
		if p.opts.Turns != nil {
			turn, giveWay = context.WithCancel(ctx)
		}
		end, err = p.turn(ctx, f, giveWay)
		if r == nil {
			r = p.acquire()
		}
		if err == nil && p.fetcher != nil {
			err = p.fetcher.Fetch(turn, &r.batch)
			f.fetched.Store(err == nil)
		}
		again := err != nil && turn.Err() != nil && ctx.Err() == nil
		giveWay()
		if !again {
			return r, end, err
		}
		end()
	}
}

// turn waits for the turn of f. If the turn is over while f is fetched, giveWay is called;
// otherwise f fails.
func (p *Pipeline) turn(ctx context.Context, f *flight, giveWay func()) (end func(), err error) {
	if p.opts.Turns == nil {
		return func() {}, ctx.Err()
	}
	f.waits.Store(true)
	end, err = p.opts.Turns.begin(ctx, func() {
		if p.fetcher == nil || f.fetched.Load() {
			p.giveWay(f)
		} else {
			giveWay()
		}
	})
	f.waits.Store(err != nil)
	return end, err
}

// take makes a reading of what was fetched, or reads if the source does not fetch. Only one
// flight is in it at a time, even one that takes long to notice its end, and none enters it after
// its end, when a later flight may already have a reading.
func (p *Pipeline) take(ctx context.Context, r *reading) error {
	err := ctx.Err()
	switch {
	case err != nil:
		return err
	case p.fetcher != nil:
		err = p.fetcher.Scan(&r.batch)
	default:
		err = p.opts.Source.Read(ctx, &r.batch)
	}
	if err == nil {
		p.conclude(r)
	}
	return err
}

// arrive publishes r and ends all flights with it. The caller holds mu.
func (p *Pipeline) arrive(r *reading) {
	waiters, missed := 0, 0
	for _, f := range p.flights {
		waiters += f.waiters
		missed += f.missed
	}
	p.publish(r, waiters)
	if missed == 0 {
		p.inTime()
	}
	for len(p.flights) > 0 {
		f := p.flights[0]
		f.result = r
		p.land(f)
	}
}
