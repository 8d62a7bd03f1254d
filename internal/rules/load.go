package rules

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// maxExpression is the longest expression, in bytes. The parser takes a square of the depth.
const maxExpression = 16 << 10

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
	// ForPrometheus is set for files that Prometheus evaluates: they need not suit the proxy, and a
	// series with the proxy's prefix that the proxy does not serve is an error, not a warning.
	ForPrometheus bool
}

// Load reads the files that the patterns name, each once. A pattern is a file, or a glob of
// filepath.Match. The set is complete only if the
// problems do not Refuse it; there may be warnings even then.
func Load(opts Options, patterns ...string) (*Set, diag.Problems) {
	l := &loader{opts: opts, set: &Set{Files: expand(patterns)}, recorded: map[string]bool{}}
	for _, l.file = range l.set.Files {
		if body, err := diag.Read(l.file, "rule file"); err != nil {
			l.problem(diag.Problem{Text: strings.TrimPrefix(err.Error(), l.file+": ")})
		} else {
			l.read(body)
		}
	}
	for _, u := range l.unknown {
		if !l.recorded[u.name] {
			l.problems = append(l.problems, u.Problem)
		}
	}
	slices.SortStableFunc(l.problems, func(a, b diag.Problem) int {
		return cmp.Or(cmp.Compare(slices.Index(l.set.Files, a.File), slices.Index(l.set.Files, b.File)), cmp.Compare(a.Line, b.Line))
	})
	return l.set, l.problems
}

// expand returns the files that the patterns name. What names none is a file that cannot be read.
func expand(patterns []string) (files []string) {
	for _, pattern := range patterns {
		named, _ := filepath.Glob(pattern)
		if named == nil {
			named = []string{pattern}
		}
		for _, file := range named {
			if file = filepath.Clean(file); !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files
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
}

// unknown is a series with our prefix that a rule selects and that is not served.
type unknown struct {
	diag.Problem // if no file records it
	name         string
}

// groupNode has the lines of a group, which rulefmt does not return.
type groupNode struct {
	Name  yaml.Node  `yaml:"name"`
	Rules []ruleNode `yaml:"rules"`
}

// ruleNode has the lines of a rule.
type ruleNode struct {
	Record yaml.Node `yaml:"record"`
	Alert  yaml.Node `yaml:"alert"`
	Expr   yaml.Node `yaml:"expr"`
}

// line returns the line of a rule, by its name.
func (n *ruleNode) line() int { return cmp.Or(n.Record.Line, n.Alert.Line, n.Expr.Line) }

// read adds the groups in body to the set.
func (l *loader) read(body []byte) {
	root, problem := diag.ParseYAML(body)
	if problem != nil {
		l.problem(*problem)
		return
	}
	p := boundedParser{parser.NewParser(parser.Options{})}
	file, errs := rulefmt.Parse(body, false, model.UTF8Validation, p, slog.New(slog.DiscardHandler))
	if file == nil {
		l.explainDecoding(errs[0])
		return
	}
	var nodes struct {
		Groups []groupNode `yaml:"groups"`
	}
	_ = root.Decode(&nodes) // which rulefmt has decoded
	for _, err := range errs {
		l.explain(err, file, nodes.Groups)
	}
	for i, g := range file.Groups {
		for _, rule := range g.Rules {
			l.recorded[rule.Record] = true
		}
		if len(errs) == 0 {
			l.add(g, &nodes.Groups[i], p)
		}
	}
	if len(file.Groups) == 0 {
		l.problem(diag.Problem{Warning: true, Text: "contains no group, so nothing is evaluated; begin the file with groups:"})
	}
}

// problem adds a problem of the file.
func (l *loader) problem(p diag.Problem) {
	p.File = l.file
	l.problems = append(l.problems, p)
}

// explainDecoding reports why the file is not a rule file, from the error of rulefmt's decoder.
func (l *loader) explainDecoding(err error) {
	all := diag.ExplainDecoding(err)
	if all == nil {
		all = diag.Problems{{Text: strings.TrimPrefix(err.Error(), "yaml: ") + "; see what promtool check rules reports"}}
	}
	for _, p := range all {
		l.problem(p)
	}
}

// explain reports an error of rulefmt. That of an expression has the place within it.
func (l *loader) explain(err error, file *rulefmt.RuleGroups, nodes []groupNode) {
	e, ofRule := errors.AsType[*rulefmt.Error](err)
	if !ofRule {
		l.problem(diag.Problem{Text: strings.TrimPrefix(err.Error(), "0:0: ") + "; correct it"})
		return
	}
	at := slices.IndexFunc(file.Groups, func(g rulefmt.RuleGroup) bool { return g.Name == e.Group && len(g.Rules) >= e.Rule })
	n := &nodes[at].Rules[e.Rule-1]
	p := diag.Problem{Line: n.line(), Place: place(e.Group, e.Rule, e.RuleName), Text: e.Err.Unwrap().Error() + "; correct it"}
	if all, is := errors.AsType[parser.ParseErrors](err); is {
		p.Line, p.Text = n.Expr.Line, "not PromQL: "+all[0].Error()+"; correct the expression"
	}
	l.problem(p)
}

// place returns the place of a rule, by its number from 1.
func place(group string, number int, rule string) string {
	return fmt.Sprintf("group %q: rule %d %q", group, number, rule)
}

// add adds a group that Prometheus accepts to the set.
func (l *loader) add(g rulefmt.RuleGroup, n *groupNode, p parser.Parser) {
	group := Group{File: l.file, Line: n.Name.Line, Name: g.Name, Interval: time.Duration(g.Interval), Limit: g.Limit}
	if g.QueryOffset != nil {
		group.Offset = time.Duration(*g.QueryOffset)
	}
	if d := group.Interval; d > 0 && d < MinInterval && !l.opts.ForPrometheus {
		l.problem(diag.Problem{Line: group.Line, Place: fmt.Sprintf("group %q", g.Name),
			Text: fmt.Sprintf("interval %s is too short to be evaluated here; write %s or more", g.Interval, model.Duration(MinInterval))})
	}
	for i, rule := range g.Rules {
		expr, err := p.ParseExpr(rule.Expr)
		if err != nil {
			continue // not for a rule that rulefmt accepts
		}
		where, line := place(g.Name, i+1, cmp.Or(rule.Record, rule.Alert)), n.Rules[i].line()
		if wrong := badPattern(expr); wrong != nil {
			l.problem(diag.Problem{Line: n.Rules[i].Expr.Line, Place: where, Text: wrong.Error() + "; correct it: the rule would fail at each evaluation"})
		}
		l.checkSeries(parser.ExtractSelectors(expr), n.Rules[i].Expr.Line, where)
		if rule.Alert != "" {
			if l.set.Alerts++; l.set.Alerts == 1 && !l.opts.ForPrometheus {
				l.problem(diag.Problem{Line: line, Warning: true, Text: "alerting rules are left out: only Prometheus raises alerts; give it the file"})
			}
			continue
		}
		r := Rule{Line: line, Record: rule.Record, Text: rule.Expr, Selects: parser.ExtractSelectors(expr), Labels: map[string]string{}}
		r.Reach = Reach(expr)
		maps.Copy(r.Labels, g.Labels)
		maps.Copy(r.Labels, rule.Labels)
		if wrong := l.unfit(&r, group.Offset); wrong != "" && !l.opts.ForPrometheus {
			l.problem(diag.Problem{Line: line, Place: where, Text: wrong})
		}
		group.Rules = append(group.Rules, r)
	}
	l.set.Groups = append(l.set.Groups, group)
}

// badPattern returns why a regular expression in an argument of a function does not compile. The parser checks only those of
// selectors, and label_replace alone takes one.
func badPattern(expr parser.Expr) (wrong error) {
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		call, is := node.(*parser.Call)
		if !is || call.Func.Name != "label_replace" || len(call.Args) != 5 {
			return nil
		}
		arg := call.Args[4]
		for in, nested := arg.(*parser.ParenExpr); nested; in, nested = arg.(*parser.ParenExpr) {
			arg = in.Expr
		}
		if text, is := arg.(*parser.StringLiteral); is && wrong == nil {
			if _, err := labels.NewFastRegexMatcher(text.Val); err != nil {
				wrong = fmt.Errorf("label_replace has a regular expression that does not compile: %w", err)
			}
		}
		return nil
	})
	return wrong
}

// unfit returns why the proxy cannot evaluate a rule, or serve its results in the text format; "" if it can.
func (l *loader) unfit(r *Rule, offset time.Duration) string {
	switch reach := r.Reach; {
	case !model.LegacyValidation.IsValidMetricName(r.Record):
		return fmt.Sprintf("%q is not a metric name of the text format; use letters, digits, _ and :", r.Record)
	case strings.HasPrefix(r.Record, canonical.Prefix):
		return r.Record + " begins like the series of kpulse-proxy, and would collide with them; name it level:metric:operation, such as gpu:real_utilization:avg5m"
	case l.opts.Window == 0 || reach+offset <= l.opts.Window && reach < Forever:
	case reach == Forever:
		return "has a fixed time (@), which no window can contain; remove the @, or let Prometheus evaluate the rule"
	default:
		return fmt.Sprintf("reaches back %s, and the window is %s; shorten it, raise --rules.window, or let Prometheus evaluate the rule",
			model.Duration(reach+offset), model.Duration(l.opts.Window))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		if !model.LegacyValidation.IsValidLabelName(name) {
			return fmt.Sprintf("label %q is not a label name of the text format; use letters, digits and _", name)
		}
	}
	return ""
}

// checkSeries collects the series with our prefix that selectors name and that are not
// served, each with what was probably meant.
func (l *loader) checkSeries(selects [][]*labels.Matcher, line int, where string) {
	for _, matchers := range selects {
		at := slices.IndexFunc(matchers, func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual })
		if at < 0 || len(l.opts.Served) == 0 {
			continue
		}
		name := matchers[at].Value
		if !strings.HasPrefix(name, canonical.Prefix) || slices.Contains(l.opts.Served, name) || l.opts.ForPrometheus && strings.HasPrefix(name, telemetry) {
			continue
		}
		remedy := "its README lists them"
		near := diag.Within(name, l.opts.Served, 4)
		if at := slices.IndexFunc(l.opts.Served, func(s string) bool { return strings.HasPrefix(s, name+"_") }); at >= 0 {
			near = l.opts.Served[at] // it lacks the unit
		}
		if near != "" {
			remedy = "did you mean " + near + "?"
		}
		l.unknown = append(l.unknown, unknown{diag.Problem{
			File: l.file, Line: line, Place: where, Warning: !l.opts.ForPrometheus,
			Text: name + " is not a series of kpulse-proxy, and these files do not record it; " + remedy,
		}, name})
	}
}
