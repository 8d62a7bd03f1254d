package mixin_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/prometheus/common/model"

	"github.com/kpulse/kpulse-proxy/internal/expose"
)

// expression is a query and its place.
type expression struct{ where, text string }

// known describes a metric that expressions may name.
type known struct {
	counter bool
	// selector is a label that every selector of the metric must match on.
	selector string
}

// ofOthers are metrics of others, and the proxy's own telemetry.
var ofOthers = map[string]known{
	"up":     {},
	"ALERTS": {selector: "alertname"},

	"ALERTS_FOR_STATE": {selector: "alertname"},

	"kpulse_proxy_host_cpu_utilization_ratio":           {selector: "job"},
	"kpulse_proxy_host_memory_total_bytes":              {selector: "job"},
	"kpulse_proxy_host_memory_available_bytes":          {selector: "job"},
	"process_cpu_seconds_total":                         {counter: true, selector: "job"},
	"process_resident_memory_bytes":                     {selector: "job"},
	"process_start_time_seconds":                        {selector: "job"},
	"kpulse_proxy_http_request_duration_seconds_bucket": {counter: true, selector: "job"},
	"kpulse_proxy_http_requests_total":                  {counter: true, selector: "job"},
}

// catalogue returns the metrics that expressions may name: those of the proxy, of the
// recording rules and in ofOthers.
func catalogue(t *testing.T) map[string]known {
	t.Helper()
	metrics := map[string]known{}
	for name, k := range ofOthers {
		metrics[name] = k
	}
	for _, series := range expose.SeriesTable() {
		metrics[series.Name] = known{counter: series.Type == "counter"}
	}
	for _, group := range groups(t, "prometheus_rules.yaml") {
		for _, rule := range group.Rules {
			if rule.Record != "" {
				metrics[rule.Record] = known{}
			}
		}
	}
	if len(metrics) < 100 {
		t.Fatalf("only %d metrics are known", len(metrics))
	}
	return metrics
}

func groups(t *testing.T, file string) []rulefmt.RuleGroup {
	t.Helper()
	parsed, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}), nil)
	for _, err := range errs {
		t.Fatal(err)
	}
	return parsed.Groups
}

// expressions returns every query of the alerts, and of the dashboards, their annotations and
// their variables.
func expressions(t *testing.T) []expression {
	t.Helper()
	var all []expression
	for _, group := range groups(t, "prometheus_alerts.yaml") {
		for _, rule := range group.Rules {
			all = append(all, expression{rule.Alert, rule.Expr})
		}
	}
	for name, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				all = append(all, expression{fmt.Sprintf("%s, panel %q, query %s", name, p.Title, target.RefID), substitute(target.Expr)})
			}
		}
		for _, a := range d.Annotations.List {
			all = append(all, expression{fmt.Sprintf("%s, annotation %q", name, a.Name), substitute(a.Expr)})
		}
		for _, v := range d.Templating.List {
			var query struct{ Query string }
			if v.Type != "query" || json.Unmarshal(v.Query, &query) != nil {
				continue
			}
			match := labelValuesQuery.FindStringSubmatch(query.Query)
			if match == nil {
				match = queryResultQuery.FindStringSubmatch(query.Query)
			}
			if match == nil {
				t.Errorf("%s, variable %s: %q is not a known kind of query", name, v.Name, query.Query)
				continue
			}
			all = append(all, expression{fmt.Sprintf("%s, variable %s", name, v.Name), match[1]})
		}
	}
	return all
}

// The kinds of queries of variables.
var (
	labelValuesQuery = regexp.MustCompile(`^label_values\((.*), ([a-z_]+)\)$`)
	queryResultQuery = regexp.MustCompile(`^query_result\((.*)\)$`)
)

// substitute replaces Grafana's built-in variables by values.
func substitute(expr string) string {
	return strings.NewReplacer("$__rate_interval", "4m", "$__range_s", "3600", "$__range", "1h", "$__interval", "1m").Replace(expr)
}

func TestExpressionsParseAndNameWhatThereIs(t *testing.T) {
	metrics := catalogue(t)
	promql := parser.NewParser(parser.Options{})
	all := expressions(t)
	if len(all) < 150 {
		t.Fatalf("only %d expressions", len(all))
	}
	for _, e := range all {
		tree, err := promql.ParseExpr(e.text)
		if err != nil {
			t.Errorf("%s: %v\n%s", e.where, err, e.text)
			continue
		}
		parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
			selector, ok := node.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			k, ok := metrics[selector.Name]
			switch {
			case !ok:
				t.Errorf("%s: nothing exports %q", e.where, selector.Name)
			case k.selector != "" && !slices.ContainsFunc(selector.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == k.selector }):
				t.Errorf("%s: %s is selected without %s", e.where, selector.Name, k.selector)
			}
			return nil
		})
		for _, complaint := range misused(tree, metrics) {
			t.Errorf("%s: %s", e.where, complaint)
		}
	}
}

// ofCounters are functions for counters only, ofGauges for gauges only.
var (
	ofCounters = []string{"rate", "increase", "irate"}
	ofGauges   = []string{"delta", "deriv", "avg_over_time", "max_over_time", "min_over_time"}
)

// misused returns the misuses of functions over ranges in an expression.
func misused(tree parser.Expr, metrics map[string]known) []string {
	var complaints []string
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		call, ok := node.(*parser.Call)
		if !ok || len(call.Args) == 0 {
			return nil
		}
		matrix, ok := call.Args[0].(*parser.MatrixSelector)
		if !ok {
			return nil
		}
		name := matrix.VectorSelector.(*parser.VectorSelector).Name
		switch k := metrics[name]; {
		case slices.Contains(ofCounters, call.Func.Name) && !k.counter:
			complaints = append(complaints, fmt.Sprintf("%s of the gauge %s", call.Func.Name, name))
		case slices.Contains(ofGauges, call.Func.Name) && k.counter:
			complaints = append(complaints, fmt.Sprintf("%s of the counter %s", call.Func.Name, name))
		}
		return nil
	})
	return complaints
}
