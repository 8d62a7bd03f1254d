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

// unit is how users write numbers of a unit.
type unit struct {
	bare  float64            // the default unit, in the unit of canonical
	name  string             // of the default unit, in messages
	names map[string]float64 // accepted after a number, in lower case
}

// units maps units of readings.
var units = map[canonical.Unit]unit{
	canonical.Ratio:          {0.01, "%", map[string]float64{"%": 0.01}},
	canonical.Bytes:          {1 << 30, "GiB", map[string]float64{"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}},
	canonical.BytesPerSecond: {1e9, "GB/s", map[string]float64{"kb/s": 1e3, "mb/s": 1e6, "gb/s": 1e9, "tb/s": 1e12, "mib/s": 1 << 20, "gib/s": 1 << 30}},
	canonical.Hertz:          {1e6, "MHz", map[string]float64{"mhz": 1e6, "ghz": 1e9}},
	canonical.Joules:         {3.6e6, "kWh", map[string]float64{"kwh": 3.6e6, "mwh": 3.6e9, "j": 1, "kj": 1e3, "mj": 1e6}},
	canonical.Watts:          {1, "W", map[string]float64{"w": 1, "kw": 1e3}},
	canonical.Celsius:        {1, "°C", map[string]float64{"°c": 1, "c": 1}},
}

// amounts maps a share to the metric that replaces it if the number has a unit of amounts: 60 GB
// of memory is not a percentage.
var amounts = map[client.Metric]client.Metric{client.MetricMemory: client.MetricMemoryUsed, client.MetricPowerShare: client.MetricPower}

// texts are the words of a device that a filter can match.
var texts = map[string]func(*client.GPU) []string{
	"node":  func(g *client.GPU) []string { return []string{g.Hostname} },
	"host":  func(g *client.GPU) []string { return []string{g.Hostname} },
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
	"pod": func(g *client.GPU) []string {
		return perAllocation(g, func(a *client.Allocation) string { return a.Pod })
	},
	"namespace": func(g *client.GPU) []string {
		return perAllocation(g, func(a *client.Allocation) string { return a.Namespace })
	},
	"job": func(g *client.GPU) []string {
		return append(perAllocation(g, func(a *client.Allocation) string { return a.Job }), perAllocation(g, func(a *client.Allocation) string { return a.Name })...)
	},
}

func perAllocation(g *client.GPU, word func(*client.Allocation) string) []string {
	var words []string
	for i := range g.Allocations {
		words = append(words, word(&g.Allocations[i]))
	}
	return words
}

// operators are in matching order, longer ones first. One that negates holds if the device has
// words, and words is false for all of them.
var operators = []struct {
	sign    string
	numbers func(a, b float64) bool
	words   func(have, want string) bool
	negates bool
}{
	{">=", func(a, b float64) bool { return a >= b }, nil, false},
	{"<=", func(a, b float64) bool { return a <= b }, nil, false},
	{"!=", func(a, b float64) bool { return a != b && !math.IsNaN(a) }, equal, true},
	{"!~", nil, strings.Contains, true},
	{"~=", nil, strings.Contains, false},
	{"=~", nil, strings.Contains, false},
	{"==", func(a, b float64) bool { return a == b }, equal, false},
	{">", func(a, b float64) bool { return a > b }, nil, false},
	{"<", func(a, b float64) bool { return a < b }, nil, false},
	{"=", func(a, b float64) bool { return a == b }, equal, false},
	{"~", nil, strings.Contains, false},
}

func equal(have, want string) bool { return have == want }

// ParseFilter parses terms that are joined by & or "and", and by | or "or", which binds less,
// with parentheses. A term is `temp>85`, with the number in percent, GiB, GB/s, MHz, W or °C
// unless a unit follows; `pod~train`; or a part of any word of the device. A missing reading
// matches no term.
func ParseFilter(expr string) (Filter, error) {
	p := filterParser{rest: filterTokens(strings.ToLower(expr))}
	f, err := p.either()
	switch {
	case err != nil:
		return nil, err
	case len(p.rest) == 0:
		return f, nil
	case p.rest[0] == ")":
		return nil, errors.New("a parenthesis is closed that was not opened; try (temp>85 or real<20) & pod~train")
	}
	return nil, unjoined(p.rest[0], "behind")
}

// filterTokens splits an expression into terms, "&", "|", "(" and ")".
func filterTokens(expr string) (tokens []string) {
	for _, joined := range []struct{ word, sign string }{{" and ", " & "}, {" or ", " | "}} {
		expr = strings.ReplaceAll(strings.ReplaceAll(expr, joined.word, joined.sign), joined.word, joined.sign)
	}
	for expr != "" {
		end := strings.IndexAny(expr, "&|()")
		if end < 0 {
			end = len(expr)
		}
		if term := strings.TrimSpace(expr[:end]); term != "" {
			tokens = append(tokens, term)
		}
		if end < len(expr) {
			tokens = append(tokens, expr[end:end+1])
			end++
		}
		expr = expr[end:]
	}
	return tokens
}

// filterParser parses tokens. A missing operand selects all.
type filterParser struct {
	rest  []string
	depth int
}

// take removes the next token if it is token, and reports whether it did.
func (p *filterParser) take(token string) bool {
	if len(p.rest) == 0 || p.rest[0] != token {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *filterParser) either() (Filter, error) {
	f, err := p.both()
	for err == nil && p.take("|") {
		left := f
		right, failed := p.both()
		if err = failed; left == nil {
			f = right
		} else if right != nil {
			f = func(g *client.GPU) bool { return left(g) || right(g) }
		}
	}
	return f, err
}

func (p *filterParser) both() (Filter, error) {
	var f Filter
	for {
		right, err := p.one()
		if err != nil {
			return nil, err
		}
		if left := f; left == nil {
			f = right
		} else if right != nil {
			f = func(g *client.GPU) bool { return left(g) && right(g) }
		}
		if !p.take("&") {
			return f, nil
		}
	}
}

// maxDepth bounds the nesting of parentheses.
const maxDepth = 50

func (p *filterParser) one() (Filter, error) {
	switch {
	case len(p.rest) == 0 || p.rest[0] == "&" || p.rest[0] == "|" || p.rest[0] == ")":
		return nil, nil
	case !p.take("("):
		term := p.rest[0]
		p.rest = p.rest[1:]
		if len(p.rest) > 0 && p.rest[0] == "(" {
			return nil, unjoined(term, "before")
		}
		return parseTerm(term)
	}
	if p.depth++; p.depth > maxDepth {
		return nil, errors.New("too many parentheses; try (temp>85 or real<20) & pod~train")
	}
	f, err := p.either()
	switch {
	case err != nil || p.take(")"):
	case len(p.rest) > 0:
		err = unjoined(p.rest[0], "behind")
	default:
		err = errors.New("a parenthesis is not closed; try (temp>85 or real<20) & pod~train")
	}
	p.depth--
	return f, err
}

// unjoined returns the error that nothing joins a token and the parenthesis beside it.
func unjoined(token, side string) error {
	return fmt.Errorf("%q stands %s a parenthesis without & or |; try temp>85 & (real<20 or pod~train)", token, side)
}

func parseTerm(term string) (Filter, error) {
	at := strings.IndexAny(term, "<>=!~")
	if at < 0 {
		return func(g *client.GPU) bool { return mentions(g, term) }, nil
	}
	name, rest := strings.TrimSpace(term[:at]), term[at:]
	for _, op := range operators {
		want, ok := strings.CutPrefix(rest, op.sign)
		if !ok {
			continue
		}
		want = strings.TrimSpace(want)
		m, number := client.MetricNamed(name)
		words := texts[name]
		switch {
		case number && op.numbers != nil:
			return compareMetric(m, want, op.numbers)
		case words != nil && op.words != nil && want != "":
			return func(g *client.GPU) bool {
				all := words(g)
				return anyWord(all, want, op.words) != op.negates && anyWord(all, "", func(have, _ string) bool { return have != "" })
			}, nil
		case !number && words == nil:
			return nil, fmt.Errorf("no reading is called %q; try temp>85, real<20 or pod~train, and i explains them all", name)
		}
		return nil, fmt.Errorf("%q cannot be compared by %q with %q; try temp>85, real<20 or pod~train", name, op.sign, want)
	}
	return nil, fmt.Errorf("%q is not a comparison; try temp>85, real<20 or pod~train", term)
}

func compareMetric(m client.Metric, want string, holds func(a, b float64) bool) (Filter, error) {
	of := units[client.Metrics[m].Unit]
	number, scale, ok := cutUnit(want, of)
	if amount := amounts[m]; !ok && amount != client.MetricNone {
		if n, times, fits := cutUnit(want, units[client.Metrics[amount].Unit]); fits {
			m, number, scale, ok = amount, n, times, true
		}
	}
	if !ok {
		in := ""
		if of.name != "" {
			in = " in " + of.name
		}
		return nil, fmt.Errorf("%q is not a number%s; write %s>85", want, in, client.Metrics[m].Name)
	}
	return func(g *client.GPU) bool { return holds(client.Metrics[m].Value(g)/scale, number) }, nil
}

// cutUnit parses a number with an optional unit, and returns the number and the size of the unit
// in that of canonical.
func cutUnit(text string, of unit) (number, scale float64, ok bool) {
	end := strings.LastIndexAny(text, "0123456789.") + 1
	scale = of.bare
	if name := strings.TrimSpace(text[end:]); name != "" {
		if scale = of.names[name]; scale == 0 {
			return 0, 0, false
		}
	}
	if scale == 0 {
		scale = 1
	}
	number, err := strconv.ParseFloat(strings.TrimSpace(text[:end]), 64)
	return number, scale, err == nil && !math.IsNaN(number)
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
	for _, w := range words {
		if holds(strings.ToLower(w), want) {
			return true
		}
	}
	return false
}

// FilterNames returns the names that a term can begin with, sorted.
func FilterNames() []string {
	names := slices.Collect(maps.Keys(texts))
	for m := client.MetricReal; m < client.NumMetrics; m++ {
		names = append(names, client.Metrics[m].Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// FilterWords returns the possible values of a text of a device, or nil if it is free.
func FilterWords(name string) []string {
	switch name {
	case "class":
		words := make([]string, 0, len(canonical.Classes))
		for _, c := range canonical.Classes {
			words = append(words, c.Name)
		}
		return words
	case "health":
		return append(slices.Clone(canonical.HealthStates[:]), canonical.Conditions[:]...)
	}
	return nil
}
