package view

import (
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

// filterUnits are the units of numbers in a filter, in those of canonical, with the name that may
// follow them. Other units are those of the screen.
var filterUnits = map[canonical.Unit]struct {
	size float64
	name string
}{
	canonical.Count:          {1, ""},
	canonical.Code:           {1, ""},
	canonical.Ratio:          {0.01, "%"},
	canonical.Bytes:          {1e9, "GB"},
	canonical.BytesPerSecond: {1e9, ""},
	canonical.Hertz:          {1e6, ""},
	canonical.Joules:         {3.6e6, ""},
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
	"user":      perAllocation(func(a *client.Allocation) []string { return []string{a.User} }),
	"account":   perAllocation(func(a *client.Allocation) []string { return []string{a.Account} }),
}

func perAllocation(of func(*client.Allocation) []string) func(*client.GPU) []string {
	return func(g *client.GPU) (words []string) {
		for i := range g.Allocations {
			words = append(words, of(&g.Allocations[i])...)
		}
		return words
	}
}

// contains reports whether a word has a part, in any case.
func contains(words []string, part string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(word), part) })
}

// is reports whether a word is another, in any case.
func is(words []string, want string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(word, want) })
}

// isOther reports whether there are words, and none is another.
func isOther(words []string, want string) bool {
	return strings.Join(words, "") != "" && !is(words, want)
}

// comparison compares a reading with a number, or the words of a device with one.
type comparison struct {
	sign    string
	numbers func(a, b float64) bool
	words   func(words []string, want string) bool
}

// comparisons are in matching order, longer signs first.
var comparisons = []comparison{
	{">=", func(a, b float64) bool { return a >= b }, nil},
	{"<=", func(a, b float64) bool { return a <= b }, nil},
	{"!=", func(a, b float64) bool { return a != b && !math.IsNaN(a) }, isOther},
	{">", func(a, b float64) bool { return a > b }, nil},
	{"<", func(a, b float64) bool { return a < b }, nil},
	{"=", func(a, b float64) bool { return a == b }, is},
	{"~", nil, contains},
}

// refused returns why a filter cannot be used.
func refused(format string, values ...any) error {
	return &canonical.Failure{Cause: fmt.Sprintf(format, values...), Remedy: "try temp>85 & (real<20 or pod~train), and i explains the readings"}
}

// filterParser holds what is not parsed yet.
type filterParser struct{ rest string }

// ParseFilter parses terms that are joined by & or "and", and by | or "or", which binds less,
// with parentheses; ! or "not" before a term or a parenthesis selects the others. A term is
// `temp>85`, with the number in percent, GB, W, °C or the unit of the screen; `pod~train`; or a
// part of any word of the device. A missing reading matches no term, and a missing term selects all.
func ParseFilter(expr string) (Filter, error) {
	expr = strings.ToLower(expr)
	for word, sign := range map[string]string{" and ": " & ", " or ": " | "} {
		expr = strings.ReplaceAll(strings.ReplaceAll(expr, word, sign), word, sign)
	}
	p := &filterParser{expr}
	f, err := p.any()
	if err == nil && p.rest != "" {
		return nil, refused("there is no & or | before %q, or its parenthesis is closed without being opened", p.rest)
	}
	return f, err
}

func (p *filterParser) any() (Filter, error) { return p.joined("|", p.all) }
func (p *filterParser) all() (Filter, error) { return p.joined("&", p.operand) }

// joined parses operands that a sign joins.
func (p *filterParser) joined(sign string, operand func() (Filter, error)) (Filter, error) {
	var all []Filter
	for more := true; more; {
		f, err := operand()
		if err != nil {
			return nil, err
		}
		if f != nil {
			all = append(all, f)
		}
		p.rest, more = strings.CutPrefix(strings.TrimSpace(p.rest), sign)
	}
	if len(all) == 0 {
		return nil, nil
	}
	any := sign == "|"
	return func(g *client.GPU) bool {
		return slices.ContainsFunc(all, func(f Filter) bool { return f(g) == any }) == any
	}, nil
}

// operand parses a term, or an expression in parentheses, either of which ! or "not" may precede.
func (p *filterParser) operand() (Filter, error) {
	p.rest = strings.TrimSpace(p.rest)
	for _, sign := range []string{"!", "not ", "not("} {
		if rest, ok := strings.CutPrefix(p.rest, sign); ok {
			p.rest = strings.Repeat("(", strings.Count(sign, "(")) + rest
			f, err := p.operand()
			if err != nil || f == nil {
				return f, err
			}
			return func(g *client.GPU) bool { return !f(g) }, nil
		}
	}
	inner, opened := strings.CutPrefix(p.rest, "(")
	if !opened {
		end := strings.IndexAny(p.rest+"&", "&|()")
		term := strings.TrimSpace(p.rest[:end])
		p.rest = p.rest[end:]
		return parseTerm(term)
	}
	p.rest = inner
	f, err := p.any()
	rest, closed := strings.CutPrefix(p.rest, ")")
	if err == nil && !closed {
		err = refused("the parenthesis before %q is not closed", inner)
	}
	p.rest = rest
	return f, err
}

func parseTerm(term string) (Filter, error) {
	at := strings.IndexAny(term, "<>=!~")
	switch {
	case term == "":
		return nil, nil
	case at < 0:
		return func(g *client.GPU) bool { return mentions(g, term) }, nil
	}
	name := strings.TrimSpace(term[:at])
	i := slices.IndexFunc(comparisons, func(c comparison) bool { return strings.HasPrefix(term[at:], c.sign) })
	if i < 0 {
		return nil, refused("%q is not a comparison", term)
	}
	c := &comparisons[i]
	want := strings.TrimSpace(term[at+len(c.sign):])
	m, number := client.MetricNamed(name)
	words := texts[name]
	switch {
	case number && c.numbers != nil:
		return compareMetric(m, want, c.numbers)
	case words != nil && c.words != nil && want != "":
		return func(g *client.GPU) bool { return c.words(words(g), want) }, nil
	case !number && words == nil:
		return nil, refused("no reading is called %q", name)
	}
	return nil, refused("%q cannot be compared by %q with %q", name, c.sign, want)
}

func compareMetric(m client.Metric, want string, holds func(a, b float64) bool) (Filter, error) {
	for _, m := range []client.Metric{m, amounts[m]} {
		unit := filterUnits[client.Metrics[m].Unit]
		v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(want, strings.ToLower(unit.name))), 64)
		if m != client.MetricNone && err == nil && !math.IsNaN(v) {
			return func(g *client.GPU) bool { return holds(client.Metrics[m].Value(g)/unit.size, v) }, nil
		}
	}
	return nil, refused("%q is not a number in %s", want, filterUnits[client.Metrics[m].Unit].name)
}

// mentions reports whether any word of g contains a text.
func mentions(g *client.GPU, text string) bool {
	all := []string{"gpu " + g.ID()}
	for _, words := range texts {
		all = append(all, words(g)...)
	}
	return contains(all, text)
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
