package rules

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// served stands in for the families of expose.
var served = []string{
	"kpulse_gpu_info", "kpulse_gpu_power_watts", "kpulse_gpu_power_limit_watts", "kpulse_gpu_nvml_utilization_ratio",
	"kpulse_gpu_real_utilization_ratio", "kpulse_gpu_framebuffer_free_bytes", "kpulse_gpu_framebuffer_used_bytes",
	"kpulse_gpu_workload_class", "kpulse_gpu_health", "kpulse_gpu_xid_last",
}

// one returns a file whose only rule has these lines, from line 4 on.
func one(lines ...string) string {
	return "groups:\n- name: g\n  rules:\n  - " + strings.Join(lines, "\n    ") + "\n"
}

// badFiles are files with their messages when loaded for the proxy (here) and for Prometheus
// (there): "=" is the same, "w" a warning instead, "e" an error instead.
var badFiles = []struct{ name, text, here, there string }{
	{"not YAML", "groups:\n\t- name: a\n", "f:2: not YAML: found character that cannot start any token; check quotes, and the indentation, which must be spaces", "="},
	{"no UTF-8", "groups: \xff", "f:1: not YAML: invalid leading UTF-8 octet; check quotes, and the indentation, which must be spaces", "="},
	{"a binary", "\x7fELF\x02\x01\x01\x00", "f:1: not YAML: control characters are not allowed; check quotes, and the indentation, which must be spaces", "="},
	{"two documents", "groups: []\n---\ngroups: []\n", "f:2: a second document begins here; keep one and remove the ---", "="},
	{"empty", "", "f: warning: contains no group, so nothing is evaluated; begin the file with groups:", "="},
	{"no groups", "groups:\n", "f: warning: contains no group, so nothing is evaluated; begin the file with groups:", "="},
	{"a list", "- name: a\n", "f:1: a list where keys are expected; begin the file with groups:", "="},
	{"a word", "up\n", `f:1: "up" where keys are expected; begin the file with groups:`, "="},
	{"keys for groups", "groups:\n  name: a\n", "f:2: keys where a list is expected; write - name: before each group", "="},
	{"an unknown key of the file", "group: []\n", `f:1: group: is not a known key; did you mean groups?`, "="},
	{"a test of rules", "rule_files: [a.yml]\ntests: []\n", "f:1:1: contains tests, which are for promtool test rules; name the rule files without it", "="},
	{"a key that is like none", "groups: [{name: a}]\nspecification: 1\n", `f:2: specification: is not a known key; the known ones are groups`, "="},
	{"an unknown key of a group", "groups:\n- {name: a, intervall: 5s}\n", `f:2: intervall: is not a known key; did you mean interval?`, "="},
	{"an unknown key of a rule", one("record: a", "exp: b", "expr: b"), `f:5: exp: is not a known key; did you mean expr?`, "="},
	{"a key twice", one("record: a", "expr: b", "record: c"), `f:6: record: is in line 4 already; remove one of them`, "="},
	{"a list for a key", one("record: a", "expr: b", "[c]: d"), `f:6: a list where one value is expected; write a word, or quote it`, "="},
	{"a group twice by merged keys", "groups:\n- &a {name: a}\n- {<<: *a}\n", "f:3:3: group \"a\": has the name of the group in line 2; give it another, or join them", "="},
	{"a group without a name", "groups:\n- rules: []\n", "f:2:3: has no name; give it one that no other group of the file has", "="},
	{"nothing for a group", "groups:\n-\n", "f: warning: contains no group, so nothing is evaluated; begin the file with groups:", "="},
	{"a group twice", "groups:\n- {name: a}\n- {name: b}\n- name: a\n", `f:4:3: group "a": has the name of the group in line 2; give it another, or join them`, "="},
	{"an interval without a unit", "groups:\n- {name: a, interval: 5}\n", `f:2:23: not a valid duration string: "5"; write 30s, 5m or 1h30m`, "="},
	{"durations without units", "groups:\n- {name: a, interval: 5}\n- {name: b, query_offset: 7}\n", "f:2:23: not a valid duration string: \"5\"; write 30s, 5m or 1h30m\nf:3:27: not a valid duration string: \"7\"; write 30s, 5m or 1h30m", "="},
	{"an empty interval", "groups:\n- {name: a, interval: ''}\n", `f:2:23: empty duration string; write 30s, 5m or 1h30m`, "="},
	{"nothing for an interval", "groups:\n- {name: a, interval: , query_offset: 5}\n", `f:2:39: not a valid duration string: "5"; write 30s, 5m or 1h30m`, "="},
	{"an interval by its alias", "groups:\n- {name: &a 5, interval: *a}\n", `f:2:10: not a valid duration string: "5"; write 30s, 5m or 1h30m`, "="},
	{"keys for another interval", "groups:\n- {name: a, interval: 5}\n- {name: b, interval: {}}\n", `f:2:23: not a valid duration string: "5"; write 30s, 5m or 1h30m`, "="},
	{"a label with the name of a duration", "groups:\n- {name: a, interval: 5, labels: {for: ever}}\n", `f:2:23: not a valid duration string: "5"; write 30s, 5m or 1h30m`, "="},
	{"an interval of merged keys", "groups:\n- name: a\n  <<: {interval: 5}\n- name: b\n  <<: [{interval: 6}]\n", "f:3:18: not a valid duration string: \"5\"; write 30s, 5m or 1h30m\nf:5:19: not a valid duration string: \"6\"; write 30s, 5m or 1h30m", "="},
	{"keys that merge themselves", "groups:\n- &a\n  name: a\n  <<: *a\n", "f: anchor 'a' value contains itself; see what promtool check rules reports", "="},
	{"an interval of another unit", "groups:\n- {name: a, interval: 5min}\n", `f:2:23: unknown unit "min" in duration "5min"; write 30s, 5m or 1h30m`, "="},
	{"a negative offset", "groups:\n- {name: a, query_offset: -5m}\n", `f:2:27: not a valid duration string: "-5m"; write 30s, 5m or 1h30m`, "="},
	{"an interval that is too long", "groups:\n- {name: a, interval: 293y}\n", `f:2:23: duration out of range; write 30s, 5m or 1h30m`, "="},
	{"an interval that is too short", "groups:\n- {name: a, interval: 999ms}\n", `f:2:23: group "a": interval 999ms is too short to be evaluated here; write 1s or more`, "w"},
	{"keys for an interval", "groups:\n- name: a\n  interval: {}\n", `f:3: keys where one value is expected; write a word, or quote it`, "="},
	{"a limit that is none", "groups:\n- {name: a, limit: many}\n- {name: b, limit: []}\n", "f:2: \"many\" where a whole number is expected; write it in digits\nf:3: a list where a whole number is expected; write it in digits", "="},
	{"a limit below any", "groups:\n- {name: a, limit: -1}\n", `f:2:20: group "a": "-1" is not a number of series; write a whole number, or 0 for no limit`, "="},
	{"the label of the name", "groups:\n- name: a\n  labels: {__name__: b}\n", `f:3:12: group "a": "__name__" cannot be a label of a rule; remove it`, "="},
	{"an empty label", one("record: a", "expr: b", "labels: {'': b}"), `f:6:14: group "g": rule 1 "a": "" cannot be a label of a rule; remove it`, "="},
	{"a label of letters beyond", one("record: a", "expr: b", "labels: {größe: b}"), `f:6:14: group "g": rule 1 "a": "größe" is not a label name of the text format; use letters, digits and _`, "w"},
	{"a merged label of letters beyond", one("record: a", "expr: b", "labels: {<<: {größe: b}}"), `f:6:13: group "g": rule 1 "a": "größe" is not a label name of the text format; use letters, digits and _`, "w"},
	{"labels by their alias", "groups:\n- {name: a, labels: &l {'': b}}\n- {name: c, labels: *l}\n", "f:2:25: group \"a\": \"\" cannot be a label of a rule; remove it\nf:2:25: group \"c\": \"\" cannot be a label of a rule; remove it", "="},
	{"rules that are merged", "groups:\n- &a {name: a, rules: [{record: b, expr: c, for: 5m}]}\n- {<<: *a, name: d}\n", "f:2:50: group \"a\": rule 1 \"b\": invalid field 'for' in recording rule; only alerting rules have it; remove it\nf:3:3: group \"d\": rule 1 \"b\": invalid field 'for' in recording rule; only alerting rules have it; remove it", "="},
	{"the second mistake first", one("record: a", "for: 5m", "expr: b", "exp: c"), "f:5:10: group \"g\": rule 1 \"a\": invalid field 'for' in recording rule; only alerting rules have it; remove it\nf:7: exp: is not a known key; did you mean expr?", "="},
	{"a list for a label", one("record: a", "expr: b", "labels: {b: [c]}"), `f:6: a list where one value is expected; write a word, or quote it`, "="},
	{"a rule that is none", one("expr: a", "annotations: {b: c}"), `f:4:5: group "g": rule 1: one of 'record' or 'alert' must be set; add record: and the name of the series to make`, "="},
	{"a list of words", "[tests, a]\n", "f:1: a list where keys are expected; begin the file with groups:", "="},
	{"tests beside groups", "groups: []\ntests: []\n", `f:2: tests: is not a known key; the known ones are groups`, "="},
	{"a label value of a rule that is no text", one("record: a", "expr: b", "labels: {c: !!binary /w==}"), "f:4:5: group \"g\": rule 1 \"a\": invalid label value: \xff; correct it", "="},
	{"a word for a group", "groups: [a]\n", `f:1: "a" where keys are expected; write name: and rules:`, "="},
	{"keys for rules", "groups:\n- {name: a, rules: {}}\n", `f:2: keys where a list is expected; write - record: before each rule`, "="},
	{"a word for a rule", "groups:\n- {name: a, rules: [b]}\n", `f:2: "b" where keys are expected; write record: and expr:`, "="},
	{"a word for labels", one("record: a", "expr: b", "labels: c"), `f:6: "c" where keys are expected; write each as name: value`, "="},
	{"a label value of a group that is no text", "groups:\n- {name: a, labels: {b: !!binary /w==}}\n", "f: invalid label value: \xff; correct it", "="},
	{"nothing for a rule", "groups:\n- name: g\n  rules:\n  -\n  - {record: a}\n", `f:5:5: group "g": rule 1 "a": field 'expr' must be set in rule; add expr:`, "="},
	{"a rule that is both", one("record: a", "alert: b", "expr: c"), `f:4:5: group "g": rule 1 "a": only one of 'record' and 'alert' must be set; make two rules of it`, "="},
	{"a rule that is both, with an annotation", one("record: a", "alert: b", "expr: c", "annotations: {d: e}"), "f:4:5: group \"g\": rule 1 \"a\": only one of 'record' and 'alert' must be set; make two rules of it\nf:7:18: group \"g\": rule 1 \"a\": invalid field 'annotations' in recording rule; only alerting rules have it; remove it", "="},
	{"no expression", one("record: a"), `f:4:5: group "g": rule 1 "a": field 'expr' must be set in rule; add expr:`, "="},
	{"an alert without an expression", one("alert: a", "expr: ''", "annotations: {b: c}"), `f:4:5: group "g": rule 1 "a": field 'expr' must be set in rule; add expr:`, "="},
	{"a record that waits", one("record: a", "expr: b", "for: 5m"), `f:6:10: group "g": rule 1 "a": invalid field 'for' in recording rule; only alerting rules have it; remove it`, "="},
	{"a record that keeps firing", one("record: a", "expr: b", "keep_firing_for: 5m"), `f:6:22: group "g": rule 1 "a": invalid field 'keep_firing_for' in recording rule; only alerting rules have it; remove it`, "="},
	{"a record with an annotation", one("record: a", "expr: b", "annotations: {c: d}"), `f:6:18: group "g": rule 1 "a": invalid field 'annotations' in recording rule; only alerting rules have it; remove it`, "="},
	{"an alert that waits for long", one("alert: a", "expr: b", "for: long"), `f:6:10: not a valid duration string: "long"; write 30s, 5m or 1h30m`, "="},
	{"an alert that keeps firing for long", one("alert: a", "expr: b", "keep_firing_for: long"), `f:6:22: not a valid duration string: "long"; write 30s, 5m or 1h30m`, "="},
	{"an annotation without a name", one("alert: a", "expr: b", "annotations: {'': b}"), `f:6:18: group "g": rule 1 "a": invalid annotation name: ; give it a name`, "="},
	{"a template that is none", one("alert: a", "expr: b", "annotations: {c: '{{'}"), `f:6:18: group "g": rule 1 "a": annotation "c": template: __alert_a:1: unclosed action; correct the template`, "="},
	{"a label's template that is none", one("alert: a", "expr: b", "labels: {c: '{{'}"), `f:6:13: group "g": rule 1 "a": label "c": template: __alert_a:1: unclosed action; correct the template`, "="},
	{"a selector for a name", one("record: a{b="+`"c"}`, "expr: d"), `f:4:13: group "g": rule 1 "a{b=\"c\"}": braces present in the recording rule name; should it be in expr?: a{b="c"}; move what is in them to expr, or to labels`, "="},
	{"a name of letters beyond", one("record: größe", "expr: a"), `f:4:13: group "g": rule 1 "größe": "größe" is not a metric name of the text format; use letters, digits, _ and :`, "w"},
	{"a name with a sign", one("record: a~b", "expr: c"), `f:4:13: group "g": rule 1 "a~b": "a~b" is not a metric name of the text format; use letters, digits, _ and :`, "w"},
	{"a name of ours", one("record: kpulse_gpu_health", "expr: a"), `f:4:13: group "g": rule 1 "kpulse_gpu_health": kpulse_gpu_health begins like the series of kpulse-proxy, and would collide with them; name it level:metric:operation, such as gpu:real_utilization:avg5m`, "w"},
	{"an expression that is none", one("record: a", "expr: |", "  sum by (b) (", "    rate(c[5m]"), "f:7: group \"g\": rule 1 \"a\": expression 2:13: not PromQL: unclosed left parenthesis; correct the marked part\n      rate(c[5m]\n                ^", "="},
	{"an unknown function", one("record: a", "expr: 'b + rat(c[5m])'"), "f:5: group \"g\": rule 1 \"a\": expression 1:5: not PromQL: unknown function with name \"rat\"; correct the marked part\n    b + rat(c[5m])\n        ^~~", "="},
	{"an experimental function", one("record: a", "expr: info(b)"), "f:5: group \"g\": rule 1 \"a\": expression 1:1: not PromQL: function \"info\" is not enabled; correct the marked part\n    info(b)\n    ^~~~", "="},
	{"two errors", one("record: a", "expr: rate(b) + rate(c)"), "f:5: group \"g\": rule 1 \"a\": expression 1:6: not PromQL: expected type range vector in call to function \"rate\", got instant vector; correct the marked part\n    rate(b) + rate(c)\n         ^", "="},
	{"a range vector", one("record: a", "expr: b[5m]"), "f:5: group \"g\": rule 1 \"a\": expression 1:1: gives a range vector, which cannot be recorded; make it an instant vector, such as with avg_over_time()\n    b[5m]\n    ^~~~~", "="},
	{"a string", one("record: a", `expr: '"b"'`), "f:5: group \"g\": rule 1 \"a\": expression 1:1: gives a string, which cannot be recorded; make it an instant vector, such as with avg_over_time()\n    \"b\"\n    ^~~", "="},
	{"a range beyond the window", one("record: a", "expr: rate(b[1m]) + rate(c[1h]) + rate(d[6m])"), "f:5: group \"g\": rule 1 \"a\": expression 1:20: reaches back 1h, and the window is 5m; shorten it, raise --rules.window, or let Prometheus evaluate the rule\n    rate(b[1m]) + rate(c[1h]) + rate(d[6m])\n                       ^", "w"},
	{"two equal ranges beyond the window", one("record: a", "expr: rate(b[1h]) + rate(c[1h])"), "f:5: group \"g\": rule 1 \"a\": expression 1:6: reaches back 1h, and the window is 5m; shorten it, raise --rules.window, or let Prometheus evaluate the rule\n    rate(b[1h]) + rate(c[1h])\n         ^", "w"},
	{"an offset beyond the window", one("record: a", "expr: b offset 5m1ms"), "f:5: group \"g\": rule 1 \"a\": expression 1:1: reaches back 5m1ms, and the window is 5m; shorten it, raise --rules.window, or let Prometheus evaluate the rule\n    b offset 5m1ms\n    ^~~~~~~~~~~~~~", "w"},
	{"a group's offset beyond the window", "groups:\n- name: g\n  rules:\n  - {record: a, expr: 'rate(b[5m])'}\n  query_offset: 1m\n", "f:4: group \"g\": rule 1 \"a\": expression 1:6: reaches back 6m, and the window is 5m; shorten it, raise --rules.window, or let Prometheus evaluate the rule\n    rate(b[5m])\n         ^", "w"},
	{"a fixed time", one("record: a", "expr: b @ 1e9"), "f:5: group \"g\": rule 1 \"a\": expression 1:1: has a fixed time (@), which no window can contain; remove the @, or let Prometheus evaluate the rule\n    b @ 1e9\n    ^~~~~~~", "w"},
	{"a series that is not ours", one("record: a", "expr: sum(kpulse_gpu_power)"), "f:5: warning: group \"g\": rule 1 \"a\": expression 1:5: kpulse_gpu_power is not a series of kpulse-proxy, and these files do not record it; did you mean kpulse_gpu_power_watts?\n    sum(kpulse_gpu_power)\n        ^~~~~~~~~~~~~~~~", "e"},
	{"a series that is like none of ours", one("record: a", `expr: '{__name__="kpulse_nothing"}'`), "f:5: warning: group \"g\": rule 1 \"a\": expression 1:1: kpulse_nothing is not a series of kpulse-proxy, and these files do not record it; its README lists them\n    {__name__=\"kpulse_nothing\"}\n    ^~~~~~~~~~~~~~~~~~~~~~~~~~~", "e"},
	{"telemetry, which only Prometheus has", one("record: a", "expr: kpulse_proxy_x"), "f:5: warning: group \"g\": rule 1 \"a\": expression 1:1: kpulse_proxy_x is not a series of kpulse-proxy, and these files do not record it; its README lists them\n    kpulse_proxy_x\n    ^~~~~~~~~~~~~~", ""},
	{"an alert", one("alert: a", "expr: up == 0"), "f: warning: the alerting rule is left out: only Prometheus raises alerts; give it the file", ""},
	{"alerts", one("alert: a", "expr: up == 0") + "  - {alert: b, expr: up == 1}\n", "f: warning: 2 alerting rules are left out: only Prometheus raises alerts; give it the file", ""},
}

func TestBadFiles(t *testing.T) {
	for _, test := range badFiles {
		if test.there == "=" {
			test.there = test.here
		}
		switch test.there {
		case "w": // there it is a warning
			test.there = strings.Replace(test.here, ": ", ": warning: ", 1)
		case "e": // there it is an error
			test.there = strings.Replace(test.here, "warning: ", "", 1)
		}
		for _, there := range []bool{false, true} {
			want := test.here
			if there {
				want = test.there
			}
			set, problems := load(t, Options{Window: 5 * time.Minute, Served: served, ForPrometheus: there}, test.text)
			if got := problems.Error(); got != want {
				t.Errorf("%s, for Prometheus %v: got\n%s\nwant\n%s", test.name, there, got, want)
			}
			refused := len(problems) > strings.Count(want, "warning: ")
			if problems.Refuse() != refused {
				t.Errorf("%s, for Prometheus %v: refused %v", test.name, there, !refused)
			}
			if set == nil || !reflect.DeepEqual(set.Files, []string{"f"}) {
				t.Errorf("%s: the set is %v", test.name, set)
			}
		}
	}
}

// goodFile has everything that a file can hold.
const goodFile = `# all of it
groups:
  - name: one
    interval: 1m30s
    query_offset: 30s
    limit: 0x10
    labels: &labels {site: here, rack: 7}
    rules:
      - record: gpu:power_watts:sum
        expr: sum(kpulse_gpu_power_watts)
      - alert: Down
        expr: up == 0
        for: 5m
        keep_firing_for: 1d
        labels: {severity: page}
        annotations: {summary: "{{ $labels.instance }} is down"}
      - &again
        record: a
        expr: |
          1 +
            rate(kpulse_proxy_http_requests_total[1m]) # telemetry
        labels:
          rack: ''
          on: yes
  - name: two
    rules: [*again, {expr: 'gpu:power_watts:sum > 2', record: b, labels: {<<: *labels, rack: 8}}]
  - {name: three, rules: , interval: , limit: , labels: }
`

func TestGoodFile(t *testing.T) {
	set, problems := load(t, Options{Window: 5 * time.Minute, Served: served, ForPrometheus: true}, goodFile)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for i := range set.Groups {
		for j := range set.Groups[i].Rules {
			rule := &set.Groups[i].Rules[j]
			if rule.Expr == nil {
				t.Fatalf("%s has no expression", rule.Record)
			}
			rule.Expr = nil // Text is compared instead
		}
	}
	requests := "1 +\n  rate(kpulse_proxy_http_requests_total[1m]) # telemetry\n"
	want := []Group{
		{File: "f", Line: 3, Name: "one", Interval: 90 * time.Second, Offset: 30 * time.Second, Limit: 16, Rules: []Rule{
			{Line: 9, Number: 1, Record: "gpu:power_watts:sum", Text: "sum(kpulse_gpu_power_watts)", Labels: map[string]string{"site": "here", "rack": "7"}},
			{Line: 17, Number: 3, Record: "a", Text: requests, Labels: map[string]string{"site": "here", "rack": "", "on": "yes"}},
		}},
		{File: "f", Line: 25, Name: "two", Rules: []Rule{
			{Line: 26, Number: 1, Record: "a", Text: requests, Labels: map[string]string{"rack": "", "on": "yes"}},
			{Line: 26, Number: 2, Record: "b", Text: "gpu:power_watts:sum > 2", Labels: map[string]string{"site": "here", "rack": "8"}},
		}},
		{File: "f", Line: 27, Name: "three"},
	}
	if !reflect.DeepEqual(set.Groups, want) || set.Alerts != 1 || set.Rules() != 4 {
		t.Errorf("got  %+v\nwant %+v; %d alerts, %d rules", set.Groups, want, set.Alerts, set.Rules())
	}
}

// TestKeepsWhatIsRight: a mistake in valid YAML costs only its own rule or group.
func TestKeepsWhatIsRight(t *testing.T) {
	const text = `groups:
- name: a
  rules: [{record: one, expr: 1}, {record: two, expr: '('}, {record: three, expr: 3}]
- name: b
  limit: -1
  rules: [{record: four, expr: 4}]
- name: c
  rules: [{record: five, expr: 5}]
`
	set, problems := load(t, Options{}, text)
	var got []string
	for _, g := range set.Groups {
		for _, rule := range g.Rules {
			got = append(got, g.Name+" "+rule.Record)
		}
	}
	if want := []string{"a one", "a three", "c five"}; !reflect.DeepEqual(got, want) || len(problems) != 2 {
		t.Errorf("kept %q, want %q\n%v", got, want, problems)
	}
}

// TestWithoutOptions: without options, any range and any series is accepted.
func TestWithoutOptions(t *testing.T) {
	if _, problems := load(t, Options{}, one("record: a", "expr: rate(kpulse_nothing[1y])")); len(problems) > 0 {
		t.Error(problems)
	}
}

// TestBounds: excessive aliases, long expressions and deep nesting are refused.
func TestBounds(t *testing.T) {
	aliases := "groups:\n- name: a\n  rules: &r [" + strings.Repeat("{record: a, expr: 1},", 1000) + "]\n"
	for i := range 1000 {
		aliases += "- {name: g" + strings.Repeat("x", i) + ", rules: *r}\n"
	}
	for name, test := range map[string]struct{ text, want string }{
		"aliases":               {aliases, "document contains excessive aliasing; see what promtool"},
		"a long expression":     {one("record: a", "expr: '"+strings.Repeat("1 + ", 1<<14)+"1'"), "longer than 65536 bytes; split it into several rules"},
		"deep parentheses":      {one("record: a", "expr: '"+strings.Repeat("(", 1<<16)+"'"), "not PromQL: unclosed left parenthesis; correct the marked part"},
		"deep brackets in YAML": {"groups: " + strings.Repeat("[", 1<<16), "not YAML: "},
	} {
		set, problems := load(t, Options{}, test.text)
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Text, test.want) || len(set.Groups) > 1000 {
			t.Errorf("%s: %d groups, %.300s", name, len(set.Groups), problems.Error())
		}
	}
}

// TestAtTheBounds: a reach of the window and the least interval are accepted.
func TestAtTheBounds(t *testing.T) {
	const text = "groups:\n- {name: g, interval: 1s, rules: [{record: a, expr: 'rate(b[5m])'}, {record: c, expr: d offset 5m}]}\n"
	if set, problems := load(t, Options{Window: 5 * time.Minute}, text); len(problems) > 0 || set.Rules() != 2 {
		t.Errorf("%d rules, %v", set.Rules(), problems)
	}
}
