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
// (there): "=" is the same, "e" an error instead.
var badFiles = []struct{ name, text, here, there string }{
	{"not YAML", "groups:\n\t- name: a\n", "f:2: not YAML: found character that cannot start any token; check quotes, and the indentation, which must be spaces", "="},
	{"a binary", "\x7fELF\x02\x01\x01\x00", "f:1: not YAML: control characters are not allowed; check quotes, and the indentation, which must be spaces", "="},
	{"two documents", "groups: []\n---\ngroups: []\n", "f:2: a second document begins here; keep one and remove the ---", "="},
	{"empty", "", "f: warning: contains no group, so nothing is evaluated; begin the file with groups:", "="},
	{"a word", "up\n", "f:1: cannot unmarshal !!str `up` into rulefmt.RuleGroups; correct it", "="},
	{"keys for groups", "groups:\n  name: a\n", "f:2: cannot unmarshal !!map into []rulefmt.RuleGroup; correct it", "="},
	{"an unknown key of a group", "groups:\n- {name: a, intervall: 5s}\n", `f:2: intervall: is not a known key; see the documentation`, "="},
	{"a key twice", one("record: a", "expr: b", "record: c"), `f:6: mapping key "record" already defined at line 4; correct it`, "="},
	{"a test of rules", "rule_files: [a.yml]\ntests: []\n", "f:1: rule_files: is not a known key; see the documentation\nf:2: tests: is not a known key; see the documentation", "="},
	{"a group without a name", "groups:\n- rules: []\n", "f: Groupname must not be empty; correct it", "="},
	{"a group twice", "groups:\n- {name: a}\n- {name: b}\n- name: a\n", `f: groupname: "a" is repeated in the same file; correct it`, "="},
	{"an interval without a unit", "groups:\n- {name: a, interval: 5}\n", `f: not a valid duration string: "5"; see what promtool check rules reports`, "="},
	{"an interval that is too short", "groups:\n- {name: a, interval: 999ms}\n", `f:2: group "a": interval 999ms is too short to be evaluated here; write 1s or more`, ""},
	{"a label of letters beyond", one("record: a", "expr: b", "labels: {größe: c}"), `f:4: group "g": rule 1 "a": label "größe" is not a label name of the text format; use letters, digits and _`, ""},
	{"a rule that is none", one("expr: a"), `f:4: group "g": rule 1 "": one of 'record' or 'alert' must be set; correct it`, "="},
	{"a record with an annotation", one("record: a", "expr: b", "annotations: {c: d}"), `f:4: group "g": rule 1 "a": invalid field 'annotations' in recording rule; correct it`, "="},
	{"an error in a group of a repeated name", "groups:\n- {name: a}\n- name: a\n  rules:\n  - record: b\n", "f: groupname: \"a\" is repeated in the same file; correct it\nf:5: group \"a\": rule 1 \"b\": field 'expr' must be set in rule; correct it", "="},
	{"a name with a sign", one("record: a~b", "expr: c"), `f:4: group "g": rule 1 "a~b": "a~b" is not a metric name of the text format; use letters, digits, _ and :`, ""},
	{"a name of ours", one("record: kpulse_gpu_health", "expr: a"), `f:4: group "g": rule 1 "kpulse_gpu_health": kpulse_gpu_health begins like the series of kpulse-proxy, and would collide with them; name it level:metric:operation, such as gpu:real_utilization:avg5m`, ""},
	{"an expression that is none", one("record: a", "expr: |", "  sum by (b) (", "    rate(c[5m]"), `f:5: group "g": rule 1 "a": not PromQL: 3:1: parse error: unclosed left parenthesis; correct the expression`, "="},
	{"a range beyond the window", one("record: a", "expr: rate(b[1m]) + rate(c[1h]) + rate(d[6m])"), `f:4: group "g": rule 1 "a": reaches back 1h, and the window is 5m; shorten it, raise --rules.window, or let Prometheus evaluate the rule`, ""},
	{"a group's offset beyond the window", "groups:\n- name: g\n  rules:\n  - {record: a, expr: 'rate(b[5m])'}\n  query_offset: 1m\n", `f:4: group "g": rule 1 "a": reaches back 6m, and the window is 5m; shorten it, raise --rules.window, or let Prometheus evaluate the rule`, ""},
	{"a fixed time", one("record: a", "expr: b @ 1e9"), `f:4: group "g": rule 1 "a": has a fixed time (@), which no window can contain; remove the @, or let Prometheus evaluate the rule`, ""},
	{"a series that is not ours", one("record: a", "expr: sum(kpulse_gpu_power)"), `f:5: warning: group "g": rule 1 "a": kpulse_gpu_power is not a series of kpulse-proxy, and these files do not record it; did you mean kpulse_gpu_power_watts?`, "e"},
	{"a series with a mistyped name", one("record: a", "expr: sum(kpulse_gpu_xid_lsat)"), `f:5: warning: group "g": rule 1 "a": kpulse_gpu_xid_lsat is not a series of kpulse-proxy, and these files do not record it; did you mean kpulse_gpu_xid_last?`, "e"},
	{"a series that is like none of ours", one("record: a", `expr: '{__name__="kpulse_nothing"}'`), `f:5: warning: group "g": rule 1 "a": kpulse_nothing is not a series of kpulse-proxy, and these files do not record it; its README lists them`, "e"},
	{"telemetry, which only Prometheus has", one("record: a", "expr: kpulse_proxy_x"), `f:5: warning: group "g": rule 1 "a": kpulse_proxy_x is not a series of kpulse-proxy, and these files do not record it; its README lists them`, ""},
	{"alerts", one("alert: a", "expr: up == 0") + "  - {alert: b, expr: up == 1}\n", "f:4: warning: alerting rules are left out: only Prometheus raises alerts; give it the file", ""},
}

func TestBadFiles(t *testing.T) {
	for _, test := range badFiles {
		if test.there == "=" {
			test.there = test.here
		}
		if test.there == "e" { // there it is an error
			test.there = strings.Replace(test.here, "warning: ", "", 1)
		}
		for _, there := range []bool{false, true} {
			want := test.here
			if there {
				want = test.there
			}
			_, problems := load(t, Options{Window: 5 * time.Minute, Served: served, ForPrometheus: there}, test.text)
			if got := problems.Error(); got != want {
				t.Errorf("%s, for Prometheus %v: got\n%s\nwant\n%s", test.name, there, got, want)
			}
			refused := len(problems) > strings.Count(want, "warning: ")
			if problems.Refuse() != refused {
				t.Errorf("%s, for Prometheus %v: refused %v", test.name, there, !refused)
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
			rule.Selects, rule.Reach = nil, 0 // Text is compared instead
		}
	}
	requests := "1 +\n  rate(kpulse_proxy_http_requests_total[1m]) # telemetry\n"
	want := []Group{
		{File: "f", Line: 3, Name: "one", Interval: 90 * time.Second, Offset: 30 * time.Second, Limit: 16, Rules: []Rule{
			{Line: 9, Record: "gpu:power_watts:sum", Text: "sum(kpulse_gpu_power_watts)", Labels: map[string]string{"site": "here", "rack": "7"}},
			{Line: 18, Record: "a", Text: requests, Labels: map[string]string{"site": "here", "rack": "", "on": "yes"}},
		}},
		{File: "f", Line: 25, Name: "two", Rules: []Rule{
			{Line: 18, Record: "a", Text: requests, Labels: map[string]string{"rack": "", "on": "yes"}},
			{Line: 26, Record: "b", Text: "gpu:power_watts:sum > 2", Labels: map[string]string{"site": "here", "rack": "8"}},
		}},
		{File: "f", Line: 27, Name: "three"},
	}
	if !reflect.DeepEqual(set.Groups, want) || set.Alerts != 1 || set.Rules() != 4 {
		t.Errorf("got  %+v\nwant %+v; %d alerts, %d rules", set.Groups, want, set.Alerts, set.Rules())
	}
}

// TestBounds: excessive aliases and deep nesting are refused, and a reach of the window and the
// least interval are accepted.
func TestBounds(t *testing.T) {
	aliases := "groups:\n- name: a\n  rules: &r [" + strings.Repeat("{record: a, expr: 1},", 1000) + "]\n"
	for i := range 600 {
		aliases += "- {name: g" + strings.Repeat("x", i) + ", rules: *r}\n"
	}
	for name, test := range map[string]struct{ text, want string }{
		"aliases":               {aliases, "document contains excessive aliasing; see what promtool"},
		"a long expression":     {one("record: a", "expr: '"+strings.Repeat("1 + ", 1<<12)+"1'"), "could not parse expression: longer than 16384 bytes; split it"},
		"nested parentheses":    {one("record: a", "expr: '"+strings.Repeat("(", 1<<12)+"b"+strings.Repeat(")", 1<<12)+"'"), ""},
		"deep brackets in YAML": {"groups: " + strings.Repeat("[", 1<<16), "not YAML: "},
		"a reach of the window": {"groups:\n- {name: g, interval: 1s, rules: [{record: a, expr: 'rate(b[5m])'}, {record: c, expr: d offset 5m}]}\n", ""},
	} {
		_, problems := load(t, Options{Window: 5 * time.Minute}, test.text)
		if (test.want == "") != (len(problems) == 0) || test.want != "" && !strings.HasPrefix(problems[0].Text, test.want) {
			t.Errorf("%s: %.300s", name, problems.Error())
		}
	}
	if _, problems := load(t, Options{}, one("record: a", "expr: rate(kpulse_nothing[1y])")); len(problems) > 0 {
		t.Error("without options: ", problems)
	}
}
