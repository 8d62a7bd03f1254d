package rules

import (
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// judgeOrder warns of groups that read what only a later one records: evaluated
// before it, they see what it gave the last time. Prometheus evaluates groups beside
// each other, so there it is no matter of order.
func (l *loader) judgeOrder() {
	if l.opts.ForPrometheus {
		return
	}
	first := map[string]int{} // the first group that records a name
	for i := range l.set.Groups {
		for _, rule := range l.set.Groups[i].Rules {
			if _, ok := first[rule.Record]; !ok {
				first[rule.Record] = i
			}
		}
	}
	for i := range l.set.Groups {
		told := map[int]bool{}
		for _, rule := range l.set.Groups[i].Rules {
			for _, s := range Selectors(rule.Expr, 0) {
				name := nameIn(s)
				if later, ok := first[name]; ok && later > i && !told[later] {
					told[later] = true
					l.warnOfOrder(&l.set.Groups[i], &rule, name, &l.set.Groups[later])
				}
			}
		}
	}
}

// nameIn returns the name that a selector is of, "" if it is of several.
func nameIn(s Selector) string {
	for _, m := range s.Vector.LabelMatchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return ""
}

func (l *loader) warnOfOrder(g *Group, rule *Rule, name string, later *Group) {
	where, remedy := fmt.Sprintf("group %q", later.Name), "put that group first"
	if later.File != g.File {
		where, remedy = where+" of "+later.File, "name that file first"
	}
	for _, r := range l.readers {
		if r.file == g.File {
			r.findings = append(r.findings, finding{Problem: diag.Problem{
				File: g.File, Line: rule.Line, Place: placeOf(g.Name, rule.Number, rule.Record, ""), Warning: true,
				Text: fmt.Sprintf("reads %s, which %s records after it, and so sees what was recorded an evaluation ago; %s", name, where, remedy),
			}})
		}
	}
}
