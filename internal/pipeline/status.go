package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// Kinds of failure that are not the source's.
const (
	kindNotRead = "not_read"
	kindStale   = "stale"
	kindEnded   = "ended"
)

// FailureKinds lists every Kind of the failures that a Pipeline reports.
func FailureKinds() (kinds []string) {
	for _, f := range source.Failures {
		kinds = append(kinds, string(f))
	}
	return append(kinds, kindNotRead, kindStale, kindEnded)
}

const (
	// scrapedStaleAfter is the age from which the last reading of a scraped source no longer counts
	// as ready: Prometheus' own lookback.
	scrapedStaleAfter = 5 * time.Minute
	// A stream that is silent for staleTicks periods, and at least streamStaleAfter, is down.
	staleTicks       = 10
	streamStaleAfter = time.Second
)

// status is what the outcomes of the reads say about a source. Pipeline.mu guards it.
type status struct {
	state   canonical.Source
	good    time.Time          // when the last good read ended, zero before the first
	attempt time.Time          // when the last read ended, good or not
	period  time.Duration      // the actual one of a stream
	late    *canonical.Failure // why a scrape ran out of time; nil if none did
	// observing: the observer has not returned from the latest reading.
	observing bool
	// logged: a stream found silent since its last tick, a malformed line, and the lack of a last
	// line that may be cut short in the latest reading.
	logged struct{ silent, malformed, unfinished bool }
}

// tooLate is the failure to answer before ctx ended, for a caller that asked at begun. It names
// the time that was given if the cause of ctx does.
func (p *Pipeline) tooLate(ctx context.Context, begun time.Time) *canonical.Failure {
	within := time.Since(begun)
	if given, ok := errors.AsType[canonical.TimedOut](context.Cause(ctx)); ok {
		within = time.Duration(given)
	}
	remedy := "raise scrape_timeout in Prometheus, or find out why the exporter is slow"
	if p.caps.Kind == source.Streamed {
		remedy = "see the log and the landing page for the errors of its streams, or wait a little longer"
	}
	return p.timeout(within.Round(time.Millisecond).String(), remedy)
}

// overdue is the failure of a read that took the longest time allowed.
func (p *Pipeline) overdue() *canonical.Failure {
	return p.timeout(p.opts.Timeout.String()+", which is --source.timeout",
		"find out why the exporter is slow, or raise --source.timeout and Prometheus' scrape_timeout")
}

func (p *Pipeline) timeout(within, remedy string) *canonical.Failure {
	return &canonical.Failure{Kind: string(source.Timeout), Timeout: true, Cause: p.Name() + " did not answer within " + within, Remedy: remedy}
}

// age returns the age of the latest good reading. Without one, or if the clock was set back, it
// is too old for any use.
func (s *status) age(now time.Time) time.Duration {
	if age := now.Sub(s.good); !s.good.IsZero() && age >= 0 {
		return age
	}
	return math.MaxInt64
}

// notReady returns the failure if no reading is young enough, nil if one is. The caller holds mu.
func (p *Pipeline) notReady(now time.Time) *canonical.Failure {
	s := &p.status
	switch {
	case s.age(now) <= p.staleAfter():
		return nil
	case s.state.Failure != nil:
		return s.state.Failure
	case s.late != nil:
		return s.late
	case !s.good.IsZero():
		return p.stale(now)
	}
	return &canonical.Failure{Kind: kindNotRead, Cause: p.Name() + " has not been read yet", Remedy: "wait for the first reading, or scrape /metrics"}
}

func (p *Pipeline) staleAfter() time.Duration {
	if p.caps.Kind == source.Scraped {
		return scrapedStaleAfter
	}
	return max(staleTicks*max(p.caps.Period, p.status.period), streamStaleAfter)
}

// stale is the failure of a source that has not failed since its last reading, which is too old.
func (p *Pipeline) stale(now time.Time) *canonical.Failure {
	age := max(0, now.Sub(p.status.good)).Round(time.Second)
	cause, remedy := " has been silent for %s", "see the log and the landing page for the errors of its streams"
	if p.caps.Kind == source.Scraped {
		cause, remedy = " was last read %s ago, and there was no scrape since", "scrape /metrics, or have it read between scrapes too: --poll=15s"
	}
	return &canonical.Failure{Kind: kindStale, Cause: p.Name() + fmt.Sprintf(cause, age), Remedy: remedy}
}

// fail records that the last read failed, and logs the first of equal failures in a row, but not those
// that stopping causes, nor the end of the source, which Run reports. The caller holds mu.
func (p *Pipeline) fail(failure *canonical.Failure) {
	before := p.status.state.Failure
	if failure.Kind != kindEnded && p.ctx.Err() == nil && (before == nil || before.Kind != failure.Kind || before.Remedy != failure.Remedy) {
		p.warn(unread, failure.Cause, failure.Remedy)
	}
	p.status.state.Failure, p.status.state.Streams = failure, p.streams()
	p.status.attempt = time.Now()
}

// unread is the log message for a source that cannot be read.
const unread = "source cannot be read"

func (p *Pipeline) warn(message, cause, remedy string) {
	p.opts.Logger.Warn(message, "reads", p.Name(), "cause", cause, "remedy", remedy)
}

// miss records that a scrape ran out of time, and logs the first in a row. The caller holds mu.
func (p *Pipeline) miss(failure *canonical.Failure) {
	if p.status.late == nil && p.ctx.Err() == nil {
		p.warn("a scrape ran out of time", failure.Cause, failure.Remedy)
	}
	p.status.late = failure
}

// inTime records that no scrape missed the latest reading. The caller holds mu.
func (p *Pipeline) inTime() {
	if p.status.late != nil {
		p.opts.Logger.Info("scrapes are answered in time again", "reads", p.Name())
	}
	p.status.late = nil
}

// logSilence logs the first scrape that finds a stream silent without a failure: its source may
// report the cause only later. A capture is silent only in a gap of its own, or if this process was stopped. The caller holds mu.
func (p *Pipeline) logSilence(failure *canonical.Failure) {
	if failure.Kind == kindStale && !p.status.logged.silent && p.caps.Backend != "replay" {
		p.status.logged.silent = true
		p.warn(unread, failure.Cause, failure.Remedy)
	}
}

// logReading logs what is new about a good reading. The caller holds mu and has not recorded it yet.
func (p *Pipeline) logReading(s *canonical.Source) {
	before := &p.status.state
	if before.Failure != nil || p.status.logged.silent {
		p.opts.Logger.Warn("source can be read again", "reads", s.Name) // as grave as the failure, so that nobody sees that alone
	}
	p.status.logged.silent = false
	if s.Devices == 0 && (before.Devices > 0 || p.status.good.IsZero()) {
		remedy := "check that the exporter sees its GPUs, and that the source is its /metrics"
		if p.caps.Kind == source.Streamed {
			remedy = "check that the source sees the node's GPUs: nvidia-smi, dcgmi discovery -l"
		}
		p.opts.Logger.Warn("no GPU in the reading", "reads", s.Name, "samples", s.Samples, "remedy", remedy)
	}
	if long := p.accounts.longLabel; long != nil && before.DroppedValues[canonical.DropLabelTooLong] == 0 {
		p.warn("a label value is longer than allowed", long.Cause, long.Remedy)
	}
	if s.DroppedAllocations > 0 && before.DroppedAllocations == 0 {
		p.opts.Logger.Warn("more pods or jobs hold GPUs than the proxy keeps counters for", "reads", s.Name, "left_out", s.DroppedAllocations,
			"remedy", "raise --series-limit; see kpulse_source_dropped_allocations_total")
	}
}

// logLines logs the first malformed lines, and the first of the readings in a row whose last line
// is left out. The caller holds mu.
func (p *Pipeline) logLines(b *raw.Batch) {
	logged, malformed := &p.status.logged, b.Skipped
	if b.Unfinished {
		malformed--
	}
	if malformed > 0 && !logged.malformed {
		logged.malformed = true
		p.opts.Logger.Warn("malformed lines are left out", "reads", p.Name(), "lines", malformed,
			"remedy", "see kpulse_source_skipped_lines_total; --passthrough=verbatim passes them on")
	}
	if b.Unfinished && !logged.unfinished {
		p.opts.Logger.Warn("the last line has no newline and may be cut short: it is left out", "reads", p.Name(),
			"remedy", "have the exporter send Content-Length, or end its last line: only the end of the connection shows where its answer ends")
	}
	logged.unfinished = b.Unfinished
}
