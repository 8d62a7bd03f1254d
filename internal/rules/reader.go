package rules

import (
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// reader reads one file: Prometheus' own rulefmt validates it, and we add what cannot be
// evaluated here. rulefmt's result has no line numbers, so these come from the YAML nodes
// of the file.
type reader struct {
	*loader
	file     string
	groups   map[string]int // line by name
	findings []finding
	mentions []mention
	refused  int // findings that are not warnings
	alerts   int

	// The group and the rule being read, for problems.
	group, rule string
	number      int
}

// finding is a problem of a rule file.
type finding struct {
	diag.Problem
	// alike describes a problem that many rules of a file may share, such as "reach back
	// beyond the window"; many are reported on one line.
	alike string
}

// read adds the groups in body to the set.
func (r *reader) read(body []byte) {
	root, problem := diag.ParseYAML(body)
	if problem != nil {
		r.note(*problem)
		return
	}
	if child(root, "tests") != nil && child(root, "groups") == nil {
		r.reject(root, "contains tests, which are for promtool test rules; name the rule files without it")
		return
	}
	const lenient = true // ignores unknown keys
	file, errs := rulefmt.Parse(body, !lenient, model.UTF8Validation, newParser(), slog.New(slog.DiscardHandler))
	if file == nil {
		r.explainDecoding(root, errs[0])
		if file, errs = rulefmt.Parse(body, lenient, model.UTF8Validation, newParser(), slog.New(slog.DiscardHandler)); file == nil {
			return
		}
	}
	ofRules, others := sorted(errs)
	for i := range file.Groups {
		r.readGroup(&file.Groups[i], item(root, "groups", i), ofRules)
	}
	r.group, r.rule, r.number = "", "", 0
	if r.refused == 0 && len(others) > 0 { // our checks of groups did not report them
		r.note(diag.Problem{Text: others[0].Error() + "; correct it"})
	}
	switch {
	case r.refused == 0 && len(file.Groups) == 0:
		r.note(diag.Problem{Text: "contains no group, so nothing is evaluated; begin the file with groups:", Warning: true})
	case r.alerts > 0 && !r.opts.ForPrometheus:
		r.note(diag.Problem{Text: alertsLeftOut(r.alerts), Warning: true})
	}
	r.set.Alerts += r.alerts
}

// alertsLeftOut returns the warning about n alerting rules.
func alertsLeftOut(n int) string {
	if n == 1 {
		return "the alerting rule is left out: only Prometheus raises alerts; give it the file"
	}
	return fmt.Sprintf("%d alerting rules are left out: only Prometheus raises alerts; give it the file", n)
}

// readGroup adds a group to the set if the group itself has no mistake. ofRules are the
// errors of rulefmt.
func (r *reader) readGroup(g *rulefmt.RuleGroup, n *yaml.Node, ofRules map[ruleKey][]error) {
	r.group, r.rule, r.number = g.Name, "", 0
	before := r.refused
	r.lintGroup(g, n)
	group := Group{File: r.file, Line: n.Line, Name: g.Name, Interval: time.Duration(g.Interval), Limit: g.Limit}
	if g.QueryOffset != nil {
		group.Offset = time.Duration(*g.QueryOffset)
	}
	sound := r.refused == before
	for i := range g.Rules {
		r.number = i + 1
		r.readRule(&group, g, &g.Rules[i], item(n, "rules", i), ofRules[ruleKey{g.Name, r.number}])
	}
	if sound {
		r.set.Groups = append(r.set.Groups, group)
	}
}

// readRule adds a recording rule without an error to its group.
func (r *reader) readRule(group *Group, g *rulefmt.RuleGroup, rule *rulefmt.Rule, n *yaml.Node, errs []error) {
	r.rule = rule.Record
	if r.rule == "" {
		r.rule = rule.Alert
	}
	before := r.refused
	for _, err := range errs {
		r.explainRule(rule, n, err)
	}
	r.lintLabels(rule.Labels, n)
	if rule.Record != "" {
		r.recorded[rule.Record] = true
		r.lintName(rule.Record, n)
	}
	var expr parser.Expr
	if r.refused == before {
		expr, _ = newParser().ParseExpr(rule.Expr) // has no error
		r.lintExpression(expr, rule, n)
	}
	switch {
	case r.refused > before:
	case rule.Alert != "":
		r.alerts++
	default:
		r.lintReach(expr, group.Offset, rule, n)
	}
	if r.refused == before && rule.Alert == "" {
		group.Rules = append(group.Rules, Rule{
			Line: n.Line, Number: r.number, Record: rule.Record, Text: rule.Expr, Expr: expr, Labels: joined(g.Labels, rule.Labels),
		})
	}
}

// joined returns the labels of a group, overridden by those of its rule.
func joined(group, rule map[string]string) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, group)
	maps.Copy(labels, rule)
	return labels
}

// reject reports a mistake at n. The text ends with what to do.
func (r *reader) reject(n *yaml.Node, format string, args ...any) {
	r.note(diag.Problem{Line: n.Line, Column: n.Column, Text: fmt.Sprintf(format, args...)})
}

// doubt reports something at n that Prometheus can evaluate and the proxy cannot.
func (r *reader) doubt(n *yaml.Node, format string, args ...any) {
	r.noteAlike(diag.Problem{Line: n.Line, Column: n.Column, Text: fmt.Sprintf(format, args...), Warning: r.opts.ForPrometheus}, "")
}

// note adds a problem to those of the file, with the current group and rule.
func (r *reader) note(p diag.Problem) { r.noteAlike(p, "") }

// noteAlike is note for a problem that many rules may share.
func (r *reader) noteAlike(p diag.Problem, alike string) {
	if !p.Warning {
		r.refused++
	}
	r.findings = append(r.findings, finding{r.located(p), alike})
}

// located adds the file, the group and the rule to a problem.
func (r *reader) located(p diag.Problem) diag.Problem {
	p.File, p.Place = r.file, placeOf(r.group, r.number, r.rule, p.Place)
	return p
}

// placeOf returns the place of a problem: the group, "" for the file itself; the number of
// the rule from 1, 0 for none; its name, if any; and the place within the rule.
func placeOf(group string, number int, rule, within string) string {
	var parts []string
	if group != "" {
		parts = append(parts, fmt.Sprintf("group %q", group))
	}
	switch {
	case rule != "":
		parts = append(parts, fmt.Sprintf("rule %d %q", number, rule))
	case number > 0:
		parts = append(parts, fmt.Sprintf("rule %d", number))
	}
	if within != "" {
		parts = append(parts, within)
	}
	return strings.Join(parts, ": ")
}

// child returns the value of a key of a mapping, nil if there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	_, value := entry(n, key)
	return value
}

// entry returns a key of a mapping and its value, nil if there is none.
func entry(n *yaml.Node, key string) (name, value *yaml.Node) {
	if n = resolved(n); n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// childOr returns the value of a key of a mapping, the mapping if there is none.
func childOr(n *yaml.Node, key string) *yaml.Node {
	if value := child(n, key); value != nil {
		return value
	}
	return n
}

// item returns item i of the list at a key of a mapping, or the mapping if YAML has merged
// the list from elsewhere. Empty items do not count, since YAML's decoder omits them.
func item(n *yaml.Node, key string, i int) *yaml.Node {
	if list := resolved(child(n, key)); list != nil {
		for _, one := range list.Content {
			if resolved(one).Tag == diag.NullTag {
				continue
			}
			if i == 0 {
				return one
			}
			i--
		}
	}
	return n
}

// resolved returns the node that an alias refers to.
func resolved(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
