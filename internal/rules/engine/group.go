package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/rules"
)

// group is a rules.Group with an interval, and the state of its evaluation.
type group struct {
	rules.Group
	rules []*rule
	due   time.Time // of the next evaluation

	evaluated atomic.Int64 // time of the last evaluation, in milliseconds since 1970; 0 for never
	missed    atomic.Uint64
}

// rule is a rules.Rule and the state of its evaluation, which a reload may hand to another.
type rule struct {
	rules.Rule
	*ruleState
}

type ruleState struct {
	results []result // of the last evaluation
	spare   []result // memory for the next one
	failure string   // of the last evaluation, "" for success

	evaluations, failures atomic.Uint64
	samples               atomic.Int64
	nanos                 atomic.Int64 // spent on all evaluations
}

// result is one series that a rule records.
type result struct {
	given  labels.Labels // of the expression's result
	labels labels.Labels
	text   string  // its line in the exposition, up to the value
	series *series // in the store, nil if no rule selects it
	value  float64
}

func newGroup(g rules.Group, due time.Time) *group {
	made := &group{Group: g, due: due}
	if made.Interval == 0 {
		made.Interval = defaultInterval
	}
	for i := range g.Rules {
		made.rules = append(made.rules, &rule{g.Rules[i], &ruleState{}})
	}
	return made
}

// continues takes the state of old if g is the same group, whose lines may have moved.
func (g *group) continues(old *group) bool {
	if g.File != old.File || g.Name != old.Name || g.Interval != old.Interval || g.Offset != old.Offset || g.Limit != old.Limit ||
		!slices.EqualFunc(g.rules, old.rules, func(a, b *rule) bool {
			return a.Record == b.Record && a.Text == b.Text && maps.Equal(a.Labels, b.Labels)
		}) {
		return false
	}
	for i := range g.rules {
		g.rules[i].ruleState = old.rules[i].ruleState
	}
	g.due = old.due
	g.evaluated.Store(old.evaluated.Load())
	g.missed.Store(old.missed.Load())
	return true
}

// run evaluates the rules of a group one after the other, as at ts. Each sees the
// results of those before it.
func (e *Engine) run(ctx context.Context, g *group, ts time.Time) {
	ctx, cancel := context.WithTimeout(ctx, g.Interval)
	defer cancel()
	g.evaluated.Store(ts.UnixMilli())
	ts = ts.Add(-g.Offset)
	e.store.sweep(ts.UnixMilli())
	for _, r := range g.rules {
		begun := time.Now()
		results, err := e.evaluate(ctx, g, r, ts)
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
			return // the engine stops; the results are not served
		}
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("the group's rules up to this one take longer than its interval of %s; lengthen it, or aggregate earlier", g.Interval)
		}
		e.record(r, results, ts.UnixMilli())
		r.evaluations.Add(1)
		r.nanos.Add(int64(time.Since(begun)))
		e.report(g, r, err)
		if err != nil {
			r.failures.Add(1) // last, so that the log has the reason when the counter rises
		}
	}
}

// evaluate returns the results of a rule; none with an error.
func (e *Engine) evaluate(ctx context.Context, g *group, r *rule, ts time.Time) ([]result, error) {
	if e.interest.records[r.Record] {
		return nil, errors.New("a source already serves a family by the name that the rule records; record another, such as gpu:power:sum, and reload")
	}
	q, err := e.promql.NewInstantQuery(ctx, e.store, nil, r.Text, ts)
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
		if err := e.allow(g, r, len(v)); err != nil {
			return nil, err
		}
		return r.resultsOf(v)
	case promql.Scalar:
		return r.resultsOf(promql.Vector{{T: v.T, F: v.V}})
	}
	return nil, fmt.Errorf("the result is a %s; record a vector or a scalar", res.Value.Type())
}

// allow refuses too many results of a rule.
func (e *Engine) allow(g *group, r *rule, results int) error {
	budget := e.opts.Limits.Series
	for _, other := range *e.groups.Load() {
		for _, o := range other.rules {
			if o == r {
				break // the rules after it have not been evaluated yet
			}
			budget -= len(o.results)
		}
	}
	switch {
	case g.Limit > 0 && results > g.Limit:
		return fmt.Errorf("%d results, but only %d are allowed; aggregate more, or raise the limit", results, g.Limit)
	case results > budget:
		return fmt.Errorf("%d results, but only %d of the %d that all rules together may have are left; aggregate more", results, budget, e.opts.Limits.Series)
	}
	return nil
}

// resultsOf applies the rule's name and labels to the result of its expression. What was at the same
// place in the last result is known.
func (r *rule) resultsOf(vector promql.Vector) ([]result, error) {
	results, fresh := r.spare[:0], len(vector) != len(r.results)
	for i := range vector {
		if vector[i].H != nil {
			return nil, errors.New("a result is a native histogram, which the text format cannot represent; record a number from it, such as its histogram_count()")
		}
		if i < len(r.results) && labels.Equal(r.results[i].given, vector[i].Metric) {
			results = append(results, r.results[i])
			results[i].value = vector[i].F
			continue
		}
		fresh = true
		b := labels.NewBuilder(vector[i].Metric)
		b.Set(model.MetricNameLabel, r.Record)
		for name, value := range r.Labels {
			b.Set(name, value)
		}
		set := b.Labels()
		text := seriesText(set)
		if text == "" { // a page that Prometheus 2 would refuse as a whole
			return nil, errors.New("a result has a label name that the text format does not allow; have label_replace write letters, digits and _")
		}
		results = append(results, result{given: vector[i].Metric.Copy(), labels: set, text: text, value: vector[i].F})
	}
	if texts := map[string]bool{}; fresh {
		for _, x := range results {
			if texts[x.text] { // an error in Prometheus too
				return nil, errors.New("two results have the same labels after the rule's are applied; aggregate them, or do not set a label that distinguishes them")
			}
			texts[x.text] = true
		}
	}
	return results, nil
}

// seriesText returns a series in the text format, followed by a space; "" if the format
// does not allow the name of a label.
func seriesText(l labels.Labels) string {
	b := []byte(l.Get(model.MetricNameLabel))
	separator, unknown := byte('{'), false
	l.Range(func(one labels.Label) {
		if one.Name == model.MetricNameLabel {
			return
		}
		unknown = unknown || !model.LegacyValidation.IsValidLabelName(one.Name)
		b = exposition.AppendLabel(append(b, separator), one.Name, one.Value)
		separator = ','
	})
	if unknown {
		return ""
	}
	if separator == ',' {
		b = append(b, '}')
	}
	return string(append(b, ' '))
}

// record stores the results of a rule that other rules select, and ends those that are gone. After
// an error the rule has no results: earlier ones must not pass for current ones.
func (e *Engine) record(r *rule, results []result, at int64) {
	changed := len(results) != len(r.results)
	for i := range results {
		x := &results[i]
		changed = changed || x.text != r.results[i].text
		if x.series == nil || x.series.dropped {
			x.series = nil
			if millis, selected := e.interest.keep(x.labels); selected {
				x.series = e.store.get(x.labels, millis)
			}
		}
		if x.series != nil {
			e.store.add(x.series, at, x.value)
		}
	}
	if changed {
		now := make(map[*series]bool, len(results))
		for _, x := range results {
			now[x.series] = true
		}
		for _, x := range r.results {
			if x.series != nil && !now[x.series] {
				e.store.end(x.series, at)
			}
		}
	}
	r.results, r.spare = results, r.results
	r.samples.Store(int64(len(results)))
}

// report logs when a rule starts to fail or works again.
func (e *Engine) report(g *group, r *rule, err error) {
	before := r.failure
	if r.failure = ""; err != nil {
		r.failure = err.Error()
	}
	switch {
	case r.failure != "" && before == "":
		e.opts.Logger.Warn("a rule cannot be evaluated, and has no results", "file", g.File, "line", r.Line, "group", g.Name, "rule", r.Record,
			"cause", r.failure, "remedy", "correct the rule and reload; see kpulse_proxy_rule_evaluation_failures_total")
	case r.failure == "" && before != "":
		e.opts.Logger.Info("a rule can be evaluated again", "file", g.File, "line", r.Line, "group", g.Name, "rule", r.Record)
	}
}
