package mixin_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/mixin"
)

// coverage is a row of lib/conditions.libsonnet.
type coverage struct {
	ByAction bool
	Alerts   []string
	Why      string
}

// ofTheEvent are conditions that ask for what their XID or the driver does.
var ofTheEvent = []canonical.Condition{canonical.CondXIDFatal, canonical.CondXIDRecent, canonical.CondRecoveryAction}

// TestEveryConditionIsToldOf: every condition has an alert, by action or its own with a written
// reason, and conditions with alerts by action ask for one.
func TestEveryConditionIsToldOf(t *testing.T) {
	var table map[string]coverage
	text, err := mixin.Evaluate(".", "import 'lib/conditions.libsonnet'")
	if err == nil {
		err = json.Unmarshal([]byte(text), &table)
	}
	if err != nil {
		t.Fatal(err)
	}
	alerts := alertNames(t)
	for i, name := range canonical.Conditions {
		row, ok := table[name]
		delete(table, name)
		switch c := canonical.Condition(i); {
		case !ok:
			t.Errorf("no alert tells of %s: give it a row in lib/conditions.libsonnet", name)
		case row.ByAction && compute.ActionOf(c) == canonical.ActionNone && !slices.Contains(ofTheEvent, c):
			t.Errorf("%s asks for nothing, so no alert by action tells of it", name)
		case !row.ByAction && row.Why == "":
			t.Errorf("%s has no alert by action and no reason why not", name)
		}
		for _, alert := range row.Alerts {
			if !slices.Contains(alerts, alert) {
				t.Errorf("%s is to be told of by %s, which is not an alert", name, alert)
			}
		}
	}
	for _, name := range sorted(table) {
		t.Errorf("%s is not a condition", name)
	}
}

// TestEveryActionHasAnAlert: and each such alert looks at what holds, not at what is served
// as 0 with --series=full.
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
