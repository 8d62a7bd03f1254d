// Package engine evaluates recording rules inside the proxy, with Prometheus' own
// PromQL engine, over the last minutes of the series that the proxy serves.
package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
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

// leap is how far the clock may be set back without consequence, and how old a reading may
// be.
const leap = time.Minute

// farFuture is later than any reading.
var farFuture = time.Unix(1<<40, 0)

// Options configure an Engine.
type Options struct {
	Logger *slog.Logger
	// Render returns the exposition that is served of a reading, in parts of whole lines.
	// One goroutine at a time calls it, and a result is not used after the next call.
	Render func(*canonical.Snapshot) [][]byte
	// Order ranks the sources that are served: if several have a series, rules see the
	// samples of the lowest rank. A source that left has a negative rank, and is
	// forgotten. If Order is nil, all rank alike, and the source that is read first counts.
	Order func(source string) int
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

	now time.Time // of the last step, by the wall clock

	groups   atomic.Pointer[[]*group]
	served   atomic.Pointer[[]block]
	replaced chan struct{}
}

// New returns an engine without rules.
func New(opts Options) *Engine {
	e := &Engine{
		opts:     opts,
		inbox:    newInbox(),
		store:    newStore(opts.Limits),
		interest: newInterest(nil),
		pages:    map[string]*page{},
		replaced: make(chan struct{}, 1),
		promql:   newPromQL(opts),
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

// Limit changes Limits.Samples. It waits for a running evaluation. If the rules change
// too, call Replace first, so that series that are no longer selected do not count against
// the new limit.
func (e *Engine) Limit(samples int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if samples == e.opts.Limits.Samples {
		return
	}
	e.opts.Limits.Samples = samples
	e.store.limit(samples)
	e.promql = newPromQL(e.opts)
}

// Observe passes a published reading to the engine. If it returns true, the engine uses
// the snapshot and releases lease when it is done. It does not block.
func (e *Engine) Observe(s *canonical.Snapshot, lease interface{ Release() }) bool {
	if len(*e.groups.Load()) == 0 {
		return false
	}
	at, now := s.Source.At, time.Now()
	if age := now.Sub(at); age < 0 || age > leap {
		at = now // a capture is played, whose times are of the past
	}
	return e.inbox.put(reading{source: s.Source.Name, at: at, snapshot: s, lease: lease})
}

// Failed reports that a source could not be read at the time at: its series end there. It
// does not block.
func (e *Engine) Failed(source string, at time.Time) { e.inbox.fail(source, at) }

// Replace sets the rules to evaluate. Unchanged groups keep their results, and series that
// are still selected keep their samples. It waits for a running evaluation.
func (e *Engine) Replace(groups []rules.Group, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := newInterest(groups)
	next.follow(e.interest)
	e.interest = next
	e.store.retain(next)
	for _, p := range e.pages {
		p.forget()
	}
	before := *e.groups.Load()
	kept := map[*group]bool{}
	list := make([]*group, len(groups))
	for i := range groups {
		list[i] = newGroup(groups[i])
		for _, g := range before {
			if !kept[g] && g.like(list[i]) {
				g.moveTo(list[i])
				list[i] = g
				kept[g] = true
				break
			}
		}
		if !kept[list[i]] {
			list[i].due = after(now, list[i].interval)
		}
	}
	for _, g := range before {
		g.leave(e, kept[g], now.UnixMilli())
	}
	e.groups.Store(&list)
	e.publish(nil)
	select {
	case e.replaced <- struct{}{}:
	default:
	}
}

// leave ends the results of a group that does not go on, and otherwise looks them up in
// the store again.
func (g *group) leave(e *Engine, goesOn bool, t int64) {
	for _, r := range g.rules {
		if !goesOn {
			r.end(e.store, t)
			continue
		}
		for _, list := range r.outputs {
			for _, x := range list {
				x.series = e.seriesOf(x.labels)
			}
		}
	}
}

// seriesOf returns the series of a result in the store, nil if no rule selects it.
func (e *Engine) seriesOf(l labels.Labels) *series {
	millis, selected := keep(e.interest.family(l.Get(model.MetricNameLabel)), l)
	if !selected {
		return nil
	}
	return e.store.get(l, millis)
}

// Run stores readings as they come and evaluates each group at multiples of its interval,
// until ctx ends. If several groups are due, the earliest comes first; groups that are due
// at the same time follow the order of the files.
func (e *Engine) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		e.step(ctx, time.Now())
		timer.Reset(e.rest(time.Now()))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-e.inbox.signal:
		case <-e.replaced:
		}
	}
	e.drain(farFuture)
}

// step stores the readings up to now, and evaluates a group if one is due.
func (e *Engine) step(ctx context.Context, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watch(now)
	g := e.next()
	if g == nil || g.due.After(now) {
		e.storeReadings(now)
		return
	}
	ts := g.due
	if latest := after(now, g.interval).Add(-g.interval); latest.After(ts) {
		g.missed.Add(uint64(latest.Sub(ts) / g.interval))
		ts = latest
	}
	if g.due = ts; e.next() != g { // other groups are due earlier
		return
	}
	e.storeReadings(ts) // later ones wait: the result at ts must not depend on the time of the evaluation
	e.silence(ts)
	e.run(ctx, g, ts)
	g.due = after(ts, g.interval)
	e.publish(g)
}

// watch starts over if the clock was set back: the stored samples are then in the future,
// and would hide new ones.
func (e *Engine) watch(now time.Time) {
	if e.now.Sub(now.Round(0)) > leap {
		e.opts.Logger.Warn("the clock was set back; the rules start over", "by", e.now.Sub(now.Round(0)))
		e.drain(farFuture)
		e.store.retain(newInterest(nil))
		for _, p := range e.pages {
			p.forget()
		}
		for _, g := range *e.groups.Load() {
			g.due = after(now, g.interval)
		}
	}
	e.now = now.Round(0)
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

// rest returns the time until a group is due.
func (e *Engine) rest(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if g := e.next(); g != nil {
		return max(0, g.due.Sub(now))
	}
	return longestTimeout
}

// after returns the first multiple of interval after t, in Unix time.
func after(t time.Time, interval time.Duration) time.Time {
	n := t.UnixNano() / int64(interval)
	return time.Unix(0, (n+1)*int64(interval))
}

// drain releases the waiting readings up to an instant.
func (e *Engine) drain(until time.Time) {
	for {
		r, ok := e.inbox.next(until)
		if !ok {
			return
		}
		if r.lease != nil {
			r.lease.Release()
		}
	}
}

// storeReadings stores the waiting readings up to an instant. If a source starts to serve a
// name that a rule records, the rule's results are no longer served.
func (e *Engine) storeReadings(until time.Time) {
	for {
		r, ok := e.inbox.next(until)
		if !ok {
			break
		}
		p := e.pageOf(r.source)
		var parts [][]byte
		if r.snapshot != nil && p.rank >= 0 { // the source has not left since
			parts = e.opts.Render(r.snapshot)
		}
		p.observe(e.store, e.interest, r.at.UnixMilli(), parts)
		if r.snapshot != nil {
			p.reset = false
			e.settle()
		}
		if r.lease != nil {
			r.lease.Release()
		}
	}
	if e.interest.changed {
		e.interest.changed = false
		e.publish(nil)
	}
}

// settle forgets what sources served before a reload, once each has been read again.
func (e *Engine) settle() {
	for _, p := range e.pages {
		if p.reset {
			return
		}
	}
	e.interest.before = nil
}

// pageOf returns the page of a source.
func (e *Engine) pageOf(source string) *page {
	p := e.pages[source]
	if p == nil {
		p = &page{}
		e.pages[source] = p
	}
	if e.opts.Order != nil {
		p.rank = e.opts.Order(source) // changes as other sources come and go
	}
	return p
}

// silence ends the series of sources that would not be served, and forgets sources that
// left.
func (e *Engine) silence(at time.Time) {
	for source, p := range e.pages {
		if len(p.lines) > 0 && e.opts.Serves != nil && !e.opts.Serves(source) {
			p.observe(e.store, e.interest, at.UnixMilli(), nil)
		}
		if e.opts.Order != nil && e.opts.Order(source) < 0 {
			p.observe(e.store, e.interest, at.UnixMilli(), nil)
			delete(e.pages, source)
		}
	}
}
