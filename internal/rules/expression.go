package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/parser/posrange"
	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// maxExpression is the longest expression in bytes. The parser works recursively,
// and nothing else bounds how deep.
const maxExpression = 64 << 10

// telemetry begins the names of what the proxy tells about itself on a page of its
// own, which Prometheus may have scraped.
const telemetry = canonical.Prefix + "proxy_"

// parse returns the expression of a rule, nil if it is none that can be recorded.
// Experimental functions are none: Prometheus refuses them by default too.
func (r *reader) parse(n *yaml.Node, text string) parser.Expr {
	if len(text) > maxExpression {
		r.reject(n, "is longer than %d bytes; split it into several rules", maxExpression)
		return nil
	}
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		r.rejectExpression(n, text, err)
		return nil
	}
	switch kind := expr.Type(); kind {
	case parser.ValueTypeVector, parser.ValueTypeScalar:
	default:
		p := r.within(n, text, expr.PositionRange())
		p.Text = fmt.Sprintf("gives a %s, which cannot be recorded; make it an instant vector, such as with avg_over_time()", parser.DocumentedType(kind))
		r.note(p)
		return nil
	}
	r.mention(n, text, expr)
	return expr
}

// rejectExpression notes what the parser says first: the rest often only follows
// from that.
func (r *reader) rejectExpression(n *yaml.Node, text string, err error) {
	var part posrange.PositionRange
	var all parser.ParseErrors
	if errors.As(err, &all) && len(all) > 0 {
		part, err = all[0].PositionRange, all[0].Err
	}
	p := r.within(n, text, part)
	p.Text = fmt.Sprintf("no PromQL: %v; correct what is marked", err)
	r.note(p)
}

// within returns a problem that is in a part of the expression at n.
func (r *reader) within(n *yaml.Node, text string, part posrange.PositionRange) diag.Problem {
	// What is missing at the end is missing behind the last word.
	start := min(max(int(part.Start), 0), len(strings.TrimRight(text, " \t\n")))
	end := min(max(int(part.End), start), len(text))
	line, column := placeIn(text, start)
	p := diag.Problem{Place: fmt.Sprintf("expression %d:%d", line, column), Below: excerpt(text, start, end)}
	p.Line, p.Column = r.source.locate(n, text, start)
	return p
}

// mention is a series by its name, which an expression selects, with our prefix and
// yet not served.
type mention struct {
	name    string
	problem diag.Problem // should no file record it
}

// mention keeps what expr says of series with our prefix that are not served.
func (r *reader) mention(n *yaml.Node, text string, expr parser.Expr) {
	if len(r.opts.Served) == 0 {
		return
	}
	for _, s := range Selectors(expr, 0) {
		for _, m := range s.Vector.LabelMatchers {
			if m.Name != model.MetricNameLabel || m.Type != labels.MatchEqual || !strings.HasPrefix(m.Value, canonical.Prefix) {
				continue
			}
			if slices.Contains(r.opts.Served, m.Value) || r.opts.ForPrometheus && strings.HasPrefix(m.Value, telemetry) {
				continue
			}
			p := r.within(n, text, s.Vector.PosRange)
			p.Warning = !r.opts.ForPrometheus
			r.mentions = append(r.mentions, mention{m.Value, r.here(p)})
		}
	}
}

// judgeMentions notes the mentioned series that are not recorded either, and which
// was probably meant.
func (r *reader) judgeMentions() {
	words := make([]string, len(r.opts.Served))
	for i, name := range r.opts.Served {
		words[i] = strings.TrimPrefix(name, canonical.Prefix)
	}
	for _, m := range r.mentions {
		if r.recorded[m.name] {
			continue
		}
		m.problem.Text = m.name + " is no series of kpulse-proxy, nor do these files record it; its README lists them"
		if near := suggest(strings.TrimPrefix(m.name, canonical.Prefix), words); near != "" {
			m.problem.Text = fmt.Sprintf("%s is no series of kpulse-proxy, nor do these files record it; did you mean %s?", m.name, canonical.Prefix+near)
		}
		r.findings = append(r.findings, finding{Problem: m.problem})
	}
}
