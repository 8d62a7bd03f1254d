package view

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// Filter selects devices for which all its terms hold; the empty one selects all.
type Filter []func(*client.GPU) bool

// units are the numbers that people type: a filter compares the value times a factor,
// and accepts names behind the number, the first of which messages use.
var units = map[canonical.Unit]struct {
	times float64
	names []string
}{
	canonical.Ratio:          {100, []string{"%"}},
	canonical.Bytes:          {1.0 / (1 << 30), []string{"GiB"}},
	canonical.BytesPerSecond: {1e-9, []string{"GB/s"}},
	canonical.Hertz:          {1e-6, []string{"MHz"}},
	canonical.Joules:         {1 / 3.6e6, []string{"kWh"}},
	canonical.Watts:          {1, []string{"W"}},
	canonical.Celsius:        {1, []string{"°C", "C"}},
}

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

// operators are in the order of matching: longer ones first. One that negates holds
// where there are words, and the opposite holds for none of them.
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

// ParseFilter parses terms separated by "&": `temp>85`, with the number in percent,
// GiB, GB/s, MHz, W or °C; `pod~train`; or a part of any word of the device. A reading
// that is missing fulfils no term.
func ParseFilter(expr string) (Filter, error) {
	var f Filter
	for _, term := range strings.Split(expr, "&") {
		term = strings.ToLower(strings.TrimSpace(term))
		if term == "" {
			continue
		}
		holds, err := parseTerm(term)
		if err != nil {
			return nil, err
		}
		f = append(f, holds)
	}
	return f, nil
}

func parseTerm(term string) (func(*client.GPU) bool, error) {
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
	return nil, fmt.Errorf("%q is no comparison; try temp>85, real<20 or pod~train", term)
}

func compareMetric(m client.Metric, want string, holds func(a, b float64) bool) (func(*client.GPU) bool, error) {
	unit, ok := units[client.Metrics[m].Unit]
	if !ok {
		unit.times = 1
	}
	digits, in := want, ""
	for i, name := range unit.names {
		digits = strings.TrimSuffix(digits, strings.ToLower(name))
		if i == 0 {
			in = " in " + name
		}
	}
	number, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || math.IsNaN(number) {
		return nil, fmt.Errorf("%q is no number%s; write %s>85", want, in, client.Metrics[m].Name)
	}
	return func(g *client.GPU) bool { return holds(client.Metrics[m].Value(g)*unit.times, number) }, nil
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

// match reports whether all terms hold for g.
func (f Filter) match(g *client.GPU) bool {
	for _, holds := range f {
		if !holds(g) {
			return false
		}
	}
	return true
}
