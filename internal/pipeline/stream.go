package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// retryAfter is the pause before a failed stream is read again, and a scraped
// source that could not be read yet.
const retryAfter = time.Second

// checkTimeout bounds how long a source may look at the machine before it is read.
const checkTimeout = 6 * time.Second

// check lets a source that can say so say that it cannot be read at all. Scrapes
// wait for that as for the first reading.
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
	p.state.Failure = failureOf(err) // not logged: it is Run's error
	p.settle.Do(func() { close(p.settled) })
	return err
}

// follow reads a stream tick by tick until ctx ends or the stream does, which
// gives io.EOF.
func (p *Pipeline) follow(ctx context.Context) error {
	for {
		err := p.readTick(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, io.EOF):
			return err
		case err != nil:
			pause(ctx, retryAfter)
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
	case ctx.Err() != nil:
		return err
	case errors.Is(err, io.EOF):
		p.fail(&canonical.Failure{Kind: kindEnded, Cause: p.Name() + " has come to its end", Remedy: "start it again, or play it in a loop"})
	default:
		p.fail(failureOf(err))
	}
	p.settle.Do(func() { close(p.settled) })
	return err
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// tick returns the latest tick unless it is stale, waiting for the first one
// right after the start. The caller must release the reading.
func (p *Pipeline) tick(ctx context.Context) (*reading, *canonical.Failure) {
	begun := time.Now()
	select {
	case <-p.settled:
	case <-ctx.Done():
		deadline := time.Now()
		return nil, p.tooLate(begun, deadline)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if failure := p.notReady(now); failure != nil {
		return nil, failure
	}
	p.latest.holders++
	return p.latest, nil
}

// stale is the failure of a source whose last reading is too old, and has not
// failed since: a stream is silent, and a scraped source was not asked.
func (p *Pipeline) stale(now time.Time) *canonical.Failure {
	age := now.Sub(p.good).Round(time.Second)
	if p.caps.Kind == source.Scraped {
		return &canonical.Failure{
			Kind:   kindStale,
			Cause:  fmt.Sprintf("%s was last read %s ago, and nobody has scraped since", p.Name(), age),
			Remedy: "scrape /metrics, or have it read between scrapes too: --poll=15s",
		}
	}
	return &canonical.Failure{
		Kind:   kindStale,
		Cause:  fmt.Sprintf("%s has been silent for %s", p.Name(), age),
		Remedy: "see the log and the landing page for what its streams say",
	}
}

// streams returns what feeds the source, if it tells.
func (p *Pipeline) streams() (all [canonical.MaxStreams]canonical.Stream) {
	fed, ok := p.opts.Source.(source.Streams)
	if !ok {
		return all
	}
	var room [canonical.MaxStreams]source.StreamTotals
	for i, t := range fed.Streams(room[:0]) {
		if i == len(all) {
			break
		}
		all[i] = canonical.Stream{Name: t.Stream, Ticks: t.Ticks, Evicted: t.Evicted, Restarts: t.Restarts}
		if t.Failure != nil {
			all[i].Failure = failureOf(t.Failure)
		}
	}
	return all
}
