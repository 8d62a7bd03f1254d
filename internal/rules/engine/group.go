package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/kpulse/kpulse-proxy/internal/rules"
)

// group is a rules.Group and the state of its evaluation.
type group struct {
	rules.Group
	interval time.Duration
	rules    []*rule
	due      time.Time // of the next evaluation

	evaluated atomic.Int64 // time of the last evaluation, in milliseconds since 1970; 0 for never
	missed    atomic.Uint64
}

func newGroup(g rules.Group) *group {
	made := &group{Group: g, interval: g.Interval}
	if made.interval == 0 {
		made.interval = defaultInterval
	}
	for i := range g.Rules {
		r := &rule{Rule: g.Rules[i]}
		r.line.Store(int64(r.Line))
		made.rules = append(made.rules, r)
	}
	return made
}

// like reports whether g is equivalent to other, and so can continue in its place.
func (g *group) like(other *group) bool {
	if g.File != other.File || g.Name != other.Name || g.interval != other.interval ||
		g.Offset != other.Offset || g.Limit != other.Limit || len(g.rules) != len(other.rules) {
		return false
	}
	for i, r := range g.rules {
		if !r.like(other.rules[i]) {
			return false
		}
	}
	return true
}

// moveTo sets the line numbers to those of other, which is like g and was read later.
func (g *group) moveTo(other *group) {
	for i, r := range g.rules {
		r.line.Store(other.rules[i].line.Load())
	}
}

// evaluation is the evaluation of a group at an instant.
type evaluation struct {
	*Engine
	group *group
	at    int64 // of the results, in milliseconds since 1970
	// budget is how many results the remaining rules may have.
	budget int
}

// allow refuses too many results of a rule.
func (now *evaluation) allow(results int) error {
	switch limit := now.group.Limit; {
	case limit > 0 && results > limit:
		return fmt.Errorf("%d results, but only %d are allowed; aggregate more, or raise the limit", results, limit)
	case results > now.budget:
		return fmt.Errorf("%d results, but only %d of the %d that all rules together may have are left; aggregate more", results, now.budget, now.opts.Limits.Series)
	}
	return nil
}

// budgetOf returns how many results the other groups leave to g.
func (e *Engine) budgetOf(g *group) int {
	budget := e.opts.Limits.Series
	for _, other := range *e.groups.Load() {
		if other == g {
			continue
		}
		for _, r := range other.rules {
			budget -= len(r.order)
		}
	}
	return budget
}

// run evaluates the rules of a group one after the other, as at ts. Each sees the
// results of those before it.
func (e *Engine) run(ctx context.Context, g *group, ts time.Time) {
	ctx, cancel := context.WithTimeout(ctx, g.interval)
	defer cancel()
	g.evaluated.Store(ts.UnixMilli())
	ts = ts.Add(-g.Offset)
	e.store.sweep(ts.UnixMilli())
	now := &evaluation{Engine: e, group: g, at: ts.UnixMilli(), budget: e.budgetOf(g)}
	for _, r := range g.rules {
		begun := time.Now()
		vector, err := e.resultsOf(ctx, r, ts)
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
			return // the engine stops; the results are not served
		}
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("the group's rules up to this one take longer than its interval of %s; lengthen it, or aggregate earlier", g.interval)
		}
		r.evaluations.Add(1)
		if failed := r.record(vector, now); err == nil {
			err = failed
		}
		r.nanos.Add(int64(time.Since(begun)))
		e.report(g, r, err)
		if err != nil {
			r.failures.Add(1) // last, so that the log has the reason when the counter rises
		}
	}
}

// errServed prevents a series from being served twice.
var errServed = errors.New("a source already serves a family by the name that the rule records; record another, such as gpu:power:sum, and reload")

// resultsOf evaluates a rule's expression.
func (e *Engine) resultsOf(ctx context.Context, r *rule, ts time.Time) (promql.Vector, error) {
	if e.interest.serves(r.Record) {
		return nil, errServed
	}
	return e.query(ctx, r.Text, ts)
}

// query evaluates an expression at one time.
func (e *Engine) query(ctx context.Context, text string, ts time.Time) (promql.Vector, error) {
	q, err := e.promql.NewInstantQuery(ctx, e.store, nil, text, ts)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	res := q.Exec(ctx)
	if res.Err != nil {
		return nil, res.Err
	}
	switch v := res.Value.(type) {
	case promql.Vector:
		return v, nil
	case promql.Scalar:
		return promql.Vector{{T: v.T, F: v.V}}, nil
	}
	return nil, fmt.Errorf("the result is a %s; record a vector or a scalar", res.Value.Type())
}

// report logs when a rule starts to fail or works again.
func (e *Engine) report(g *group, r *rule, err error) {
	before := r.failure
	if r.failure = ""; err != nil {
		r.failure = err.Error()
	}
	switch {
	case r.failure != "" && before == "":
		e.opts.Logger.Warn("a rule cannot be evaluated, and has no results", "file", g.File, "line", r.line.Load(), "group", g.Name, "rule", r.Record,
			"cause", r.failure, "remedy", "correct the rule and reload; see kpulse_proxy_rule_evaluation_failures_total")
	case r.failure == "" && before != "":
		e.opts.Logger.Info("a rule can be evaluated again", "file", g.File, "line", r.line.Load(), "group", g.Name, "rule", r.Record)
	}
}
