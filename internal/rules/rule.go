package rules

import (
	"fmt"
	"maps"
	"strings"

	"github.com/prometheus/common/model"
	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// ruleDraft is a rule as it is being read.
type ruleDraft struct {
	Rule
	alert        string
	record, expr *yaml.Node
	// ofAlerts are the keys met that only alerting rules may have.
	ofAlerts []*yaml.Node
	labels   map[string]string
}

// ruleKeys are those of a rule: Prometheus' own.
var ruleKeys = []key[ruleDraft]{
	{"record", func(r *reader, d *ruleDraft, n *yaml.Node) { d.record, d.Record = n, r.trust(n) }},
	{"alert", func(r *reader, d *ruleDraft, n *yaml.Node) { d.alert = r.trust(n) }},
	{"expr", func(r *reader, d *ruleDraft, n *yaml.Node) { d.expr, d.Text = n, r.trust(n) }},
	{"labels", func(r *reader, d *ruleDraft, n *yaml.Node) { d.labels = r.labels(n) }},
	{"for", func(r *reader, d *ruleDraft, n *yaml.Node) { r.duration(n); d.ofAlerts = append(d.ofAlerts, n) }},
	{"keep_firing_for", func(r *reader, d *ruleDraft, n *yaml.Node) { r.duration(n); d.ofAlerts = append(d.ofAlerts, n) }},
	{"annotations", func(r *reader, d *ruleDraft, n *yaml.Node) { r.annotations(n); d.ofAlerts = append(d.ofAlerts, n) }},
}

// trust returns a word, "" for what is none and has been rejected.
func (r *reader) trust(n *yaml.Node) string {
	s, _ := r.word(n)
	return s
}

// annotations reads what an alert says, to see that it is text. The templates in it
// are for promtool to check.
func (r *reader) annotations(n *yaml.Node) {
	for _, e := range r.entries(n, "write each annotation as name: text") {
		if e.key.Value == "" {
			r.reject(e.key, "an annotation has no name; give it one")
		}
		r.word(e.value)
	}
}

// readRule adds a recording rule without an error to its group.
func (r *reader) readRule(g *groupDraft, n *yaml.Node) {
	r.rule = peek(n, "record", "alert")
	before := r.refused
	d := ruleDraft{Rule: Rule{Line: n.Line, Number: r.number}}
	readKeys(r, &d, n, ruleKeys, "write record: and expr:")
	if r.refused == before {
		r.judgeKind(&d, n)
	}
	if d.Record != "" {
		r.recorded[d.Record] = true
		r.judgeName(&d)
	}
	if d.Text != "" {
		d.Expr = r.parse(d.expr, d.Text)
	}
	switch {
	case r.refused > before:
	case d.alert != "":
		r.alerts++
	default:
		r.judgeReach(g, &d)
	}
	if r.refused == before && d.alert == "" {
		d.Labels = joined(g.labels, d.labels)
		g.Rules = append(g.Rules, d.Rule)
	}
}

// judgeKind refuses what is neither a recording nor an alerting rule.
func (r *reader) judgeKind(d *ruleDraft, n *yaml.Node) {
	switch {
	case d.Record != "" && d.alert != "":
		r.reject(n, "both records and alerts; make two rules of it")
	case d.Record == "" && d.alert == "":
		r.reject(n, "neither records nor alerts; add record: and the name of the series to make")
	case d.Record != "" && len(d.ofAlerts) > 0:
		r.reject(d.ofAlerts[0], "only alerting rules have for, keep_firing_for and annotations; remove it")
	}
	if d.Text == "" {
		r.reject(n, "has no expression; add expr:")
	}
}

// judgeName says what is wrong with the name under which a rule records.
func (r *reader) judgeName(d *ruleDraft) {
	switch {
	case strings.ContainsAny(d.Record, "{}"):
		r.reject(d.record, "a name has no braces; what is in them belongs into expr, or into labels")
	case !model.LegacyValidation.IsValidMetricName(d.Record):
		r.doubt(d.record, "%q is no metric name of the text format; use letters, digits, _ and :", d.Record)
	case strings.HasPrefix(d.Record, canonical.Prefix):
		r.doubtAlike(d.record, "record names that begin like the series of kpulse-proxy",
			"%s begins like the series of kpulse-proxy, and would collide with them; name it level:metric:operation, such as gpu:real_utilization:avg5m", d.Record)
	}
}

// judgeReach says which selector sees further back than the window, the furthest if
// there are several.
func (r *reader) judgeReach(g *groupDraft, d *ruleDraft) {
	var worst Selector
	for _, s := range Selectors(d.Expr, 0) {
		if s.Reach = plus(s.Reach, g.Offset); worst.Vector == nil || s.Reach > worst.Reach {
			worst = s
		}
	}
	if r.opts.Window == 0 || worst.Reach <= r.opts.Window {
		return
	}
	text := fmt.Sprintf("reaches back %s, and the window is %s; shorten it, raise --rules.window", model.Duration(worst.Reach), model.Duration(r.opts.Window))
	if worst.Reach == Forever {
		text = "is of a fixed time (@), which no window holds; remove the @"
	}
	p := r.within(d.expr, d.Text, worst.Vector.PosRange)
	p.Text = text + ", or let Prometheus evaluate the rule"
	p.Warning = r.opts.ForPrometheus
	r.noteAlike(p, "reach back beyond the window")
}

// joined returns the labels of a group and of its rule, which win; nil if there are
// none.
func joined(group, rule map[string]string) map[string]string {
	if len(group)+len(rule) == 0 {
		return nil
	}
	labels := maps.Clone(group)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, rule)
	return labels
}

// alertsLeftOut says what becomes of alerting rules.
func alertsLeftOut(n int) string {
	if n == 1 {
		return "the alerting rule is left out, as alerts are for Prometheus to raise; give it the file"
	}
	return fmt.Sprintf("%d alerting rules are left out, as alerts are for Prometheus to raise; give it the file", n)
}
