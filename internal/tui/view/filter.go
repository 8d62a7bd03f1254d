package view

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// Filter reports whether a device is selected; nil selects all.
type Filter func(*client.GPU) bool

// match reports whether f selects g.
func (f Filter) match(g *client.GPU) bool { return f == nil || f(g) }

// filterUnit is the unit of numbers in a filter, in that of canonical. Its name may follow them.
type filterUnit struct {
	size float64
	name string
}

// filterUnits are by the unit of a metric.
var filterUnits = map[canonical.Unit]filterUnit{
	canonical.Count:          {1, ""},
	canonical.Code:           {1, ""},
	canonical.Ratio:          {0.01, "%"},
	canonical.Bytes:          {1e9, "GB"},
	canonical.BytesPerSecond: {1e9, "GB/s"},
	canonical.Hertz:          {1e6, "MHz"},
	canonical.Joules:         {3.6e6, "kWh"},
	canonical.Watts:          {1, "W"},
	canonical.Celsius:        {1, "°C"},
}

// amounts maps a share to the metric that replaces it if the number has that one's unit: 60 GB of
// memory is not a percentage.
var amounts = map[client.Metric]client.Metric{client.MetricMemory: client.MetricMemoryUsed, client.MetricPowerShare: client.MetricPower}

// texts are the words of a device that a filter can match.
var texts = map[string]func(*client.GPU) []string{
	"node":  func(g *client.GPU) []string { return []string{g.Hostname} },
	"model": func(g *client.GPU) []string { return []string{g.Model} },
	"uuid":  func(g *client.GPU) []string { return []string{g.UUID} },
	"mig":   func(g *client.GPU) []string { return []string{g.Instance, g.Profile} },
	"class": func(g *client.GPU) []string { return []string{g.Class.String(), canonical.Classes[g.Class].Bottleneck} },
	"health": func(g *client.GPU) []string {
		if g.IsInstance() {
			return nil // the board has it
		}
		words := []string{g.Health.String()}
		for _, r := range g.Raised {
			words = append(words, r.Condition.String())
		}
		return words
	},
	"pod":       perAllocation(func(a *client.Allocation) []string { return []string{a.Pod} }),
	"namespace": perAllocation(func(a *client.Allocation) []string { return []string{a.Namespace} }),
	"job":       perAllocation(func(a *client.Allocation) []string { return []string{a.Job, a.Name} }),
}

func perAllocation(of func(*client.Allocation) []string) func(*client.GPU) []string {
	return func(g *client.GPU) (words []string) {
		for i := range g.Allocations {
			words = append(words, of(&g.Allocations[i])...)
		}
		return words
	}
}

// operator compares numbers, or words, or both. One that negates holds if the device has words,
// and words is false for all of them.
type operator struct {
	sign    string
	numbers func(a, b float64) bool
	words   func(have, want string) bool
	negates bool
}

// operators are in matching order, longer ones first.
var operators = []operator{
	{">=", func(a, b float64) bool { return a >= b }, nil, false},
	{"<=", func(a, b float64) bool { return a <= b }, nil, false},
	{"!=", func(a, b float64) bool { return a != b && !math.IsNaN(a) }, equal, true},
	{"!~", nil, strings.Contains, true},
	{">", func(a, b float64) bool { return a > b }, nil, false},
	{"<", func(a, b float64) bool { return a < b }, nil, false},
	{"=", func(a, b float64) bool { return a == b }, equal, false},
	{"~", nil, strings.Contains, false},
}

func equal(have, want string) bool { return have == want }

const filterExample = "; try temp>85 & (real<20 or pod~train), and i explains the readings"

// ParseFilter parses terms that are joined by & or "and", and by | or "or", which binds less,
// with parentheses. A term is `temp>85`, with the number in percent, GB, GB/s, MHz, W or °C;
// `pod~train`; or a part of any word of the device. A missing reading matches no term.
func ParseFilter(expr string) (Filter, error) {
	expr = strings.ToLower(expr)
	for word, sign := range map[string]string{" and ": " & ", " or ": " | "} {
		expr = strings.ReplaceAll(strings.ReplaceAll(expr, word, sign), word, sign)
	}
	f, err := parseJoined(expr, "|&")
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, filterExample)
	}
	return f, nil
}

// parseJoined parses operands that the first of signs joins; the others join parts of them. A
// missing operand selects all.
func parseJoined(expr, signs string) (Filter, error) {
	if signs == "" {
		return parseOperand(strings.TrimSpace(expr))
	}
	var all []Filter
	depth, start := 0, 0
	for i := 0; i <= len(expr); i++ {
		switch {
		case i < len(expr) && expr[i] == '(':
			depth++
		case i < len(expr) && expr[i] == ')':
			depth--
		}
		switch {
		case depth < 0 || i == len(expr) && depth > 0:
			return nil, errors.New("a parenthesis is not closed, or closed without being opened")
		case i == len(expr) || expr[i] == signs[0] && depth == 0:
			f, err := parseJoined(expr[start:i], signs[1:])
			if err != nil {
				return nil, err
			}
			if start = i + 1; f != nil {
				all = append(all, f)
			}
		}
	}
	any := signs[0] == '|'
	if len(all) == 0 {
		return nil, nil
	}
	return func(g *client.GPU) bool {
		return slices.ContainsFunc(all, func(f Filter) bool { return f(g) == any }) == any
	}, nil
}

// parseOperand parses a term, or an expression in parentheses.
func parseOperand(term string) (Filter, error) {
	if inner, ok := strings.CutPrefix(term, "("); ok && strings.HasSuffix(term, ")") {
		return parseJoined(inner[:len(inner)-1], "|&")
	}
	at := strings.IndexAny(term, "<>=!~")
	switch {
	case term == "":
		return nil, nil
	case strings.ContainsAny(term, "()"):
		return nil, fmt.Errorf("%q has a parenthesis without & or | before or behind it", term)
	case at < 0:
		return func(g *client.GPU) bool { return mentions(g, term) }, nil
	}
	name := strings.TrimSpace(term[:at])
	i := slices.IndexFunc(operators, func(o operator) bool { return strings.HasPrefix(term[at:], o.sign) })
	if i < 0 {
		return nil, fmt.Errorf("%q is not a comparison", term)
	}
	op := operators[i]
	want := strings.TrimSpace(term[at+len(op.sign):])
	m, number := client.MetricNamed(name)
	words := texts[name]
	switch {
	case number && op.numbers != nil:
		return compareMetric(m, want, op.numbers)
	case words != nil && op.words != nil && want != "":
		return func(g *client.GPU) bool {
			all := words(g)
			return anyWord(all, want, op.words) != op.negates && strings.Join(all, "") != ""
		}, nil
	case !number && words == nil:
		return nil, fmt.Errorf("no reading is called %q", name)
	}
	return nil, fmt.Errorf("%q cannot be compared by %q with %q", name, op.sign, want)
}

func compareMetric(m client.Metric, want string, holds func(a, b float64) bool) (Filter, error) {
	v, ok := parseAmount(want, m)
	if amount := amounts[m]; !ok && amount != client.MetricNone {
		if v, ok = parseAmount(want, amount); ok {
			m = amount
		}
	}
	if !ok {
		return nil, fmt.Errorf("%q is not a number in %s", want, filterUnits[client.Metrics[m].Unit].name)
	}
	unit := filterUnits[client.Metrics[m].Unit]
	return func(g *client.GPU) bool { return holds(client.Metrics[m].Value(g)/unit.size, v) }, nil
}

// parseAmount parses a number in the filterUnit of a metric.
func parseAmount(text string, m client.Metric) (float64, bool) {
	unit := filterUnits[client.Metrics[m].Unit]
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(text, strings.ToLower(unit.name))), 64)
	return v, err == nil && !math.IsNaN(v)
}

// mentions reports whether any word of g contains a text.
func mentions(g *client.GPU, text string) bool {
	if strings.Contains("gpu "+g.GPU, text) {
		return true
	}
	for _, words := range texts {
		if anyWord(words(g), text, strings.Contains) {
			return true
		}
	}
	return false
}

func anyWord(words []string, want string, holds func(have, want string) bool) bool {
	return slices.ContainsFunc(words, func(have string) bool { return holds(strings.ToLower(have), want) })
}

// FilterNames returns the names that a term can begin with, sorted.
func FilterNames() []string {
	names := slices.Collect(maps.Keys(texts))
	for m := client.MetricReal; m < client.NumMetrics; m++ {
		names = append(names, client.Metrics[m].Name)
	}
	slices.Sort(names)
	return names
}
