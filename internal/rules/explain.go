package rules

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/parser/posrange"
	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// maxExpression is the longest expression in bytes. The parser is recursive, and nothing
// else bounds its depth.
const maxExpression = 64 << 10

// boundedParser is Prometheus' parser without experimental functions, which Prometheus
// refuses by default too. It also refuses long expressions, and results that no rule can
// record.
type boundedParser struct{ parser.Parser }

func newParser() boundedParser { return boundedParser{parser.NewParser(parser.Options{})} }

// ParseExpr implements parser.Parser.
func (p boundedParser) ParseExpr(text string) (parser.Expr, error) {
	if len(text) > maxExpression {
		return nil, parser.ParseErrors{{Err: fmt.Errorf("longer than %d bytes; split it into several rules", maxExpression)}}
	}
	expr, err := p.Parser.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	if kind := expr.Type(); kind != parser.ValueTypeVector && kind != parser.ValueTypeScalar {
		return nil, parser.ParseErrors{{
			PositionRange: expr.PositionRange(),
			Err:           fmt.Errorf("gives a %s, which cannot be recorded; make it an instant vector, such as with avg_over_time()", parser.DocumentedType(kind)),
		}}
	}
	return expr, nil
}

// ruleKey identifies a rule as rulefmt does.
type ruleKey struct {
	group  string
	number int // from 1
}

// sorted separates the errors of rules, by rule, from those of groups.
func sorted(errs []error) (ofRules map[ruleKey][]error, others []error) {
	ofRules = map[ruleKey][]error{}
	for _, err := range errs {
		if e, ok := errors.AsType[*rulefmt.Error](err); ok {
			key := ruleKey{e.Group, e.Rule}
			ofRules[key] = append(ofRules[key], e.Err.Unwrap())
		} else {
			others = append(others, err)
		}
	}
	return ofRules, others
}

// remedies map errors of rulefmt, by their beginning, to the key of the rule that they are
// about and to what to do.
var remedies = []struct{ begin, key, remedy string }{
	{"only one of 'record' and 'alert'", "", "make two rules of it"},
	{"one of 'record' or 'alert'", "", "add record: and the name of the series to make"},
	{"field 'expr' must be set", "", "add expr:"},
	{"invalid field 'annotations'", "annotations", "only alerting rules have it; remove it"},
	{"invalid field 'for'", "for", "only alerting rules have it; remove it"},
	{"invalid field 'keep_firing_for'", "keep_firing_for", "only alerting rules have it; remove it"},
	{"braces present", "record", "move what is in them to expr, or to labels"},
	{"invalid annotation name", "annotations", "give it a name"},
	{"annotation ", "annotations", "correct the template"},
	{"label ", "labels", "correct the template"},
}

// explainRule reports an error of the rule at n.
func (r *reader) explainRule(rule *rulefmt.Rule, n *yaml.Node, err error) {
	if all, ok := errors.AsType[parser.ParseErrors](err); ok {
		// The other errors often only follow from the first.
		p := within(n, rule.Expr, all[0].PositionRange)
		p.Text = all[0].Err.Error()
		if !strings.Contains(p.Text, "; ") {
			p.Text = "not PromQL: " + p.Text + "; correct the marked part"
		}
		r.note(p)
		return
	}
	text := err.Error()
	if strings.HasPrefix(text, "invalid label name") {
		return // lintLabels reports it with its line
	}
	for _, m := range remedies {
		if strings.HasPrefix(text, m.begin) {
			r.reject(childOr(n, m.key), "%s; %s", text, m.remedy)
			return
		}
	}
	r.reject(n, "%s; correct it", text)
}

// within returns a problem in a part of the expression of the rule at n. Its line is that
// of the part if the expression is a block (|), else the first line of the expression: YAML
// folds other forms.
func within(n *yaml.Node, text string, part posrange.PositionRange) diag.Problem {
	// Something missing at the end is reported behind the last word.
	start := min(max(int(part.Start), 0), len(strings.TrimRight(text, " \t\n")))
	end := min(max(int(part.End), start), len(text))
	line, column := placeIn(text, start)
	p := diag.Problem{Place: fmt.Sprintf("expression %d:%d", line, column), Below: excerpt(text, start, end)}
	value := resolved(childOr(n, "expr"))
	p.Line = value.Line
	if value.Style&yaml.LiteralStyle != 0 {
		p.Line += line
	}
	return p
}

// wanted is what to write for the types that rulefmt decodes.
var wanted = map[string]string{
	"rulefmt.RuleGroups":  "keys are expected; begin the file with groups:",
	"[]rulefmt.RuleGroup": "a list is expected; write - name: before each group",
	"rulefmt.RuleGroup":   "keys are expected; write name: and rules:",
	"[]rulefmt.Rule":      "a list is expected; write - record: before each rule",
	"rulefmt.Rule":        "keys are expected; write record: and expr:",
	"map[string]string":   "keys are expected; write each as name: value",
	"string":              "one value is expected; write a word, or quote it",
	"int":                 "a whole number is expected; write it in digits",
}

// explainDecoding reports why the file at root is not a rule file, from the error of
// rulefmt's YAML decoder.
func (r *reader) explainDecoding(root *yaml.Node, err error) {
	all := diag.ExplainDecoding(err, reflect.TypeFor[rulefmt.RuleGroups](), wanted)
	for _, p := range all {
		r.note(p)
	}
	if all != nil {
		return
	}
	before := r.refused
	r.lintDurations(root) // their type reports no lines
	if r.refused == before {
		r.note(diag.Problem{Text: strings.TrimPrefix(err.Error(), "yaml: ") + "; see what promtool check rules reports"})
	}
}

// lintDurations reports the values that should be durations and are not, of the file, the
// groups or the rules at n.
func (r *reader) lintDurations(n *yaml.Node) {
	switch n.Kind {
	case yaml.SequenceNode:
		for _, one := range n.Content {
			r.lintDurations(one)
		}
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			r.lintDuration(n.Content[i].Value, n.Content[i+1])
		}
	}
}

// lintDuration does so for a key and its value.
func (r *reader) lintDuration(key string, value *yaml.Node) {
	switch key {
	case "groups", "rules", "<<":
		r.lintDurations(value)
	case "interval", "query_offset", "for", "keep_firing_for":
		if value = resolved(value); value.Kind != yaml.ScalarNode || value.Tag == diag.NullTag {
			return
		}
		if _, err := model.ParseDuration(value.Value); err != nil {
			r.reject(value, "%v; write 30s, 5m or 1h30m", err)
		}
	}
}

// widest is the most characters of a line to show; of a longer line, those around the
// mistake.
const widest = 100

// placeIn returns the line and column, in characters, of the byte at of an expression, both
// from 1.
func placeIn(expr string, at int) (line, column int) {
	before := expr[:min(at, len(expr))]
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}

// excerpt returns the line of an expression in which a part begins, and below it a mark
// under the part: ^~~.
func excerpt(expr string, start, end int) string {
	start = min(start, len(expr))
	from := strings.LastIndexByte(expr[:start], '\n') + 1
	to := len(expr)
	if n := strings.IndexByte(expr[start:], '\n'); n >= 0 {
		to = start + n
	}
	before := []rune(strings.Map(printable, expr[from:start]))
	wrong := utf8.RuneCountInString(expr[start:max(start, min(end, to))])
	line := []rune(strings.Map(printable, expr[from:to]))
	first := max(0, len(before)-widest/2)
	shown := line[first:min(len(line), first+widest)]
	marks := max(0, min(wrong, len(shown)-(len(before)-first))-1)
	return string(shown) + "\n" + strings.Repeat(" ", len(before)-first) + "^" + strings.Repeat("~", marks)
}

// printable replaces characters without a glyph, which would shift the marks.
func printable(r rune) rune {
	if unicode.IsGraphic(r) {
		return r
	}
	return ' '
}
