package rules

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// lineBreak matches the line breaks of YAML.
var lineBreak = regexp.MustCompile("[\r\n\u0085\u2028\u2029]")

// FuzzLoad: no file crashes Load, each refusal has a place and a reason, and Prometheus' own
// loader accepts each accepted file with the same meaning.
func FuzzLoad(f *testing.F) {
	for _, test := range badFiles {
		f.Add([]byte(test.text))
	}
	f.Add([]byte(one("record: a", "expr: 'max_over_time(rate(b{c=''d''}[1m] offset 1m)[2m:1s]) @ end()'", "labels: {e: 1, f: }")))
	f.Add([]byte("groups:\n- {name: a, interval: 1m, limit: 3, query_offset: 1s, labels: {b: c}, rules: [&r {record: a, expr: 1}, *r]}\n"))
	f.Add([]byte(goodFile))
	f.Add([]byte("groups:\n- {name: a, rules: [{alert: b, expr: 1, annotations: {1: c}}]}\n"))
	file := filepath.Join(f.TempDir(), "f")
	f.Fuzz(func(t *testing.T, body []byte) {
		if err := os.WriteFile(file, body, 0o600); err != nil {
			t.Fatal(err)
		}
		lines := len(lineBreak.FindAll(body, -1)) + 1
		for _, there := range []bool{false, true} {
			opts := Options{Window: 5 * time.Minute, Served: served, ForPrometheus: there}
			set, problems := Load(opts, file)
			for _, p := range problems {
				if p.File != file || p.Text == "" || p.Line < 0 || p.Line > lines {
					t.Fatalf("%d lines have the problem %+v", lines, p)
				}
			}
			again, _ := Load(opts, file)
			if !reflect.DeepEqual(set, again) {
				t.Fatalf("read again it is %+v, not %+v", again, set)
			}
			if !problems.Refuse() {
				compare(t, set, body, there)
			}
		}
	})
}

// compare compares a set with the result of Prometheus' loader.
func compare(t *testing.T, set *Set, body []byte, there bool) {
	scheme := model.LegacyValidation
	if there {
		scheme = model.UTF8Validation
	}
	theirs, errs := rulefmt.Parse(body, false, scheme, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		// We do not check templates of alerts, and the text format does not restrict annotations.
		ofAlert := strings.Contains(err.Error(), "template") || !there && strings.Contains(err.Error(), "annotation name")
		if set.Alerts == 0 || !ofAlert {
			t.Fatalf("Prometheus refuses: %v", err)
		}
	}
	if theirs == nil || len(theirs.Groups) != len(set.Groups) {
		t.Fatalf("Prometheus reads %+v, we %+v", theirs, set.Groups)
	}
	alerts := 0
	for i, g := range theirs.Groups {
		ours := set.Groups[i]
		var offset model.Duration
		if g.QueryOffset != nil {
			offset = *g.QueryOffset
		}
		if g.Name != ours.Name || time.Duration(g.Interval) != ours.Interval || g.Limit != ours.Limit || time.Duration(offset) != ours.Offset {
			t.Fatalf("Prometheus reads %+v, we %+v", g, ours)
		}
		next := 0
		for _, rule := range g.Rules {
			if rule.Alert != "" {
				alerts++
				continue
			}
			got := ours.Rules[next]
			next++
			labels := maps.Clone(g.Labels)
			if labels == nil {
				labels = map[string]string{}
			}
			maps.Copy(labels, rule.Labels)
			if got.Record != rule.Record || got.Text != rule.Expr || !maps.Equal(got.Labels, labels) {
				t.Fatalf("Prometheus reads %+v with %v, we %+v", rule, labels, got)
			}
		}
		if next != len(ours.Rules) {
			t.Fatalf("Prometheus reads %d recording rules, we %d", next, len(ours.Rules))
		}
	}
	if alerts != set.Alerts {
		t.Fatalf("Prometheus reads %d alerts, we %d", alerts, set.Alerts)
	}
}
