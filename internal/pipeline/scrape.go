package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// errTooLate ends a flight whose last waiter's deadline has passed.
var errTooLate = errors.New("no waiter left in time")

// flight is one read of a scraped source on behalf of everybody who asked while
// it was under way. It belongs to none of them: it lives until the latest of their
// deadlines. Only who comes when he would have given it up himself does not put that
// off: else scrapers that keep overlapping would all wait for one request that hangs for
// good, while the source has long been well again.
type flight struct {
	begun    time.Time
	deadline time.Time
	timer    *time.Timer // ends the flight at its deadline
	over     bool        // the deadline has passed: nobody may join any more
	late     bool        // set with failure: it failed of its deadline
	waiters  int
	landed   chan struct{}

	// Set when landed is closed; result is held once for each waiter.
	result  *reading
	failure *canonical.Failure
}

// share returns the latest reading if it is younger than the minimum interval,
// else the result of the flight under way or of a new one: of another one, if that
// ended late and ctx did not. The caller must release the reading.
func (p *Pipeline) share(ctx context.Context) (*reading, *canonical.Failure) {
	begun := time.Now()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = begun.Add(p.opts.Timeout)
	}
	for {
		r, failure, again := p.join(ctx, begun, deadline)
		if !again {
			return r, failure
		}
	}
}

// join is one go of share, for who asked at begun; again where another flight may do
// what this one did not.
func (p *Pipeline) join(ctx context.Context, begun, deadline time.Time) (_ *reading, _ *canonical.Failure, again bool) {
	now := time.Now()
	p.mu.Lock()
	if r := p.latest; r != nil && p.state.Failure == nil && now.Sub(p.good) < p.opts.MinInterval {
		r.holders++
		p.mu.Unlock()
		return r, nil, false
	}
	f := p.board(now, deadline)
	p.mu.Unlock()

	select {
	case <-f.landed:
		return f.result, f.failure, f.late && ctx.Err() == nil && time.Now().Before(deadline)
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-f.landed: // at the same moment: the waiter's hold must not be lost
		return f.result, f.failure, false
	default:
		f.waiters--
		return nil, p.tooLate(begun, deadline), false
	}
}

// board joins the flight under way, or starts one. A flight whose time is over is
// not joined: its failure is on its way already. The caller holds mu.
func (p *Pipeline) board(now, deadline time.Time) *flight {
	if f := p.flight; f != nil && !f.over {
		f.waiters++
		if patience := deadline.Sub(now); deadline.After(f.deadline) && now.Sub(f.begun) < patience {
			f.deadline = deadline
			f.timer.Reset(patience)
		}
		return f
	}
	ctx, cancel := context.WithCancelCause(p.life)
	f := &flight{begun: now, deadline: deadline, waiters: 1, landed: make(chan struct{})}
	f.timer = time.AfterFunc(deadline.Sub(now), func() { p.expire(f, cancel) })
	p.flight = f
	go func() {
		defer cancel(nil)
		p.fly(ctx, f)
	}()
	return f
}

// expire ends f, unless a waiter has put its deadline off meanwhile: then the
// timer fires again.
func (p *Pipeline) expire(f *flight, cancel context.CancelCauseFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().Before(f.deadline) {
		return
	}
	f.over = true
	cancel(errTooLate)
}

// fly reads the source once, hands the outcome to the waiters of f, and tells the
// observer. Flights land one after the other, however long one takes to notice its
// end.
func (p *Pipeline) fly(ctx context.Context, f *flight) {
	var r *reading
	var err error
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
		r, err = p.read(ctx)
	case <-ctx.Done():
		err = ctx.Err()
	}
	f.timer.Stop()
	p.arrive(ctx, f, r, err)
	switch {
	case err == nil:
		p.observe(r)
	case p.opts.Observer != nil:
		p.opts.Observer.Failed(p.Name(), f.begun)
	}
}

// arrive records what came of f and hands it to the waiters.
func (p *Pipeline) arrive(ctx context.Context, f *flight, r *reading, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flight == f {
		p.flight = nil
	}
	switch {
	case err == nil:
		p.publish(r, f.waiters)
		f.result = r
	case errors.Is(context.Cause(ctx), errTooLate):
		f.failure, f.late = p.tooLate(f.begun, f.deadline), true
		p.fail(f.failure)
	default:
		f.failure = failureOf(err)
		p.fail(f.failure)
	}
	close(f.landed)
}

// tooLate is the failure of not having answered between two instants.
func (p *Pipeline) tooLate(begun, deadline time.Time) *canonical.Failure {
	return &canonical.Failure{
		Kind:    string(source.Timeout),
		Timeout: true,
		Cause:   fmt.Sprintf("%s did not answer within %s", p.Name(), deadline.Sub(begun).Round(time.Millisecond)),
		Remedy:  p.words().slow,
	}
}

// Kinds of failure that are not the source's.
const (
	kindNotRead = "not_read"
	kindStale   = "stale"
	kindEnded   = "ended"
)

// FailureKinds lists every Kind of the failures that a Pipeline reports.
func FailureKinds() []string {
	kinds := []string{kindNotRead, kindStale, kindEnded}
	for _, f := range source.Failures {
		kinds = append(kinds, string(f))
	}
	return kinds
}

// failureOf translates an error of a source for those who may not know sources.
func failureOf(err error) *canonical.Failure {
	e := source.AsError(err)
	return &canonical.Failure{
		Kind:    string(e.Failure),
		Timeout: e.Failure == source.Timeout,
		Cause:   e.Cause,
		Remedy:  e.Remedy,
	}
}

// fail records that the last read failed. The caller holds mu.
func (p *Pipeline) fail(failure *canonical.Failure) {
	p.logFailure(failure)
	p.state.Failure = failure
	p.state.Streams = p.streams()
	p.attempt = time.Now()
}

// logFailure logs the first of equal failures in a row, but not those that our
// own end causes, nor the end of the source. The caller holds mu and has not recorded the failure yet.
func (p *Pipeline) logFailure(failure *canonical.Failure) {
	before := p.state.Failure
	if failure.Kind == kindEnded {
		return // Run says it
	}
	if p.life.Err() == nil && (before == nil || before.Kind != failure.Kind || before.Remedy != failure.Remedy) {
		p.opts.Logger.Warn("source cannot be read", "reads", p.Name(), "cause", failure.Cause, "remedy", failure.Remedy)
	}
}

// words are remedies that depend on who sets the pace.
type words struct{ slow, noGPU string }

func (p *Pipeline) words() words {
	if p.caps.Kind == source.Streamed {
		return words{
			slow:  "see the log and the landing page for what its streams say, or wait a little longer",
			noGPU: "check that the source sees the node's GPUs: nvidia-smi, dcgmi discovery -l",
		}
	}
	return words{
		slow:  "raise scrape_timeout in Prometheus, or find out why the exporter is slow",
		noGPU: "check that the exporter sees its GPUs, and that --source is its /metrics",
	}
}

// logReading logs what is new about a good reading: that there is one again, that
// it tells of no GPU, the first workload too many, and the first malformed line.
// The caller holds mu and has not recorded the reading yet.
func (p *Pipeline) logReading(s *canonical.Source) {
	if p.state.Failure != nil {
		p.opts.Logger.Info("source can be read again", "reads", s.Name)
	}
	if s.Devices == 0 && (p.state.Devices > 0 || p.good.IsZero()) {
		p.opts.Logger.Warn("no GPU in the reading", "reads", s.Name, "samples", s.Samples,
			"remedy", p.words().noGPU)
	}
	if s.DroppedAllocations > 0 && p.state.DroppedAllocations == 0 {
		p.opts.Logger.Warn("more pods or jobs hold GPUs than are kept account of", "reads", s.Name, "left_out", s.DroppedAllocations,
			"remedy", "raise --series-limit; see kpulse_source_dropped_allocations_total")
	}
	if s.SkippedLines > 0 && p.state.SkippedLines == 0 {
		p.opts.Logger.Warn("malformed lines are left out", "reads", s.Name, "lines", s.SkippedLines,
			"remedy", "see kpulse_source_skipped_lines_total; --passthrough=verbatim passes them on")
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
	if p.watched {
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
	if r, failure := p.share(ctx); failure == nil {
		p.release(r)
	}
}
