// Package engine evaluates recording rules inside the proxy, with Prometheus' own
// PromQL engine, over the last minutes of the series that the proxy serves.
package engine

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/rules"
)

// defaultInterval is the interval of a group without one, and the step of a subquery
// without one. It is also the interval at which the proxy reads an exporter by itself.
const defaultInterval = 15 * time.Second

// longestTimeout is beyond any interval; each evaluation has its own timeout.
const longestTimeout = 24 * time.Hour

// tolerance is how far the clock may be set back without consequence, and how old a reading may
// be.
const tolerance = time.Minute

// farFuture is later than any reading.
var farFuture = time.Unix(1<<40, 0)

// Options configure an Engine.
type Options struct {
	Logger *slog.Logger
	// Render returns the exposition that is served of a reading, in parts of whole lines.
	// One goroutine at a time calls it, and a result is not used after the next call.
	Render func(*canonical.Snapshot) [][]byte
	// Rank returns the place of a source in the configuration, from 0: of a series that several have,
	// rules see that of the first. It is negative for a source that left: its series end, and it is
	// forgotten. Nil means that there is one source.
	Rank func(source string) int
	// Serves reports whether a reading of this source would be served now; otherwise
	// rules do not see it either. Nil means always.
	Serves func(source string) bool
	Limits Limits
}

// Engine evaluates recording rules. Observe and Failed pass it readings, Run evaluates,
// and Results, Collect, Replace and Limit may be called at any time.
type Engine struct {
	opts   Options
	promql *promql.Engine
	inbox  *inbox

	// mu is held while readings are stored and while a group is evaluated.
	mu       sync.Mutex
	store    *store
	interest *interest
	pages    map[string]*page // by source

	groups   atomic.Pointer[[]*group]
	served   atomic.Pointer[[]block]
	replaced chan struct{}
}

// New returns an engine without rules.
func New(opts Options) *Engine {
	if opts.Rank == nil {
		opts.Rank = func(string) int { return 0 }
	}
	if opts.Serves == nil {
		opts.Serves = func(string) bool { return true }
	}
	e := &Engine{
		opts: opts, promql: newPromQL(opts), inbox: newInbox(), store: newStore(opts.Limits),
		interest: newInterest(nil, nil), pages: map[string]*page{}, replaced: make(chan struct{}, 1),
	}
	e.groups.Store(&[]*group{})
	e.served.Store(&[]block{})
	return e
}

func newPromQL(opts Options) *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		Logger:                   opts.Logger,
		MaxSamples:               opts.Limits.Samples,
		Timeout:                  longestTimeout,
		LookbackDelta:            lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return defaultInterval.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		Parser:                   parser.NewParser(parser.Options{}),
	})
}

// Limit changes Limits.Samples. It waits for a running evaluation. If there are more samples, the
// series lose their oldest as new ones come.
func (e *Engine) Limit(samples int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opts.Limits.Samples, e.store.limits.Samples = samples, samples
	e.promql = newPromQL(e.opts)
}

// Observe passes a published reading to the engine. If it returns true, the engine uses
// the snapshot and releases lease when it is done. It does not block.
func (e *Engine) Observe(s *canonical.Snapshot, lease interface{ Release() }) bool {
	if len(*e.groups.Load()) == 0 {
		return false
	}
	at, now := s.Source.At, time.Now()
	if age := now.Sub(at); age < 0 || age > tolerance {
		at = now // a capture is played, whose times are of the past
	}
	return e.inbox.put(outcome{source: s.Source.Name, at: at, snapshot: s, lease: lease})
}

// Failed reports that a source could not be read at the time at: its series end there. It
// does not block.
func (e *Engine) Failed(source string, at time.Time) { e.inbox.put(outcome{source: source, at: at}) }

// Replace sets the rules to evaluate. Unchanged groups keep their results, and series that
// are still selected keep their samples. It waits for a running evaluation.
func (e *Engine) Replace(groups []rules.Group, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.interest = newInterest(groups, e.interest)
	before, kept := *e.groups.Load(), map[*group]bool{}
	list := make([]*group, len(groups))
	for i := range groups {
		list[i] = newGroup(groups[i], after(now, groups[i].Interval))
		for _, g := range before {
			if !kept[g] && list[i].continues(g) {
				kept[g] = true
				break
			}
		}
	}
	for _, g := range before {
		for _, r := range g.rules {
			if !kept[g] {
				e.record(r, nil, now.UnixMilli())
			}
		}
	}
	e.store.each(func(s *series) (selected bool) {
		s.keep, selected = e.interest.keep(s.labels)
		return selected
	})
	for _, p := range e.pages { // which may be selected now
		maps.DeleteFunc(p.lines, func(_ string, l *line) bool { return l.series == nil || l.series.dropped })
	}
	e.groups.Store(&list)
	e.publish()
	signal(e.replaced)
}

// Run stores readings as they come and evaluates each group at multiples of its interval,
// until ctx ends. If several groups are due, the earliest comes first; groups that are due
// at the same time follow the order of the files.
func (e *Engine) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		timer.Reset(max(0, time.Until(e.step(ctx, time.Now()))))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-e.inbox.signal:
		case <-e.replaced:
		}
	}
	for o, ok := e.inbox.next(farFuture); ok; o, ok = e.inbox.next(farFuture) {
		if o.lease != nil {
			o.lease.Release()
		}
	}
}

// step stores the readings up to now, evaluates a group if one is due, and returns when the next
// one is.
func (e *Engine) step(ctx context.Context, now time.Time) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.next()
	if g == nil || g.due.After(now) {
		e.storeReadings(now)
		if g == nil {
			return now.Add(longestTimeout)
		}
		return g.due
	}
	ts := g.due
	if latest := after(now, g.Interval).Add(-g.Interval); latest.After(ts) {
		g.missed.Add(uint64(latest.Sub(ts) / g.Interval))
		ts = latest
	}
	if g.due = ts; e.next() != g { // other groups are due earlier
		return now
	}
	e.storeReadings(ts) // later ones wait: the result at ts must not depend on the time of the evaluation
	e.silence(ts)
	e.run(ctx, g, ts)
	g.due = after(ts, g.Interval)
	e.publish()
	return e.next().due
}

// next returns the group that is due first, nil if there is none.
func (e *Engine) next() *group {
	var first *group
	for _, g := range *e.groups.Load() {
		if first == nil || g.due.Before(first.due) {
			first = g
		}
	}
	return first
}

// after returns the first multiple of interval, defaultInterval if it is 0, after t, in Unix time.
func after(t time.Time, interval time.Duration) time.Time {
	if interval == 0 {
		interval = defaultInterval
	}
	n := t.UnixNano() / int64(interval)
	return time.Unix(0, (n+1)*int64(interval))
}

// storeReadings stores the waiting readings up to an instant. If a source starts to serve a
// name that a rule records, the rule's results are no longer served.
func (e *Engine) storeReadings(until time.Time) {
	for {
		o, ok := e.inbox.next(until)
		if !ok {
			break
		}
		var parts [][]byte
		rank := e.opts.Rank(o.source)
		if o.snapshot != nil && rank >= 0 {
			parts = e.opts.Render(o.snapshot)
		}
		if e.pages[o.source] == nil {
			e.pages[o.source] = &page{}
		}
		e.pages[o.source].rank = rank
		e.pages[o.source].observe(e.store, e.interest, o.at.UnixMilli(), parts)
		if o.lease != nil {
			o.lease.Release()
		}
	}
	if e.interest.changed {
		e.interest.changed = false
		e.publish()
	}
}

// silence ends the series of sources that would not be served, and forgets sources that
// left.
func (e *Engine) silence(at time.Time) {
	for source, p := range e.pages {
		known := e.opts.Rank(source) >= 0
		if !known || len(p.lines) > 0 && !e.opts.Serves(source) {
			p.observe(e.store, e.interest, at.UnixMilli(), nil)
		}
		if !known {
			delete(e.pages, source)
		}
	}
}
