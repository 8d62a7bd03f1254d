package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// MinInterval is the least interval of a group: readings hardly come more often.
const MinInterval = time.Second

// telemetry begins the names of the proxy's telemetry, which Prometheus may scrape from a
// separate page.
const telemetry = canonical.Prefix + "proxy_"

// lintGroup reports mistakes of the group at n itself.
func (r *reader) lintGroup(g *rulefmt.RuleGroup, n *yaml.Node) {
	first, twice := r.groups[g.Name]
	switch {
	case g.Name == "":
		r.reject(n, "has no name; give it one that no other group of the file has")
	case twice:
		r.reject(n, "has the name of the group in line %d; give it another, or join them", first)
	default:
		r.groups[g.Name] = n.Line
	}
	if d := time.Duration(g.Interval); d > 0 && d < MinInterval {
		r.doubt(childOr(n, "interval"), "interval %s is too short to be evaluated here; write %s or more", g.Interval, model.Duration(MinInterval))
	}
	if g.Limit < 0 {
		r.reject(childOr(n, "limit"), "\"%d\" is not a number of series; write a whole number, or 0 for no limit", g.Limit)
	}
	r.lintLabels(g.Labels, n)
}

// lintLabels reports the names in the labels of the group or rule at n that cannot be labels of a
// served series. Names that YAML has merged from elsewhere are reported at the labels.
func (r *reader) lintLabels(labels map[string]string, n *yaml.Node) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		at := childOr(n, "labels")
		if key, _ := entry(at, name); key != nil {
			at = key
		}
		switch {
		case name == "" || name == model.MetricNameLabel:
			r.reject(at, "%q cannot be a label of a rule; remove it", name)
		case !model.LegacyValidation.IsValidLabelName(name):
			r.doubt(at, "%q is not a label name of the text format; use letters, digits and _", name)
		}
	}
}

// lintName reports mistakes in the name that the rule at n records. rulefmt refuses names
// with braces.
func (r *reader) lintName(name string, n *yaml.Node) {
	n = childOr(n, "record")
	switch {
	case strings.ContainsAny(name, "{}"):
	case !model.LegacyValidation.IsValidMetricName(name):
		r.doubt(n, "%q is not a metric name of the text format; use letters, digits, _ and :", name)
	case strings.HasPrefix(name, canonical.Prefix):
		r.noteAlike(diag.Problem{
			Line: n.Line, Column: n.Column, Warning: r.opts.ForPrometheus,
			Text: name + " begins like the series of kpulse-proxy, and would collide with them; name it level:metric:operation, such as gpu:real_utilization:avg5m",
		}, "record names that begin like the series of kpulse-proxy")
	}
}

// lintReach reports the selector that reaches back the furthest, if beyond the window.
func (r *reader) lintReach(expr parser.Expr, offset time.Duration, rule *rulefmt.Rule, n *yaml.Node) {
	var worst Selector
	for _, s := range Selectors(expr, 0) {
		if s.Reach = plus(s.Reach, offset); s.Reach > worst.Reach {
			worst = s
		}
	}
	if r.opts.Window == 0 || worst.Reach <= r.opts.Window {
		return
	}
	text := fmt.Sprintf("reaches back %s, and the window is %s; shorten it, raise --rules.window", model.Duration(worst.Reach), model.Duration(r.opts.Window))
	if worst.Reach == Forever {
		text = "has a fixed time (@), which no window can contain; remove the @"
	}
	p := within(n, rule.Expr, worst.Vector.PosRange)
	p.Text = text + ", or let Prometheus evaluate the rule"
	p.Warning = r.opts.ForPrometheus
	r.noteAlike(p, "reach back beyond the window")
}

// mention is a name with our prefix that an expression selects and that is not served.
type mention struct {
	name    string
	problem diag.Problem // if no file records it
}

// lintExpression collects the names with our prefix that the rule at n selects and that are
// not served.
func (r *reader) lintExpression(expr parser.Expr, rule *rulefmt.Rule, n *yaml.Node) {
	if len(r.opts.Served) == 0 {
		return
	}
	for _, s := range Selectors(expr, 0) {
		name := s.Name()
		if !strings.HasPrefix(name, canonical.Prefix) || slices.Contains(r.opts.Served, name) ||
			r.opts.ForPrometheus && strings.HasPrefix(name, telemetry) {
			continue
		}
		p := within(n, rule.Expr, s.Vector.PosRange)
		p.Warning = !r.opts.ForPrometheus
		r.mentions = append(r.mentions, mention{name, r.located(p)})
	}
}

// lintMentions reports the mentioned names that are not recorded either, with what was
// probably meant.
func (r *reader) lintMentions() {
	words := make([]string, len(r.opts.Served))
	for i, name := range r.opts.Served {
		words[i] = strings.TrimPrefix(name, canonical.Prefix)
	}
	for _, m := range r.mentions {
		if r.recorded[m.name] {
			continue
		}
		remedy := "its README lists them"
		if near := suggest(strings.TrimPrefix(m.name, canonical.Prefix), words); near != "" {
			remedy = "did you mean " + canonical.Prefix + near + "?"
		}
		m.problem.Text = m.name + " is not a series of kpulse-proxy, and these files do not record it; " + remedy
		r.findings = append(r.findings, finding{Problem: m.problem})
	}
}

// lintOrder warns of groups that read what only a later group records: they see its results
// of the previous evaluation. In Prometheus the order does not matter, since it evaluates
// groups concurrently.
func (l *loader) lintOrder() {
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
		reported := map[int]bool{}
		for _, rule := range l.set.Groups[i].Rules {
			for _, s := range Selectors(rule.Expr, 0) {
				if later := first[s.Name()]; later > i && !reported[later] {
					reported[later] = true
					l.warnOfOrder(&l.set.Groups[i], &rule, s.Name(), &l.set.Groups[later])
				}
			}
		}
	}
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
				Text: fmt.Sprintf("reads %s, which %s records after it, and so sees the result of the previous evaluation; %s", name, where, remedy),
			}})
		}
	}
}

// few is the most alike problems of a file to report individually.
const few = 3

// folded returns the problems of one file. Of many alike ones it returns the first, and at
// the last their number.
func folded(findings []finding) (list diag.Problems) {
	times := map[string]int{}
	for i := range findings {
		times[findings[i].alike]++
	}
	seen := map[string]int{}
	for _, f := range findings {
		seen[f.alike]++
		switch n := times[f.alike]; {
		case f.alike == "" || n <= few || seen[f.alike] == 1:
			list = append(list, f.Problem)
		case seen[f.alike] == n:
			list = append(list, diag.Problem{File: f.File, Line: f.Line, Warning: f.Warning, Text: fmt.Sprintf("%d rules in total, this one the last, %s", n, f.alike)})
		}
	}
	return list
}

// Name returns the name of the selected series, "" if it is not a single one.
func (s Selector) Name() string {
	for _, m := range s.Vector.LabelMatchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return ""
}
