package mixin_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
)

// This file queries as Grafana does: variables in order, each with the values of those before
// it, and panels with the variables, the time range and the panel's width.

const (
	pageWidth      = 1600             // pixels
	scrapeInterval = 15 * time.Second // the default of Grafana's data source
)

// page is an open dashboard.
type page struct {
	dashboard
	asker    *asker
	from, to time.Time
	chosen   map[string][]string // chosen values; other variables have All or their first value
	values   map[string][]string // all values of the variables resolved so far
}

// open resolves the variables of a dashboard with some of them chosen.
func (a *asker) open(d dashboard, from, to time.Time, chosen map[string][]string) (*page, error) {
	p := &page{dashboard: d, asker: a, from: from, to: to, chosen: chosen, values: map[string][]string{}}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		options, err := p.options(v)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", v.Name, err)
		}
		p.values[v.Name] = options
	}
	return p, nil
}

// options returns the values that a variable can have.
func (p *page) options(v variable) ([]string, error) {
	var query struct{ Query string }
	if err := json.Unmarshal(v.Query, &query); err != nil {
		return nil, err
	}
	var texts []string
	switch {
	case labelValuesQuery.MatchString(query.Query):
		match := labelValuesQuery.FindStringSubmatch(query.Query)
		list, err := p.asker.labelValues(p.fill(match[1], 0), match[2], p.from, p.to)
		if err != nil {
			return nil, err
		}
		texts = list
	case queryResultQuery.MatchString(query.Query):
		expr := queryResultQuery.FindStringSubmatch(query.Query)[1]
		found, err := p.asker.ask(question{expr: p.fill(expr, 0), to: p.to})
		if err != nil {
			return nil, err
		}
		for _, s := range found.series {
			texts = append(texts, s.text())
		}
	default:
		return nil, fmt.Errorf("%q is not a query that this test knows", query.Query)
	}
	if v.Regex == "" {
		return texts, nil
	}
	shown := map[string]string{} // by value
	for _, of := range texts {
		text, value, err := option(v.Regex, of)
		if err != nil {
			return nil, err
		}
		if value != "" {
			shown[value] = text
		}
	}
	return slices.SortedFunc(maps.Keys(shown), func(a, b string) int { return strings.Compare(shown[a], shown[b]) }), nil
}

// option applies a variable's regular expression to a result of its query, and returns the text
// to show and the value, "" if it does not match. With the flag g, one match may have the text
// and another the value.
func option(regex, of string) (text, value string, err error) {
	expr, flags := regex, ""
	if end := strings.LastIndex(regex, "/"); strings.HasPrefix(regex, "/") {
		expr, flags = regex[1:end], regex[end+1:]
	}
	pattern, err := regexp.Compile(strings.ReplaceAll(expr, "(?<", "(?P<"))
	if err != nil {
		return "", "", err
	}
	count := 1
	if strings.Contains(flags, "g") {
		count = -1
	}
	for _, match := range pattern.FindAllStringSubmatch(of, count) {
		for i, group := range pattern.SubexpNames() {
			switch {
			case group == "text" && text == "":
				text = match[i]
			case group == "value" && value == "", i == 1 && group == "" && value == "":
				value = match[i]
			case pattern.NumSubexp() == 0:
				value = match[0]
			}
		}
	}
	switch "" {
	case value:
		value = text
	case text:
		text = value
	}
	return text, value, nil
}

var reference = regexp.MustCompile(`\$(\w+)|\$\{(\w+)(?::(\w+))?\}`)

// fill replaces variables by their values. step is 0 outside of panels.
func (p *page) fill(text string, step time.Duration) string {
	length := p.to.Sub(p.from)
	builtin := map[string]string{
		"__range": fmt.Sprintf("%ds", int(length.Seconds())), "__range_s": strconv.Itoa(int(length.Seconds())), "__range_ms": strconv.Itoa(int(length.Milliseconds())),
		"__interval": model.Duration(step).String(), "__interval_ms": strconv.Itoa(int(step.Milliseconds())),
		"__rate_interval": model.Duration(max(step+scrapeInterval, 4*scrapeInterval)).String(),
		"__from":          strconv.FormatInt(p.from.UnixMilli(), 10), "__to": strconv.FormatInt(p.to.UnixMilli(), 10),
	}
	return reference.ReplaceAllStringFunc(text, func(match string) string {
		parts := reference.FindStringSubmatch(match)
		name := parts[1] + parts[2]
		if v, is := builtin[name]; is {
			return v
		}
		i := slices.IndexFunc(p.Templating.List, func(v variable) bool { return v.Name == name })
		if i < 0 {
			return match
		}
		return p.value(p.Templating.List[i], parts[3])
	})
}

// value returns the value of a variable in a format; "" is the format of expressions.
func (p *page) value(v variable, format string) string {
	values, are := p.chosen[v.Name]
	switch {
	case are && !v.SkipURLSync:
	case v.IncludeAll && v.AllValue != "":
		return v.AllValue
	case v.IncludeAll:
		values = p.values[v.Name]
	default:
		values = p.values[v.Name][:min(1, len(p.values[v.Name]))]
	}
	var escaped []string
	for _, value := range values {
		switch {
		case format == "raw":
		case v.Multi || v.IncludeAll || format == "regex":
			value = strings.ReplaceAll(regexp.QuoteMeta(value), `\`, `\\`)
		default:
			value = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value)
		}
		escaped = append(escaped, value)
	}
	if len(escaped) == 1 {
		return escaped[0]
	}
	return "(" + strings.Join(escaped, "|") + ")"
}

// steps are the steps that Grafana rounds to, each with its upper limit.
var steps = []struct{ below, step time.Duration }{
	{90 * time.Second, time.Minute}, {210 * time.Second, 2 * time.Minute}, {450 * time.Second, 5 * time.Minute}, {750 * time.Second, 10 * time.Minute},
	{1050 * time.Second, 15 * time.Minute}, {1500 * time.Second, 20 * time.Minute}, {2700 * time.Second, 30 * time.Minute}, {math.MaxInt64, time.Hour},
}

// step returns the step of a panel: a point per pixel, but at least the panel's minimum.
func (p *page) step(of panel) time.Duration {
	length := p.to.Sub(p.from) / time.Duration(pageWidth*of.GridPos.W/24)
	step := steps[slices.IndexFunc(steps, func(s struct{ below, step time.Duration }) bool { return length < s.below })].step
	if least, err := model.ParseDuration(of.Interval); err == nil {
		step = max(step, time.Duration(least))
	}
	return step
}

// question is Grafana's request for a query of a panel: an instant query if step is 0.
type question struct {
	expr     string
	from, to time.Time
	step     time.Duration
}

// question returns the question of a query of a panel.
func (p *page) question(of panel, t target) question {
	step := p.step(of)
	q := question{expr: p.fill(t.Expr, step), to: p.to}
	if !t.Instant {
		q.from, q.step = p.from.Truncate(step), step
		q.to = p.to.Truncate(step)
	}
	return q
}

// marked returns the question of an annotation.
func (p *page) marked(a annotation) question {
	of := panel{Interval: a.Step}
	of.GridPos.W = 24
	return p.question(of, target{Expr: a.Expr})
}

// series is a series of a result.
type series struct {
	Metric map[string]string
	Value  [2]json.RawMessage   // of an instant
	Values [][2]json.RawMessage // of a range
}

// text returns a series in the form of a variable's query_result.
func (s series) text() string {
	var labels []string
	for _, name := range sorted(s.Metric) {
		if name != "__name__" {
			labels = append(labels, fmt.Sprintf("%s=%q", name, s.Metric[name]))
		}
	}
	var value string
	_ = json.Unmarshal(s.Value[1], &value)
	return fmt.Sprintf("%s{%s} %s %s", s.Metric["__name__"], strings.Join(labels, ","), value, s.Value[0])
}

// result is Prometheus' answer to a question.
type result struct{ series []series }

// asker sends each question to a Prometheus once. It is safe for concurrent use.
type asker struct {
	prometheus string
	mu         sync.Mutex
	known      map[string]*asked
	labels     sync.Map // values of labels, by address
}

type asked struct {
	sync.Once
	result result
	err    error
}

func newAsker(prometheus string) *asker {
	return &asker{prometheus: prometheus, known: map[string]*asked{}}
}

// address returns the URL of a question.
func (a *asker) address(q question) string {
	path, query := "/api/v1/query", url.Values{"query": {q.expr}, "time": {unix(q.to)}, "timeout": {"10m"}}
	if q.step > 0 {
		path = "/api/v1/query_range"
		query.Del("time")
		query.Set("start", unix(q.from))
		query.Set("end", unix(q.to))
		query.Set("step", strconv.Itoa(int(q.step.Seconds())))
	}
	return a.prometheus + path + "?" + query.Encode()
}

// ask returns the answer to a question.
func (a *asker) ask(q question) (result, error) {
	address := a.address(q)
	a.mu.Lock()
	k := a.known[address]
	if k == nil {
		k = &asked{}
		a.known[address] = k
	}
	a.mu.Unlock()
	k.Do(func() {
		var answer struct {
			Status, Error string
			Data          struct{ Result []series }
		}
		k.err = get(address, &answer)
		if k.err == nil && answer.Status != "success" {
			k.err = fmt.Errorf("%s", answer.Error)
		}
		k.result = result{answer.Data.Result}
	})
	return k.result, k.err
}

func unix(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// labelValues returns the values of a label over a time range.
func (a *asker) labelValues(selector, label string, from, to time.Time) ([]string, error) {
	address := a.prometheus + "/api/v1/label/" + label + "/values?" + url.Values{"match[]": {selector}, "start": {unix(from)}, "end": {unix(to)}}.Encode()
	if known, is := a.labels.Load(address); is {
		return known.([]string), nil
	}
	var answer struct {
		Error string
		Data  []string
	}
	err := get(address, &answer)
	if err == nil && answer.Error != "" {
		err = fmt.Errorf("%s", answer.Error)
	}
	if err == nil {
		a.labels.Store(address, answer.Data)
	}
	return answer.Data, err
}
