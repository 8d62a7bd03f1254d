package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
)

const (
	conditionSeries = canonical.Prefix + "gpu_health_condition"
	healthSeries    = canonical.Prefix + "gpu_health"

	hotSeries          = "device:dcgm_temperature_warning:celsius"
	stallReadingSeries = "device:dcgm_profiling_stalled:readings"
	stallSinceSeries   = "device:dcgm_profiling_stalled:since"
	stateSeries        = "device:dcgm_health:index"
)

// Only the program can tell these: how often codes occurred on a board and not on its neighbours,
// and inputs that no exporter has.
var (
	beyond = []canonical.Condition{canonical.CondXIDRepeated}
	unseen = []canonical.Field{canonical.NVLinksActive}
)

// criterion is a row of compute's table with its condition.
type criterion struct {
	compute.Criterion
	canonical.ConditionInfo
	condition canonical.Condition
}

// criteria returns the rows that these rules implement.
func criteria() (list []criterion) {
	for i, c := range compute.Criteria() {
		condition := canonical.Condition(i)
		c.Inputs = slices.DeleteFunc(slices.Clone(c.Inputs), func(f canonical.Field) bool { return slices.Contains(unseen, f) })
		if !slices.Contains(beyond, condition) {
			list = append(list, criterion{c, canonical.Conditions[i], condition})
		}
	}
	return list
}

// rose is the series that is 1 when a counter rose.
func rose(f canonical.Field) string { return stem(f) + "rose" }

// earlier returns the last value of a series before this evaluation, within the time that devices
// are remembered.
func earlier(series string) string {
	return fmt.Sprintf("last_over_time(%s[%s] %s)", series, span(compute.DeviceMemory), previous)
}

// eventSection records the events of each evaluation that conditions look back on.
func eventSection() section {
	s := section{comment: "Events since the previous evaluation, and those that continue."}
	recorded := map[string]bool{}
	add := func(record, expr string) {
		if !recorded[record] {
			recorded[record] = true
			s.rules = append(s.rules, rule{record, "", expr})
		}
	}
	for _, c := range criteria() {
		for _, f := range c.Inputs {
			switch x := series(f); c.Test {
			case compute.Rose, compute.LinksDown:
				add(rose(f), fmt.Sprintf("%s > bool %s", x, earlier(x)))
			case compute.ProfilingStalled:
				add(stallReadingSeries, fmt.Sprintf(`(%s{mig_instance=""} == 1) + (%s %s)`+"\n"+`or %s{mig_instance=""} == 1`,
					stalledSeries, stallReadingSeries, previous, stalledSeries))
				add(stallSinceSeries, fmt.Sprintf("%s %s and %s\nor %s * 0 + time()", stallSinceSeries, previous, stallReadingSeries, stallReadingSeries))
			}
		}
	}
	return s
}

// healthSection records the conditions, and the worst state among them.
func healthSection(t *compute.Thresholds) section {
	s := section{
		comment: "Health of the board.",
		rules:   []rule{{hotSeries, "", warning(t)}},
	}
	basic := []string{}
	for _, c := range criteria() {
		for _, state := range states(c.States) {
			s.rules = append(s.rules, rule{
				conditionSeries, fmt.Sprintf("condition=%q, state=%q", c.condition, state), found(&c, state, t),
			})
		}
		if c.Basic {
			basic = append(basic, c.condition.String())
		}
	}
	s.rules = append(s.rules, rule{stateSeries, "", worst(basic)})
	for state := range canonical.NumHealth {
		s.rules = append(s.rules, rule{
			healthSeries, fmt.Sprintf("state=%q", state), fmt.Sprintf("%s == bool %d", stateSeries, state),
		})
	}
	return s
}

// warning returns the temperature at which each board is hot.
func warning(t *compute.Thresholds) string {
	var rows []string
	for _, m := range t.Temperatures {
		rows = append(rows, fmt.Sprintf(`0 * group by (%s) (%s{model=~".*%s.*"}) + %s`, boardLabels, infoSeries, regexp.QuoteMeta(m.Model), number(m.Celsius)))
	}
	rows = append(rows, fmt.Sprintf("0 * %s + %s", boardSeries, number(t.Temperature)))
	return strings.Join(rows, "\nor ")
}

// found is 1 if a condition is raised in a state, 0 if it is not, and absent if its input was not
// read.
func found(c *criterion, state canonical.Health, t *compute.Thresholds) string {
	x := series(c.Inputs[0])
	switch c.Test {
	case compute.Positive:
		return x + " > bool 0"
	case compute.TooManyRows:
		return fmt.Sprintf("max by (%s) (%s) > bool %s", boardLabels, x, number(t.RemappedRows))
	case compute.TooHot:
		hot := x + " >= bool " + hotSeries
		if len(c.Inputs) > 1 {
			hot = either(hot, series(c.Inputs[1])+" <= bool 0")
		}
		return hot
	case compute.FatalXID:
		return onXIDs(sinceSeries + " >= 0")
	case compute.Rose:
		return recent(rose(c.Inputs[0]), x, t)
	case compute.LinksDown:
		kind := "{" + canonical.Fields[c.Inputs[0]].Labels + "}"
		return recent(rose(c.Inputs[0])+kind, x+kind, t)
	case compute.RecentXID:
		return onXIDs(warned(t))
	case compute.ProfilingStalled:
		return fmt.Sprintf(`(%s >= bool %d) * (time() - %s >= bool %s)`+"\n"+`or %s{mig_instance=""} * 0`,
			stallReadingSeries, t.StalledReadings, stallSinceSeries, number(t.StalledSpan.Seconds()), stalledSeries)
	default:
		return graded(c, state, t)
	}
}

// recent keeps conditions raised after an event, also while their input is absent. The extra
// millisecond is needed because ranges of Prometheus 3 exclude their left end.
func recent(event, input string, t *compute.Thresholds) string {
	return fmt.Sprintf("max by (%s) (max_over_time(%s[%s])) == 1 and %s\nor 0 * max by (%s) (%s)",
		boardLabels, event, span(t.RiseHold+time.Millisecond), boardSeries, boardLabels, input)
}

// worst returns the index of the worst raised state; ok if none is raised and one of the basic
// conditions was read, otherwise unknown.
func worst(basic []string) string {
	var rows []string
	for state := canonical.HealthUnknown - 1; state > canonical.HealthOK; state-- {
		rows = append(rows, fmt.Sprintf(`0 * max by (%s) (%s{state="%s"} == 1) + %d`, boardLabels, conditionSeries, state, state))
	}
	rows = append(rows,
		fmt.Sprintf(`0 * group by (%s) (%s{condition=~"%s"}) + %d`, boardLabels, conditionSeries, anyOf(basic), canonical.HealthOK),
		fmt.Sprintf("0 * %s + %d", boardSeries, canonical.HealthUnknown))
	// The proxy has series of that name too, for other boards.
	return fmt.Sprintf("(\n%s\n) and %s", indented(strings.Join(rows, "\nor ")), boardSeries)
}
