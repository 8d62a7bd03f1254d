package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// Read returns a snapshot fit to be served now, and the function that releases it,
// to be called once. Of a scraped source it is a fresh reading, one shared with
// overlapping scrapes, or one younger than the minimum interval; of a stream it is
// the latest tick that is not stale. Errors are *canonical.Failure.
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
		r, f := p.join(patience)
		if r != nil {
			return &r.snapshot, r.Release, nil
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			failure := f.blame(p.tooLate(ctx, begun))
			if p.leave(f, failure, errors.Is(ctx.Err(), context.DeadlineExceeded)) {
				return nil, nil, failure
			}
		}
		switch {
		case f.result != nil:
			return &f.result.snapshot, f.result.Release, nil
		case f.failure == nil && ctx.Err() != nil:
			return nil, nil, p.tooLate(ctx, begun)
		case f.failure == nil:
			// f gave way to a younger one, which must not extend this scrape.
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, begun.Add(p.opts.Timeout))
			defer cancel()
		case f.overdue && f.begun.Before(begun) && ctx.Err() == nil:
			// f began before this scrape came: ask again.
		default:
			return nil, nil, f.failure
		}
	}
}
