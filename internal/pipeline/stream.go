package pipeline

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// retryAfter is the pause before a failed stream, or a source never read so far, is read again.
const retryAfter = time.Second

// checkTimeout bounds how long a source may look at the machine before it is read.
const checkTimeout = 6 * time.Second

// check asks a source.Checker whether it can be read at all. Scrapes wait for that, too.
func (p *Pipeline) check(ctx context.Context) error {
	checker, ok := source.As[source.Checker](p.opts.Source)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := checker.Check(ctx)
	if err == nil || ctx.Err() != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.state.Failure = source.FailureOf(err) // not logged: it is Run's error
	p.begun()
	return err
}

// follow reads a stream tick by tick until ctx ends or the stream does, which gives io.EOF.
func (p *Pipeline) follow(ctx context.Context) error {
	for {
		err := p.readTick(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, io.EOF):
			return err
		case err != nil:
			select {
			case <-ctx.Done():
			case <-time.After(retryAfter):
			}
		}
	}
}

// readTick reads one tick and publishes it, or records why it could not.
func (p *Pipeline) readTick(ctx context.Context) error {
	r, err := p.read(ctx)
	if err == nil {
		defer p.observe(r)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.publish(r, 0)
		p.inTime()
	case ctx.Err() != nil:
		return err
	case errors.Is(err, io.EOF):
		p.fail(&canonical.Failure{Kind: kindEnded, Cause: p.Name() + " has ended", Remedy: "start it again, or play it in a loop"})
	default:
		p.fail(source.FailureOf(err))
	}
	p.begun()
	return err
}

// tick is Read for a stream. Right after the start it waits for the first tick.
func (p *Pipeline) tick(ctx context.Context) (*canonical.Snapshot, func(), error) {
	begun := time.Now()
	select {
	case <-p.started:
	case <-ctx.Done():
		failure := p.tooLate(ctx, begun)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.miss(failure)
		}
		return nil, nil, failure
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if failure := p.notReady(time.Now()); failure != nil {
		p.logSilence(failure)
		return nil, nil, failure
	}
	latest := p.memory.latest
	latest.refs++
	return &latest.snapshot, latest.Release, nil
}

// streams returns the state of the source's streams, if it has any.
func (p *Pipeline) streams() (all [canonical.MaxStreams]canonical.Stream) {
	streaming, ok := source.As[source.Streams](p.opts.Source)
	if !ok {
		return all
	}
	var buf [canonical.MaxStreams]source.StreamTotals
	for i, t := range streaming.Streams(buf[:0]) {
		if i == len(all) {
			break
		}
		all[i] = canonical.Stream{Name: t.Stream, Ticks: t.Ticks, Missed: t.Missed, MissedAt: t.MissedAt, Evicted: t.Evicted, Restarts: t.Restarts, Bytes: t.Bytes}
		if t.Failure != nil {
			all[i].Failure = source.FailureOf(t.Failure)
		}
	}
	return all
}
