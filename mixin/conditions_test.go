package mixin_test

import (
	"encoding/json"
	"fmt"
	"os"
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

// TestEveryConditionHasAnAlert: every condition has an alert, by action or, with a written
// reason, of its own; conditions with alerts by action ask for an action.
func TestEveryConditionHasAnAlert(t *testing.T) {
	var table map[string]coverage
	text, err := mixin.Evaluate(".", "import 'lib/conditions.libsonnet'")
	if err == nil {
		err = json.Unmarshal([]byte(text), &table)
	}
	if err != nil {
		t.Fatal(err)
	}
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
