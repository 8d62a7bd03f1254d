package fleet

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
)

// Alert is a firing alert.
type Alert struct {
	Labels, Annotations map[string]string
	Since               time.Time // time from which its expression has a result
}

// evaluator evaluates groups of rules over a store as Prometheus' rule manager does, with
// Prometheus' engine. It does not use the rule manager, which depends on Prometheus' database
// and the clients of three clouds.
type evaluator struct {
	engine *promql.Engine
	store  *store
	rules  []*rule
}

// rule is a rule and its last results.
type rule struct {
	rulefmt.Rule
	every   time.Duration    // the interval of its group
	present map[*series]bool // after the last evaluation
	active  map[uint64]*active
}

// active is an alert whose expression has a result, or had one within keep_firing_for.
type active struct {
	labels labels.Labels // without alertname
	since  time.Time
	sample promql.Sample // the last
	gone   time.Time     // zero while the expression has a result
	firing bool
}

func newEvaluator(s *store, groups []rulefmt.RuleGroup) *evaluator {
	e := &evaluator{store: s, engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000, Timeout: time.Hour, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
	})}
	for _, g := range groups {
		for _, r := range g.Rules {
			e.rules = append(e.rules, &rule{Rule: r, every: max(interval, time.Duration(g.Interval)), active: map[uint64]*active{}})
		}
	}
	return e
}

// query returns the result of an expression at a time.
func (e *evaluator) query(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	q, err := e.engine.NewInstantQuery(ctx, e.store, nil, expr, at)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	defer q.Close()
	vector, err := q.Exec(ctx).Vector()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	return slices.Clone(vector), nil // Close reuses the query's memory
}

// evaluate evaluates all rules in order, alerting rules only if alerts is set.
func (e *evaluator) evaluate(ctx context.Context, at time.Time, alerts bool) error {
	for _, r := range e.rules {
		if r.Alert != "" && !alerts || at.Unix()%int64(r.every.Seconds()) != 0 {
			continue
		}
		vector, err := e.query(ctx, r.Expr, at)
		if err != nil {
			return err
		}
		if r.Alert != "" {
			vector = r.follow(vector, at)
		}
		present := make(map[*series]bool, len(vector))
		for _, s := range vector {
			b := labels.NewBuilder(s.Metric)
			if r.Alert == "" {
				b.Set(model.MetricNameLabel, r.Record)
				for name, v := range r.Labels {
					b.Set(name, v)
				}
			}
			m := e.store.series(b.Labels())
			if present[m] {
				return fmt.Errorf("%s%s returns %s twice", r.Record, r.Alert, m.labels)
			}
			m.append(at.UnixMilli(), s.F)
			present[m] = true
		}
		for m := range r.present {
			if !present[m] {
				m.end(at.UnixMilli())
			}
		}
		r.present = present
	}
	return nil
}

// follow updates an alert's state from the result of its expression, and returns its series
// ALERTS and ALERTS_FOR_STATE.
func (r *rule) follow(result promql.Vector, at time.Time) (vector promql.Vector) {
	now := map[uint64]bool{}
	for _, s := range result {
		b := labels.NewBuilder(s.Metric).Del(model.MetricNameLabel)
		for name, v := range r.Labels {
			b.Set(name, v)
		}
		l := b.Labels()
		now[l.Hash()] = true
		a := r.active[l.Hash()]
		if a == nil {
			a = &active{labels: l, since: at}
			r.active[l.Hash()] = a
		}
		a.sample, a.gone = s, time.Time{}
		a.firing = a.firing || at.Sub(a.since) >= time.Duration(r.For)
	}
	for hash, a := range r.active {
		if !now[hash] {
			if a.gone.IsZero() {
				a.gone = at
			}
			if !a.firing || at.Sub(a.gone) >= time.Duration(r.KeepFiringFor) {
				delete(r.active, hash)
				continue
			}
		}
		state := "pending"
		if a.firing {
			state = "firing"
		}
		of := func(name string) *labels.Builder {
			return labels.NewBuilder(a.labels).Set(model.MetricNameLabel, name).Set(labels.AlertName, r.Alert)
		}
		vector = append(vector,
			promql.Sample{Metric: of("ALERTS").Set("alertstate", state).Labels(), F: 1},
			promql.Sample{Metric: of("ALERTS_FOR_STATE").Labels(), F: float64(a.since.Unix())})
	}
	return vector
}

// firing returns the firing alerts, with their annotations at a time.
func (e *evaluator) firing(ctx context.Context, at time.Time) (all []Alert, err error) {
	for _, r := range e.rules {
		for _, hash := range slices.Sorted(maps.Keys(r.active)) {
			a := r.active[hash]
			if !a.firing {
				continue
			}
			alert := Alert{Labels: a.labels.Map(), Annotations: map[string]string{}, Since: a.since}
			alert.Labels[labels.AlertName] = r.Alert
			for name, text := range r.Annotations {
				if alert.Annotations[name], err = e.expand(ctx, r, a, text, at); err != nil {
					return nil, fmt.Errorf("%s of %s: %w", name, r.Alert, err)
				}
			}
			all = append(all, alert)
		}
	}
	return all, nil
}

// shorthands are the definitions that Prometheus prepends to the templates of alerts.
const shorthands = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"

// expand expands a template of an alert.
func (e *evaluator) expand(ctx context.Context, r *rule, a *active, text string, at time.Time) (string, error) {
	data := template.AlertTemplateData(a.sample.Metric.Map(), nil, "", a.sample)
	return template.NewTemplateExpander(ctx, shorthands+text, "__alert_"+r.Alert, data, model.TimeFromUnixNano(at.UnixNano()), e.query, &url.URL{}, nil).Expand()
}
