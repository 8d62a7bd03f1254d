package pipeline

import (
	"context"
	"time"
)

// leastPause keeps poll from spinning within the minimum interval, in which no read begins.
const leastPause = 100 * time.Millisecond

// poll reads the source at once, and then whenever it was not read for the poll interval, until ctx
// ends. Until the first good reading it tries more often: an exporter may start with the proxy.
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
			if _, release, err := p.Read(ctx); err == nil { // the outcome is recorded like a scraper's
				release()
			}
		}
		timer.Reset(max(p.due(), leastPause))
	}
}

// due returns how long the source may still go unread. While the observer is busy, no read is due: it
// would wait and fail, and the source would seem to be at fault.
func (p *Pipeline) due() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status.observing {
		return leastPause
	}
	interval := p.opts.Poll
	if p.status.good.IsZero() {
		interval = min(interval, retryAfter)
	}
	return interval - max(0, time.Since(p.status.attempt))
}
