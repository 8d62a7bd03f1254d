package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// document is a file of one group of recording rules.
type document struct {
	head     string // comment at its top
	group    string
	interval time.Duration
	sections []section
}

// section is a part of the group, introduced by a comment.
type section struct {
	comment string
	rules   []rule
}

// rule is a recording rule. Its labels are written like those of a selector, without braces.
type rule struct{ record, labels, expr string }

// render returns the file. It fails if an expression does not parse.
func (d *document) render() (string, error) {
	var b strings.Builder
	b.WriteString(comment(d.head, ""))
	fmt.Fprintf(&b, "groups:\n- name: %s\n  interval: %s\n  rules:\n", d.group, model.Duration(d.interval))
	p := parser.NewParser(parser.Options{})
	for _, s := range d.sections {
		b.WriteString("\n" + comment(s.comment, "  "))
		for _, r := range s.rules {
			if _, err := p.ParseExpr(r.expr); err != nil {
				return "", fmt.Errorf("expression of %s: %w\n%s", r.record, err, r.expr)
			}
			fmt.Fprintf(&b, "  - record: %s\n", r.record)
			if r.labels != "" {
				fmt.Fprintf(&b, "    labels: {%s}\n", strings.ReplaceAll(r.labels, "=", ": "))
			}
			fmt.Fprintf(&b, "    expr: |\n      %s\n", strings.ReplaceAll(r.expr, "\n", "\n      "))
		}
	}
	return b.String(), nil
}

func comment(text, indent string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(strings.TrimRight(indent+"# "+line, " ") + "\n")
	}
	return b.String()
}
