package main

import (
	"fmt"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
)

// Findings of this evaluation, for conditions that have several states or need several evaluations
// in a row, by the labels condition and state. In the mildest state: whether the condition is
// raised at all; in the worst: whether it is raised in that state. And for how many evaluations in
// a row.
const (
	nowSeries = "device:dcgm_health_condition:now"
	rowSeries = "device:dcgm_health_condition:readings"
)

// states returns the states of a set, the worst first.
func states(set canonical.HealthSet) (list []canonical.Health) {
	for set != 0 {
		list = append(list, set.Worst())
		set &^= 1 << set.Worst()
	}
	return list
}

// either is 1 if one of two findings is 1, 0 if one is present and none is 1, and absent if both
// are absent.
func either(a, b string) string {
	return fmt.Sprintf("(\n  (%s) + (%s)\n  or %s\n  or %s\n) > bool 0", a, b, a, b)
}

// steady reports whether a condition must hold for several evaluations in a row, and is among those
// that now records.
func steady(c *criterion) (inARow, told bool) {
	switch c.Test {
	case compute.AnyBit, compute.Fabric:
		return true, true
	case compute.RecoveryAction, compute.WornMemory:
		return false, true
	}
	return false, false
}

// now returns what this evaluation finds in a state; in the mildest state, whether the condition
// holds at all.
func now(c *criterion, state canonical.Health) string {
	x, atAll := series(c.Inputs[0]), state == c.States.Mildest()
	switch c.Test {
	case compute.AnyBit:
		var names []string
		for _, e := range reasons(c.Mask) {
			names = append(names, e.Reason)
		}
		return fmt.Sprintf(`max by (%s) (%s{reason=~"%s"})`, boardLabels, x, anyOf(names))
	case compute.RecoveryAction:
		if atAll {
			return x + " > bool 0"
		}
		return equals(x, compute.RecoveryCrit[:]...)
	case compute.Fabric:
		health := equals(x, compute.FabricUnhealthy)
		if atAll {
			health = equals(x, compute.FabricUnhealthy, compute.FabricLimited)
		}
		return either(health, series(c.Inputs[1])+" > bool 0")
	default: // WornMemory
		beyond := either(x+" > bool 0", series(c.Inputs[1])+" > bool 0")
		banks := fmt.Sprintf("max by (%s) (%s)", boardLabels, series(c.Inputs[2]))
		if atAll {
			return either(beyond, banks+" > bool 0")
		}
		return fmt.Sprintf("(%s)\nor 0 * %s", beyond, banks)
	}
}

// equals is 1 if a series has one of the values, otherwise 0.
func equals(series string, values ...float64) string {
	terms := make([]string, len(values))
	for i, v := range values {
		terms[i] = fmt.Sprintf("(%s == bool %s)", series, number(v))
	}
	return strings.Join(terms, " + ")
}

// gradedSection records what the conditions above find now, and how many times in a row.
func gradedSection() section {
	s := section{comment: "Current findings of some conditions, and for how many evaluations in a row they have held:\nan evaluation without the input starts the count again."}
	for _, c := range criteria() {
		inARow, told := steady(&c)
		if !told {
			continue
		}
		for _, state := range states(c.States) {
			labels := fmt.Sprintf("condition=%q, state=%q", c.condition, state)
			s.rules = append(s.rules, rule{nowSeries, labels, now(&c, state)})
			if inARow {
				found := fmt.Sprintf("%s{%s} == 1", nowSeries, labels)
				s.rules = append(s.rules, rule{rowSeries, labels, fmt.Sprintf("(%s) + (%s{%s} %s)\nor %s", found, rowSeries, labels, previous, found)})
			}
		}
	}
	return s
}

// graded is 1 if a condition is raised in a state: in the mildest, if it is raised and not in a
// worse one.
func graded(c *criterion, state canonical.Health, t *compute.Thresholds) string {
	of := func(series string, state canonical.Health) string {
		return fmt.Sprintf("%s{condition=%q, state=%q}", series, c.condition, state)
	}
	raised := func(state canonical.Health) string {
		if inARow, _ := steady(c); inARow {
			return fmt.Sprintf("%s >= %d", of(rowSeries, state), t.SteadyReadings)
		}
		return of(nowSeries, state) + " == 1"
	}
	expr := fmt.Sprintf("group by (%s) (%s)", boardLabels, raised(state))
	if worst := c.States.Worst(); state != worst {
		expr += fmt.Sprintf(" unless on (%s) (%s)", boardLabels, raised(worst))
	}
	return expr + "\nor 0 * max by (" + boardLabels + ") (" + of(nowSeries, state) + ")"
}
