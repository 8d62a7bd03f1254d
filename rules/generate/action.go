package main

import (
	"fmt"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
)

const (
	actionSeries = canonical.Prefix + "gpu_recommended_action"
	mostSeries   = "device:dcgm_recommended_action:index"
)

// actionSection recommends an action for each board: the strongest that its conditions ask for. The
// driver's recovery action takes precedence over the codes. Like the proxy, it has one series per
// board.
func actionSection(t *compute.Thresholds) section {
	var rows []string
	for action := canonical.NumActions - 1; action > canonical.ActionNone; action-- {
		if c := conditionsAsking(action); c != "" {
			rows = append(rows, fmt.Sprintf("0 * (%s) + %d", c, action))
		}
	}
	recovery := series(canonical.RecoveryAction)
	var codes []string
	for action := canonical.NumActions - 1; action > canonical.ActionNone; action-- {
		if c := codesAsking(action, t); c != "" {
			codes = append(codes, fmt.Sprintf("0 * (%s) + %d", c, action))
		}
	}
	rows = append(rows, fmt.Sprintf("(\n%s\n) unless on (%s) %s >= 1", indented(strings.Join(codes, "\nor ")), boardLabels, recovery))
	var v float64
	for v = 1; v <= mostRecovery; v++ {
		rows = append(rows, fmt.Sprintf("0 * (floor(%s) == %s) + %d", recovery, number(v), compute.RecoveryActionOf(v)))
	}
	rows = append(rows, fmt.Sprintf("0 * (%s >= %s) + %d", recovery, number(v), compute.RecoveryActionOf(v)), "0 * "+boardSeries)
	most := fmt.Sprintf("max by (%s) (\n%s\n)\nand %s != %d", boardLabels, indented(strings.Join(rows, "\nor ")), stateSeries, canonical.HealthUnknown)
	told := fmt.Sprintf(`count_values by (%s) ("action", %s)`, boardLabels, mostSeries)
	for action, name := range canonical.Actions {
		told = fmt.Sprintf(`label_replace(%s, "action", %q, "action", "%d")`, told, name, action)
	}
	return section{
		comment: "The action to take: the strongest that the conditions of the board ask for. The driver's own\nrecovery action takes precedence over the codes.",
		rules:   []rule{{mostSeries, "", most}, {actionSeries, "", told}},
	}
}

// mostRecovery is the highest recovery action that the program knows.
const mostRecovery = 5

// conditionsAsking selects the conditions that ask for an action, in the states in which they ask
// for it; "" if there are none.
func conditionsAsking(action canonical.Action) string {
	var terms []string
	for state := canonical.HealthOK + 1; state < canonical.HealthUnknown; state++ {
		var names []string
		for _, c := range criteria() {
			if c.States.Has(state) && c.condition.ActionIn(state) == action {
				names = append(names, c.condition.String())
			}
		}
		if len(names) > 0 {
			terms = append(terms, fmt.Sprintf("%s{condition=~%q, state=%q} == 1", conditionSeries, anyOf(names), state))
		}
	}
	return strings.Join(terms, " or ")
}

// codesAsking selects the codes that ask for an action: fatal ones that hold, and recent ones
// that warn.
func codesAsking(action canonical.Action, t *compute.Thresholds) string {
	var fatal, plain, terms []string
	for _, row := range canonical.XIDs() {
		switch {
		case row.Action != action:
		case row.Severity == canonical.SeverityFatal:
			fatal = append(fatal, fmt.Sprint(row.Code))
		case row.Severity == canonical.SeverityWarning:
			if len(row.Except) == 0 {
				plain = append(plain, fmt.Sprint(row.Code))
				continue
			}
			terms = append(terms, fmt.Sprintf("(%s unless on (%s) %s)", cameWithin(fmt.Sprintf(`{xid="%d"}`, row.Code), t), boardLabels, modelled(&row)))
		}
	}
	if len(plain) > 0 {
		terms = append(terms, cameWithin(fmt.Sprintf(`{xid=~"%s"}`, anyOf(plain)), t))
	}
	if len(fatal) > 0 {
		terms = append(terms, fmt.Sprintf(`%s{xid=~"%s"} >= 0`, sinceSeries, anyOf(fatal)))
	}
	return strings.Join(terms, " or ")
}
