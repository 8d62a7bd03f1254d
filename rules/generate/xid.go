package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

const (
	countSeries = "device:dcgm_xid_errors:total"
	cameSeries  = "device:dcgm_xid:came"
	sinceSeries = "device:dcgm_xid_fatal:since"
	resetSeries = "device:dcgm_board:reset"
	calmSeries  = "device:dcgm_recovery_action:calm"
	askedSeries = "device:dcgm_recovery_action:asked"
)

// xidSection records which codes occurred, and since when the fatal ones have held.
func xidSection() section {
	last := series(canonical.XIDLast)
	return section{
		comment: "XIDs by code: those that occurred, from changes of the last code and from the exporter's own\ncounts, and since when fatal ones have held, -1 after they are resolved.",
		rules: []rule{
			{countSeries, "", counted()},
			{cameSeries, "", came(last)},
			{resetSeries, "", reset()},
			{calmSeries, "", calm()},
			{askedSeries, "", asked()},
			{sinceSeries, "", since()},
		},
	}
}

// counted returns how often each code occurred, by the exporter's total or else its window. A board
// without XIDs has a row without a code.
func counted() string {
	var families []string
	for _, name := range translate.XIDFamilies() {
		rows := fmt.Sprintf("max by (%s, xid) (\n%s\n)", sourceLabels, indented(gpuRows(name)+" >= 0"))
		families = append(families, fmt.Sprintf("max by (%s, xid) (\n%s\n)", boardLabels, indented(named(rows))))
	}
	return unserved("(\n" + indented(strings.Join(families, "\nor\n")) + "\n)")
}

// came is 1 if a code occurred since the previous evaluation, −1 if it was there when the board was
// first read, otherwise 0. A code that is no longer counted starts from 0 when it returns.
func came(last string) string {
	code := func(expr string) string { return fmt.Sprintf(`count_values by (%s) ("xid", %s)`, boardLabels, expr) }
	before := fmt.Sprintf("%[1]s %[2]s\n  or (%[3]s unless on (%[4]s) %[1]s %[2]s)\n  or 0 * %[1]s", countSeries, previous, earlier(countSeries), boardLabels)
	rose := fmt.Sprintf("%s > (\n  %s\n)", countSeries, before)
	return fmt.Sprintf("(\n%s\n)\n* on (%s) group_left () (0 * %s + 1 or 0 * %s - 1)", indented(fmt.Sprintf(
		"0 * %s + 1\nor 0 * (%s) + 1\nor 0 * %s\nor 0 * %s", code(last+" unless "+last+" == "+earlier(last)), rose, code(last), countSeries)),
		boardLabels, earlier(boardSeries), boardSeries)
}

// reset is 1 if a counter that starts with the driver fell, or if the board was gone while others
// of its host were present and its energy counter did not continue; otherwise 0.
func reset() string {
	var fell []string
	for _, f := range []canonical.Field{canonical.Energy, canonical.ECCDoubleBitVolatile} {
		x := series(f)
		fell = append(fell, fmt.Sprintf("max by (%[1]s) (%[2]s < %[3]s - 1 or %[2]s == 0 and %[3]s > 0)", boardLabels, x, earlier(x)))
	}
	energy := series(canonical.Energy)
	away := fmt.Sprintf("(%[1]s unless %[1]s %[2]s)\n  and %[3]s\n  and on (cluster, hostname) %[1]s %[2]s\n  unless %[4]s >= %[5]s",
		boardSeries, previous, earlier(boardSeries), energy, earlier(energy))
	return fmt.Sprintf("0 * (\n  %s\n  or\n  %s\n) + 1\nor 0 * %s", strings.Join(fell, "\n  or "), away, boardSeries)
}

// calm returns how many readings in a row, up to the number that matters, the driver asked for
// nothing. Readings without the field are skipped, and a fatal code restarts the count.
func calm() string {
	action := series(canonical.RecoveryAction)
	base := fmt.Sprintf("((0 * group by (%s) (%s) or %s or 0 * %s) and %s)", boardLabels, fatalNow(), earlier(calmSeries), boardSeries, boardSeries)
	return fmt.Sprintf("clamp_max(%s + ((%s == 0) + 1), %d)\nor 0 * (%s > 0)\nor %s", base, action, compute.CalmReadings, action, base)
}

// asked returns when the driver last asked for an action; 0 if never.
func asked() string {
	return fmt.Sprintf("0 * (%s > 0) + time()\nor (%s or 0 * %s) and %s", series(canonical.RecoveryAction), earlier(askedSeries), boardSeries, boardSeries)
}

// since keeps its value until the code occurs again or is resolved.
func since() string {
	held := func(codes string) string { return earlier(sinceSeries + codes) }
	waited := fmt.Sprintf("<= time() - %s and on (%s) %s >= %d", number(compute.CalmSpan.Seconds()), boardLabels, calmSeries, compute.CalmReadings)
	var follow []string
	for _, row := range canonical.XIDs() {
		if row.Severity == canonical.SeverityFatal && row.Recovery > 0 {
			follow = append(follow, fmt.Sprint(row.Code))
		}
	}
	resolved := strings.Join([]string{
		fmt.Sprintf("%s < time() - %s", held(""), number(compute.DefaultOptions().XIDHold.Seconds())),
		fmt.Sprintf("%s and on (%s) %s == 1", held(""), boardLabels, resetSeries),
		fmt.Sprintf(`%s %s`, held(fmt.Sprintf(`{xid=~"%s"}`, anyOf(follow))), waited),
		fmt.Sprintf("(%s < on (%s) group_left () (%s + %s)) %s", held(""), boardLabels, askedSeries, number(compute.WitnessLag.Seconds()), waited),
	}, "\n  or ")
	return fmt.Sprintf("0 * (%s) + time()\nor (%s unless (\n  %s\n)\nor 0 * %s - 1) and on (%s) %s", fatalNow(), held(""), resolved, held(""), boardLabels, boardSeries)
}

// fatalNow returns the fatal codes of this evaluation.
func fatalNow() string {
	var plain, except []string
	for _, row := range canonical.XIDs() {
		switch {
		case row.Severity != canonical.SeverityFatal:
		case len(row.Except) == 0:
			plain = append(plain, fmt.Sprint(row.Code))
		default:
			except = append(except, fmt.Sprintf(`or %s{xid="%d"} != 0 unless on (%s) %s`, cameSeries, row.Code, boardLabels, modelled(&row)))
		}
	}
	return fmt.Sprintf(`%s{xid=~"%s"} != 0 %s`, cameSeries, anyOf(plain), strings.Join(except, " "))
}

// modelled returns the boards of models that a row does not apply to.
func modelled(row *canonical.XIDRow) string {
	return fmt.Sprintf(`%s{model=~".*(?:%s).*"}`, infoSeries, anyOf(row.Except))
}

// cameWithin returns the codes of a selector that occurred within Thresholds.RiseHold.
func cameWithin(codes string, t *compute.Thresholds) string {
	return fmt.Sprintf("max_over_time(%s%s[%s]) == 1", cameSeries, codes, span(t.RiseHold+time.Millisecond))
}

// warned returns the recent codes that warn, whether the table says so or lacks them.
func warned(t *compute.Thresholds) string {
	var others, except []string
	for _, row := range canonical.XIDs() {
		if row.Severity == canonical.SeverityWarning {
			continue
		}
		others = append(others, fmt.Sprint(row.Code))
		if len(row.Except) > 0 {
			except = append(except, fmt.Sprintf("\nor %s and on (%s) %s", cameWithin(fmt.Sprintf(`{xid="%d"}`, row.Code), t), boardLabels, modelled(&row)))
		}
	}
	return cameWithin(fmt.Sprintf(`{xid=~"[1-9][0-9]{0,4}", xid!~"%s"}`, anyOf(others)), t) + strings.Join(except, "")
}

// onXIDs is 1 for boards with codes, and 0 for boards without codes if any source of XIDs is
// present.
func onXIDs(codes string) string {
	return fmt.Sprintf("group by (%s) (%s) and %s\nor 0 * %s\nor 0 * max by (%s) (%s)",
		boardLabels, codes, boardSeries, series(canonical.XIDLast), boardLabels, countSeries)
}
