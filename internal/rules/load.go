package rules

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

const (
	// maxExpression is the longest expression, in bytes. The parser takes a square of the depth.
	maxExpression = 16 << 10
)

// boundedParser is Prometheus' parser, which refuses long expressions.
type boundedParser struct{ parser.Parser }

// ParseExpr implements parser.Parser.
func (p boundedParser) ParseExpr(text string) (parser.Expr, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("longer than %d bytes; split it into several rules", maxExpression)
	}
	return p.Parser.ParseExpr(text)
}

// MinInterval is the least interval of a group: readings hardly come more often.
const MinInterval = time.Second

// telemetry begins the names of the proxy's telemetry, which Prometheus may scrape from a
// separate page.
const telemetry = canonical.Prefix + "proxy_"

// Options are the limits for rules.
type Options struct {
	// Window is how far back rules can see; 0 is no limit.
	Window time.Duration
	// Served are the names of the families that the proxy serves, all with
	// canonical.Prefix: a rule should select no others with that prefix. If empty, any
	// are allowed.
	Served []string
	// ForPrometheus is set for files that Prometheus evaluates. Mistakes that matter only
	// in the proxy are then warnings, one of a kind for each file: names that collide with
	// the proxy's or that the text format does not allow, a reach beyond the window, an
	// interval below MinInterval. A series with the proxy's prefix that the proxy does not
	// serve is then an error, otherwise a warning.
	ForPrometheus bool
}

// Load reads the files that the patterns name, each once. A pattern is a file, or a glob of
// filepath.Match; one that names no file is a problem. The set is complete only if the
// problems do not Refuse it; there may be warnings even then.
func Load(opts Options, patterns ...string) (*Set, diag.Problems) {
	files, problems := expand(patterns)
	l := &loader{opts: opts, set: &Set{Files: files}, problems: problems, recorded: map[string]bool{}}
	for _, l.file = range files {
		l.warned = map[string]bool{}
		body, err := diag.Read(l.file, "rule file")
		if err != nil {
			l.problems = append(l.problems, diag.Problem{File: l.file, Text: strings.TrimPrefix(err.Error(), l.file+": ")})
			continue
		}
		l.read(body)
	}
	for _, u := range l.unknown {
		if !l.recorded[u.name] {
			l.problems = append(l.problems, u.Problem)
		}
	}
	slices.SortStableFunc(l.problems, func(a, b diag.Problem) int {
		return cmp.Or(cmp.Compare(slices.Index(files, a.File), slices.Index(files, b.File)), cmp.Compare(a.Line, b.Line))
	})
	return l.set, l.problems
}

// loader reads one file after the other. Prometheus' own rulefmt validates them; what is added
// is what the proxy cannot evaluate, and series that nobody serves.
type loader struct {
	opts     Options
	set      *Set
	problems diag.Problems
	recorded map[string]bool // names that any rule records
	unknown  []unknown
	file     string
	warned   map[string]bool // kinds of warnings about the file
}

// unknown is a series with our prefix that a rule selects and that is not served.
type unknown struct {
	diag.Problem // if no file records it
	name         string
}

// groupNode is the place of a group, which rulefmt does not return.
type groupNode struct {
	line  int
	Rules []yaml.Node `yaml:"rules"`
}

// read adds the groups in body to the set.
func (l *loader) read(body []byte) {
	root, problem := diag.ParseYAML(body)
	if problem != nil {
		problem.File = l.file
		l.problems = append(l.problems, *problem)
		return
	}
	p := boundedParser{parser.NewParser(parser.Options{})}
	file, errs := rulefmt.Parse(body, false, model.UTF8Validation, p, slog.New(slog.DiscardHandler))
	if file == nil {
		l.explainDecoding(errs[0])
		return
	}
	groups := groupsOf(root)
	groups = append(groups, make([]groupNode, max(0, len(file.Groups)-len(groups)))...)
	for _, err := range errs {
		l.explain(err, file, groups)
	}
	for i, g := range file.Groups {
		for _, rule := range g.Rules {
			l.recorded[rule.Record] = true
		}
		if len(errs) == 0 {
			l.add(g, groups[i], p)
		}
	}
	if len(file.Groups) == 0 {
		l.problems = append(l.problems, diag.Problem{File: l.file, Warning: true, Text: "contains no group, so nothing is evaluated; begin the file with groups:"})
	}
}

// groupsOf returns the places of the groups of a file that rulefmt has accepted.
func groupsOf(root *yaml.Node) (groups []groupNode) {
	var file struct {
		Groups []yaml.Node `yaml:"groups"`
	}
	empty := func(n yaml.Node) bool { return n.Tag == diag.NullTag } // rulefmt's decoder leaves these out too
	_ = root.Decode(&file)                                           // which rulefmt has decoded
	for _, n := range slices.DeleteFunc(file.Groups, empty) {
		g := groupNode{line: n.Line}
		_ = n.Decode(&g)
		g.Rules = slices.DeleteFunc(g.Rules, empty)
		groups = append(groups, g)
	}
	return groups
}

// rule returns the place of a rule, counted from 0, and of its expression.
func (g groupNode) rule(i int) (line, exprLine int) {
	if i >= len(g.Rules) {
		return g.line, g.line // YAML has merged the rules from elsewhere
	}
	var r struct {
		Expr yaml.Node `yaml:"expr"`
	}
	_ = g.Rules[i].Decode(&r)
	return g.Rules[i].Line, cmp.Or(r.Expr.Line, g.Rules[i].Line)
}

// explainDecoding reports why the file is not a rule file, from the error of rulefmt's decoder.
func (l *loader) explainDecoding(err error) {
	all := diag.ExplainDecoding(err)
	for _, p := range all {
		p.File = l.file
		l.problems = append(l.problems, p)
	}
	if all == nil {
		l.problems = append(l.problems, diag.Problem{File: l.file, Text: strings.TrimPrefix(err.Error(), "yaml: ") + "; see what promtool check rules reports"})
	}
}

// explain reports an error of rulefmt. That of an expression has the place within it.
func (l *loader) explain(err error, file *rulefmt.RuleGroups, groups []groupNode) {
	e, ofRule := errors.AsType[*rulefmt.Error](err)
	if !ofRule {
		l.problems = append(l.problems, diag.Problem{File: l.file, Text: strings.TrimPrefix(err.Error(), "0:0: ") + "; correct it"})
		return
	}
	at := slices.IndexFunc(file.Groups, func(g rulefmt.RuleGroup) bool { return g.Name == e.Group && len(g.Rules) >= e.Rule })
	line, exprLine := groups[at].rule(e.Rule - 1)
	p := diag.Problem{File: l.file, Line: line, Place: place(e.Group, e.Rule, e.RuleName), Text: e.Err.Unwrap().Error() + "; correct it"}
	if all, is := errors.AsType[parser.ParseErrors](err); is {
		p.Line, p.Text = exprLine, "not PromQL: "+all[0].Error()+"; correct the expression"
	}
	l.problems = append(l.problems, p)
}

// place returns the place of a problem: a rule, or the group itself if number is 0.
func place(group string, number int, rule string) string {
	if number == 0 {
		return fmt.Sprintf("group %q", group)
	}
	return fmt.Sprintf("group %q: rule %d %q", group, number, rule)
}

// add adds a group that Prometheus accepts to the set.
func (l *loader) add(g rulefmt.RuleGroup, n groupNode, p parser.Parser) {
	group := Group{File: l.file, Line: n.line, Name: g.Name, Interval: time.Duration(g.Interval), Limit: g.Limit}
	if g.QueryOffset != nil {
		group.Offset = time.Duration(*g.QueryOffset)
	}
	if d := group.Interval; d > 0 && d < MinInterval {
		l.doubt(n.line, place(g.Name, 0, ""), "interval",
			fmt.Sprintf("interval %s is too short to be evaluated here; write %s or more", g.Interval, model.Duration(MinInterval)))
	}
	l.checkLabels(g.Labels, n.line, place(g.Name, 0, ""))
	for i, rule := range g.Rules {
		expr, err := p.ParseExpr(rule.Expr)
		if err != nil {
			continue // not for a rule that rulefmt accepts
		}
		where := place(g.Name, i+1, cmp.Or(rule.Record, rule.Alert))
		line, exprLine := n.rule(i)
		l.checkSeries(expr, exprLine, where)
		if rule.Alert != "" {
			l.leaveOut(line)
			continue
		}
		l.checkName(rule.Record, line, where)
		l.checkLabels(rule.Labels, line, where)
		l.checkReach(expr, group.Offset, exprLine, where)
		labels := map[string]string{}
		maps.Copy(labels, g.Labels)
		maps.Copy(labels, rule.Labels)
		group.Rules = append(group.Rules, Rule{Line: line, Number: i + 1, Record: rule.Record, Text: rule.Expr, Expr: expr, Labels: labels})
	}
	l.set.Groups = append(l.set.Groups, group)
}

// leaveOut counts an alerting rule, and warns of the first of a file.
func (l *loader) leaveOut(line int) {
	l.set.Alerts++
	if !l.opts.ForPrometheus && !l.warned["alert"] {
		l.warned["alert"] = true
		l.problems = append(l.problems, diag.Problem{File: l.file, Line: line, Warning: true,
			Text: "alerting rules are left out: only Prometheus raises alerts; give it the file"})
	}
}

// doubt reports something that Prometheus can evaluate and the proxy cannot.
func (l *loader) doubt(line int, where, kind, text string) {
	if l.opts.ForPrometheus {
		if l.warned[kind] {
			return
		}
		l.warned[kind] = true
	}
	l.problems = append(l.problems, diag.Problem{File: l.file, Line: line, Place: where, Text: text, Warning: l.opts.ForPrometheus})
}

// checkLabels reports names of labels that older Prometheus servers refuse.
func (l *loader) checkLabels(labels map[string]string, line int, where string) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if !model.LegacyValidation.IsValidLabelName(name) {
			l.doubt(line, where, "label", fmt.Sprintf("label %q is not a label name of the text format; use letters, digits and _", name))
		}
	}
}

// checkName reports a name that cannot be served.
func (l *loader) checkName(name string, line int, where string) {
	switch {
	case !model.LegacyValidation.IsValidMetricName(name):
		l.doubt(line, where, "name", fmt.Sprintf("%q is not a metric name of the text format; use letters, digits, _ and :", name))
	case strings.HasPrefix(name, canonical.Prefix):
		l.doubt(line, where, "prefix",
			name+" begins like the series of kpulse-proxy, and would collide with them; name it level:metric:operation, such as gpu:real_utilization:avg5m")
	}
}

// checkReach reports a selector that reaches back beyond the window.
func (l *loader) checkReach(expr parser.Expr, offset time.Duration, line int, where string) {
	worst := time.Duration(0)
	for _, s := range Selectors(expr, 0) {
		worst = max(worst, plus(s.Reach, offset))
	}
	switch {
	case l.opts.Window == 0 || worst <= l.opts.Window:
	case worst == Forever:
		l.doubt(line, where, "reach", "has a fixed time (@), which no window can contain; remove the @, or let Prometheus evaluate the rule")
	default:
		l.doubt(line, where, "reach", fmt.Sprintf("reaches back %s, and the window is %s; shorten it, raise --rules.window, or let Prometheus evaluate the rule",
			model.Duration(worst), model.Duration(l.opts.Window)))
	}
}

// checkSeries collects the series with our prefix that an expression selects and that are not
// served, each with what was probably meant.
func (l *loader) checkSeries(expr parser.Expr, line int, where string) {
	for _, s := range Selectors(expr, 0) {
		name := s.Name()
		if len(l.opts.Served) == 0 || !strings.HasPrefix(name, canonical.Prefix) || slices.Contains(l.opts.Served, name) ||
			l.opts.ForPrometheus && strings.HasPrefix(name, telemetry) {
			continue
		}
		remedy := "its README lists them"
		if near := l.nearest(name); near != "" {
			remedy = "did you mean " + near + "?"
		}
		l.unknown = append(l.unknown, unknown{diag.Problem{
			File: l.file, Line: line, Place: where, Warning: !l.opts.ForPrometheus,
			Text: name + " is not a series of kpulse-proxy, and these files do not record it; " + remedy,
		}, name})
	}
}

// nearest returns the served name that was probably meant: the shortest that begins like it, else
// one that is hardly different.
func (l *loader) nearest(name string) (near string) {
	words := make([]string, len(l.opts.Served))
	for i, served := range l.opts.Served {
		words[i] = strings.TrimPrefix(served, canonical.Prefix)
		if strings.HasPrefix(served, name) && (near == "" || len(served) < len(near)) {
			near = served
		}
	}
	if near == "" {
		if near = diag.Nearest(strings.TrimPrefix(name, canonical.Prefix), words); near != "" {
			near = canonical.Prefix + near
		}
	}
	return near
}

// expand returns the files that the patterns name.
func expand(patterns []string) (files []string, problems diag.Problems) {
	for _, pattern := range patterns {
		named := []string{pattern}
		if _, err := os.Lstat(pattern); err != nil && strings.ContainsAny(pattern, `*?[\`) {
			if named, err = filepath.Glob(pattern); err != nil {
				problems = append(problems, diag.Problem{File: pattern, Text: "is not a pattern of file names; close the bracket, or put a \\ before it"})
			} else if len(named) == 0 {
				problems = append(problems, diag.Problem{File: pattern, Text: "names no file; check it with ls " + pattern})
			}
		}
		for _, file := range named {
			if file = filepath.Clean(file); !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files, problems
}
