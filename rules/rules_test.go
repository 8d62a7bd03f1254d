// Package rules_test checks the rule files beside it and the twin: Prometheus accepts them,
// each rule is tested and in a table of README.md, and they read only what is served or
// recorded.
package rules_test

import (
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/expose"
)

// twin is tested by the Go tests beside it, which compare it with the program.
const twin = "twin/dcgm-exporter.rules.yml"

// ruleFiles returns the groups of each rule file, by file name.
func ruleFiles(t *testing.T) map[string][]rulefmt.RuleGroup {
	t.Helper()
	names, err := filepath.Glob("*.yml")
	if err != nil || len(names) < 2 {
		t.Fatalf("rule files %v, %v", names, err)
	}
	optional, err := filepath.Glob("optional/*.yml")
	if err != nil || len(optional) == 0 {
		t.Fatalf("optional rule files %v, %v", optional, err)
	}
	names = append(append(names, optional...), twin)
	files := map[string][]rulefmt.RuleGroup{}
	for _, name := range names {
		groups, errs := rulefmt.ParseFile(name, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.Default())
		for _, err := range errs {
			t.Error(err)
		}
		if groups == nil || len(groups.Groups) == 0 {
			t.Fatalf("%s has no groups", name)
		}
		files[name] = groups.Groups
	}
	return files
}

// recorded returns the names that groups record, each once.
func recorded(groups []rulefmt.RuleGroup) []string {
	var names []string
	for _, g := range groups {
		for _, r := range g.Rules {
			names = append(names, r.Record)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestRulesReadWhatIs: each series of ours that a rule reads is served or recorded, and rates
// are taken only of counters.
func TestRulesReadWhatIs(t *testing.T) {
	known := map[string]canonical.Type{}
	for _, s := range expose.SeriesTable() {
		known[s.Name] = s.Type
	}
	files := ruleFiles(t)
	for _, groups := range files {
		for _, name := range recorded(groups) {
			if _, served := known[name]; !served {
				known[name] = canonical.Gauge
			}
		}
	}
	for file, groups := range files {
		for _, g := range groups {
			for _, r := range g.Rules {
				for _, complaint := range misread(t, r.Expr, known) {
					t.Errorf("%s: %s %s", file, r.Record, complaint)
				}
			}
		}
	}
}

// ofCounters are the functions for counters only.
var ofCounters = []string{"rate", "irate", "increase"}

// ofEither are the functions that keep a value unchanged.
var ofEither = []string{"label_replace", "label_join", "last_over_time"}

// misread returns the mistakes of an expression that reads the series in known.
func misread(t *testing.T, text string, known map[string]canonical.Type) (complaints []string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Fatal(err)
	}
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok || !strings.HasPrefix(selector.Name, canonical.Prefix) && !strings.Contains(selector.Name, ":") {
			return nil
		}
		kind, ok := known[selector.Name]
		if !ok {
			complaints = append(complaints, "reads "+selector.Name+", which is neither served nor recorded")
		}
		for _, above := range path {
			if call, ok := above.(*parser.Call); ok && slices.Contains(ofCounters, call.Func.Name) != (kind == canonical.Counter) && !slices.Contains(ofEither, call.Func.Name) {
				complaints = append(complaints, "takes "+call.Func.Name+" of "+selector.Name+", a "+string(kind))
			}
		}
		return nil
	})
	return complaints
}

// TestMisread: misread finds each kind of mistake.
func TestMisread(t *testing.T) {
	known := map[string]canonical.Type{"kpulse_a_total": canonical.Counter, "kpulse_b": canonical.Gauge, "device:kpulse_b:max": canonical.Gauge}
	for expr, complaints := range map[string]int{
		"sum(rate(kpulse_a_total[5m])) / device:kpulse_b:max":          0,
		`label_replace(rate(kpulse_a_total[5m]), "x", "", "x", "")`:    0,
		"avg_over_time(kpulse_b[5m])":                                  0,
		"kpulse_a_total - last_over_time(kpulse_a_total[5m])":          0,
		"rate(DCGM_FI_DEV_ANY[5m])":                                    0,
		"increase(kpulse_b[5m])":                                       1,
		"avg_over_time(kpulse_a_total[5m])":                            1,
		"kpulse_c":                                                     1,
		"device:kpulse_b:min + rate((device:kpulse_b:max)[5m:1m])":     2,
		"sum by (x) (rate(kpulse_a_total[5m])) unless on (x) kpulse_d": 1,
	} {
		if got := misread(t, expr, known); len(got) != complaints {
			t.Errorf("%s: %q, want %d complaints", expr, got, complaints)
		}
	}
}

// TestOneSampleAMinute: README.md promises one sample per minute, and GPU-hours count these
// samples. An increase since the previous evaluation names its interval.
func TestOneSampleAMinute(t *testing.T) {
	for file, groups := range ruleFiles(t) {
		if file == twin {
			continue
		}
		for _, g := range groups {
			every := "1m"
			if strings.HasSuffix(g.Rules[0].Record, ":increase5m") {
				every = "5m"
			}
			for _, r := range g.Rules {
				if _, since, is := strings.Cut(r.Record, "m:increase"); g.Interval.String() != every || is && since != every {
					t.Errorf("%s: %s of group %s is evaluated every %v", file, r.Record, g.Name, g.Interval)
				}
			}
		}
	}
}
