package fleet

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
)

// Script is given series, for which rules are evaluated.
type Script struct {
	Groups []rulefmt.RuleGroup // in the order of their evaluation
	Every  time.Duration       // between samples and evaluations, less than 5 minutes
	Series []Scripted
}

// Scripted is a series with a value for each step. It is absent where the value is NaN.
type Scripted struct {
	Labels labels.Labels
	Values []float64
}

// Play calls each after each evaluation, with the labels of the alerts that fire then.
func (s Script) Play(ctx context.Context, each func(step int, firing []map[string]string)) error {
	db, steps := newStore(), 0
	e := newEvaluator(db, s.Groups)
	began := time.Unix(1_800_000_000, 0).Truncate(time.Hour)
	for _, of := range s.Series {
		m := db.series(of.Labels)
		there := false
		for step, v := range of.Values {
			at := began.Add(time.Duration(step) * s.Every).UnixMilli()
			switch {
			case !math.IsNaN(v):
				m.append(at, v)
			case there:
				m.end(at)
			}
			there = !math.IsNaN(v)
		}
		steps = max(steps, len(of.Values))
	}
	for step := range steps {
		if err := e.evaluate(ctx, began.Add(time.Duration(step)*s.Every), true); err != nil {
			return err
		}
		var firing []map[string]string
		for _, r := range e.rules {
			for _, a := range r.active {
				if a.firing {
					l := a.labels.Map()
					l[labels.AlertName] = r.Alert
					firing = append(firing, l)
				}
			}
		}
		each(step, firing)
	}
	return nil
}
