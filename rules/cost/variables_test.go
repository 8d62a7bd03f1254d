package main

import (
	"strings"
	"testing"
)

// TestEveryVariableIsFilled: in all dashboards, variables become "all" if they have it, else
// the value of the first node.
func TestEveryVariableIsFilled(t *testing.T) {
	all, err := readDashboards("../../mixin/dashboards_out")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := names(all); err != nil {
		t.Error(err)
	}
	var filled strings.Builder
	for _, d := range all {
		for _, q := range d.queries {
			text, err := q.in(spans[0], d.chosen)
			if err != nil {
				t.Errorf("%s: %v", d.name, err)
			}
			filled.WriteString(d.name + " " + text + "\n")
		}
	}
	for _, part := range []string{`hpc_user=~".*"`, `hpc_account=~".*"`, `model=~".*"`, `uuid="GPU-00000000-1111-2222-3333-444455556666"`, `hostname=~"node-0000"`, "[1h:15s]"} {
		if !strings.Contains(filled.String(), part) {
			t.Errorf("no query has %s", part)
		}
	}
	if strings.Contains(filled.String(), "kpulse-fleet sum by (class) (host:kpulse_gpu_class_gpus:rate5m{cluster=~\".*\", hostname=~\"node") {
		t.Error("Fleet shows one node")
	}
}

// TestWhatIsNotFilledIsAnError: a default such as ".*" would measure another query.
func TestWhatIsNotFilledIsAnError(t *testing.T) {
	for expr, want := range map[string]string{
		`x{a="$other"}`:                "",
		`x{a="${other:regex}"}`:        "",
		`rate(x[$__rate_interval_ms])`: "",
		`label_replace(x{h=~"$hostname"}, "a", "$1", "b", "(.+)")`: `label_replace(x{h=~"n"}, "a", "$1", "b", "(.+)")`,
		`rate(x{h="${hostname}"}[$__rate_interval])`:               `rate(x{h="n"}[1m])`,
	} {
		got, err := query{Expr: expr}.in(spans[0], map[string]string{"hostname": "n"})
		if (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("%s becomes %s (%v), want %s", expr, got, err, want)
		}
	}
	if _, err := choose([]variable{{Name: "rack", Type: "query"}}); err == nil {
		t.Error("an unknown variable has a value")
	}
}
