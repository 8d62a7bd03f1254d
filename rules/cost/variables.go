package main

import (
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/prometheus/common/model"
)

// variable is a variable of a dashboard.
type variable struct {
	Name, Type, AllValue string
	IncludeAll           bool
}

// first has the choices for variables with a single value: those of the first node.
var first = map[string]string{"cluster": cluster, "hostname": nodeName(0), "gpu": uuidOf(0)}

// choose returns the values of a dashboard's variables: "all" if a variable has it.
func choose(list []variable) (map[string]string, error) {
	chosen := map[string]string{}
	for _, v := range list {
		switch value, is := first[v.Name]; {
		case v.Type == "datasource": // in no expression
		case v.IncludeAll && v.AllValue != "":
			chosen[v.Name] = v.AllValue
		case is:
			chosen[v.Name] = value
		default:
			return nil, fmt.Errorf("no value is known for the variable %s", v.Name)
		}
	}
	return chosen, nil
}

// reference is a variable in an expression; $1 is a group of a regular expression.
var reference = regexp.MustCompile(`\$(?:[A-Za-z_]\w*|\{\w+(?::\w+)?\})`)

// in returns the expression as Grafana sends it for a span, with the chosen values.
func (q query) in(s span, chosen map[string]string) (string, error) {
	values := maps.Clone(chosen)
	values["__rate_interval"], values["__range"], values["__interval"] = model.Duration(s.rate).String(), model.Duration(s.length).String(), model.Duration(s.step).String()
	var unfilled error
	text := reference.ReplaceAllStringFunc(q.Expr, func(match string) string {
		value, is := values[strings.Trim(match, "${}")]
		if !is {
			unfilled = fmt.Errorf("no value for %s in %.80s", match, q.Expr)
		}
		return value
	})
	return text, unfilled
}
