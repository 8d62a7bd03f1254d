package main

import (
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/prometheus/common/model"
)

// variable is one that a page asks for above its panels.
type variable struct {
	Name, Type, AllValue string
	IncludeAll           bool
}

// first is what is chosen of a variable that has one value at a time: of the first node.
var first = map[string]string{"cluster": cluster, "hostname": nodeName(0), "gpu": uuidOf(0)}

// choose returns the values of the variables of a page: everything, if a page can select that.
func choose(list []variable) (map[string]string, error) {
	chosen := map[string]string{}
	for _, v := range list {
		switch value, is := first[v.Name]; {
		case v.Type == "datasource": // of no expression
		case v.IncludeAll && v.AllValue != "":
			chosen[v.Name] = v.AllValue
		case is:
			chosen[v.Name] = value
		default:
			return nil, fmt.Errorf("nothing is known to choose for the variable %s", v.Name)
		}
	}
	return chosen, nil
}

// reference is a variable in an expression; $1 is a group of a regular expression.
var reference = regexp.MustCompile(`\$(?:[A-Za-z_]\w*|\{\w+(?::\w+)?\})`)

// in returns the expression as Grafana sends it over a span, with what is chosen.
func (q query) in(s span, chosen map[string]string) (string, error) {
	values := maps.Clone(chosen)
	values["__rate_interval"], values["__range"], values["__interval"] = model.Duration(s.rate).String(), model.Duration(s.length).String(), model.Duration(s.step).String()
	var unfilled error
	text := reference.ReplaceAllStringFunc(q.Expr, func(match string) string {
		value, is := values[strings.Trim(match, "${}")]
		if !is {
			unfilled = fmt.Errorf("nothing stands for %s in %.80s", match, q.Expr)
		}
		return value
	})
	return text, unfilled
}
