package mixin_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/mixin"
)

// coverage is a row of lib/conditions.libsonnet.
type coverage struct {
	ByAction bool
	Alerts   []string
	Why      string
}

// ofTheEvent are the conditions whose action comes from their XID or the driver.
var ofTheEvent = []canonical.Condition{canonical.CondXIDFatal, canonical.CondXIDRecent, canonical.CondRecoveryAction}

// coverageTable returns lib/conditions.libsonnet, by the name of the condition.
func coverageTable(t *testing.T) (table map[string]coverage) {
	t.Helper()
	text, err := mixin.Evaluate(".", "import 'lib/conditions.libsonnet'")
	if err == nil {
		err = json.Unmarshal([]byte(text), &table)
	}
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestEveryConditionHasAnAlert: every condition has an alert, by action or, with a written
// reason, of its own; conditions with alerts by action ask for an action.
func TestEveryConditionHasAnAlert(t *testing.T) {
	table := coverageTable(t)
	alerts := alertNames(t)
	for i, c := range canonical.Conditions {
		name := c.Name
		row, ok := table[name]
		delete(table, name)
		switch c := canonical.Condition(i); {
		case !ok:
			t.Errorf("no alert covers %s: give it a row in lib/conditions.libsonnet", name)
		case row.ByAction && canonical.Conditions[c].Action == canonical.ActionNone && !slices.Contains(ofTheEvent, c):
			t.Errorf("%s asks for nothing, so no alert by action covers it", name)
		case !row.ByAction && row.Why == "":
			t.Errorf("%s has no alert by action and no reason why not", name)
		}
		for _, alert := range row.Alerts {
			if !slices.Contains(alerts, alert) {
				t.Errorf("%s names %s, which is not an alert", name, alert)
			}
		}
	}
	for _, name := range sorted(table) {
		t.Errorf("%s is not a condition", name)
	}
}

// TestEveryActionHasAnAlert: each action has an alert, which selects actions that hold, not
// those that --series=full serves as 0.
func TestEveryActionHasAnAlert(t *testing.T) {
	text, err := os.ReadFile("prometheus_alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range canonical.Actions {
		selector := fmt.Sprintf(`kpulse_gpu_recommended_action{action="%s"} == 1)`, action)
		if told := strings.Contains(string(text), selector); told != (action != canonical.ActionNone.String()) {
			t.Errorf("an alert for the action %s: %v", action, told)
		}
	}
}

// aboutClasses are the runbooks of alerts about work of some classes.
var aboutClasses = map[string][]canonical.Class{
	"KpulseGPUIdleAllocated":     {canonical.Idle},
	"KpulseIdleMemoryHeld":       {canonical.Idle},
	"KpulseAccountWaste":         {canonical.BusyLowSMUse, canonical.IOOrDataLoading, canonical.LowUtilization},
	"KpulseNamespaceWaste":       {canonical.BusyLowSMUse, canonical.IOOrDataLoading, canonical.LowUtilization},
	"KpulseRequiredFieldMissing": {canonical.ClassUnknown},
}

// adviceOf matches the proxy's advice in a runbook, behind the line that names its dashboard.
var adviceOf = regexp.MustCompile("(\nDashboard: [^\n]*\n)(?:\nWhat the proxy says of it:\n\n(?:- [^\n]*\n)+)?")

// TestRunbooksHaveTheProxysAdvice: the runbook of an alert about conditions or classes has what the proxy advises for them, in its
// words; -update writes it. The conditions whose action depends on the event are in none: `explain xid` says more.
func TestRunbooksHaveTheProxysAdvice(t *testing.T) {
	advice := map[string][]string{}
	for alert, classes := range aboutClasses {
		for _, class := range classes {
			advice[alert] = append(advice[alert], fmt.Sprintf("- `%s`: %s\n", class, canonical.Classes[class].Advice))
		}
	}
	ofAction := map[canonical.Action]string{}
	for _, group := range groups(t, "prometheus_alerts.yaml") {
		for _, rule := range group.Rules {
			if match := regexp.MustCompile(`kpulse_gpu_recommended_action\{action="(\w+)"`).FindStringSubmatch(rule.Expr); match != nil {
				action, _ := canonical.ActionOf(match[1])
				ofAction[action] = rule.Alert
			}
		}
	}
	table := coverageTable(t)
	for _, c := range canonical.Conditions {
		alerts := table[c.Name].Alerts
		if table[c.Name].ByAction && c.Action != canonical.ActionNone {
			alerts = append(alerts, ofAction[c.Action])
			if c.Milder != canonical.ActionNone {
				alerts = append(alerts, ofAction[c.Milder])
			}
		}
		for _, alert := range alerts {
			advice[alert] = append(advice[alert], fmt.Sprintf("- `%s`: %s\n", c.Name, c.Remedy))
		}
	}
	for _, alert := range alertNames(t) {
		file := filepath.Join("runbooks", alert+".md")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		told := ""
		if len(advice[alert]) > 0 {
			told = "\nWhat the proxy says of it:\n\n" + strings.Join(advice[alert], "")
		}
		want := adviceOf.ReplaceAllString(string(text), "${1}"+told)
		if *update && want != string(text) {
			err = os.WriteFile(file, []byte(want), 0o644)
		} else if want != string(text) {
			err = fmt.Errorf("%s lacks the proxy's advice, or has other; -update writes it:%s", file, told)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestSaturatingWork: the pages, the terminal and the report on a job say alike what saturating work reaches.
func TestSaturatingWork(t *testing.T) {
	for file, want := range map[string]string{"lib/panel.libsonnet": canonical.Saturating, "../internal/checks/jobtext.go": "GEMM 77, copy 61, FP32 44 %"} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q (%v)", file, want, err)
		}
	}
	if got := strings.Join(regexp.MustCompile(`\d+ %`).FindAllString(canonical.Saturating, -1), " "); got != "100 % 77 % 61 % 44 %" {
		t.Errorf("%s", got)
	}
}
