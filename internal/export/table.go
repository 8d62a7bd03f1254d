// Package export writes readings for people and programs without a server: as text, as
// JSON, and tick by tick as CSV.
package export

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// absent stands for a missing reading, which is never shown as 0.
const absent = "--"

// column is one column of the table.
type column struct {
	title string
	text  func(r *row) string
}

// columns of the table; it lacks the last one if nothing holds a device. Instances have no health of their own, and a board known
// only from its instances has no class.
var columns = []column{
	{"HOST", func(r *row) string { return orAbsent(r.device.Hostname) }},
	{"GPU", func(r *row) string { return idOf(r.device) }},
	{"MODEL", func(r *row) string {
		if r.device.IsInstance() {
			return "  MIG " + orAbsent(r.device.Profile)
		}
		return orAbsent(r.device.Model)
	}},
	{"REAL", func(r *row) string { return percent(r.verdict.RealUtilization) }},
	{"CLASS", func(r *row) string {
		if r.device.Implied {
			return absent
		}
		return r.verdict.Class.String()
	}},
	{"HEALTH", ofBoard(func(v *canonical.Verdict) string { return v.Health.String() })},
	{"GPU-UTIL", fraction(canonical.NVMLUtilization)},
	{"SM", fraction(canonical.SMActive)},
	{"TENSOR", fraction(canonical.TensorActive)},
	{"DRAM", fraction(canonical.DRAMActive)},
	{"MEMORY", func(r *row) string {
		return shareOf(r.values[canonical.FramebufferUsed], r.values[canonical.FramebufferTotal], 1<<30, "%.1f", "GiB")
	}},
	{"POWER", func(r *row) string {
		return shareOf(r.values[canonical.Power], r.values[canonical.PowerLimit], 1, "%.0f", "W")
	}},
	{"TEMP", celsius(canonical.Temperature)},
	{"MEM-TEMP", celsius(canonical.MemoryTemperature)},
	{"CONDITIONS", ofBoard(func(v *canonical.Verdict) string { return orAbsent(strings.Join(raised(v), ",")) })},
	{"HOLDER", func(r *row) string {
		var names []string
		for _, a := range allocationsOf(r.snapshot, r.index) {
			names = append(names, a.String())
		}
		return orAbsent(strings.Join(names, ", "))
	}},
}

// Table writes the devices of one reading, a line each, with `--` for missing readings. It
// returns the error of out.
func Table(out io.Writer, v *View) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	columns := columns
	if set := v.Frame.AllocationSet; set == nil || len(set.Allocations) == 0 {
		columns = columns[:len(columns)-1]
	}
	line := make([]string, len(columns))
	for i, c := range columns {
		line[i] = c.title
	}
	fmt.Fprintln(w, strings.Join(line, "\t")) // a tabwriter reports its errors when it is flushed
	for _, i := range v.shown(nil) {
		r := v.row(i)
		for k, c := range columns {
			line[k] = diag.Text(c.text(&r))
		}
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}

func orAbsent(s string) string {
	if s == "" {
		return absent
	}
	return s
}

// shareOf returns used/total, or whichever of the two is known.
func shareOf(used, total, over float64, format, unit string) string {
	number := func(v float64) string {
		if !canonical.Given(v) {
			return absent
		}
		return fmt.Sprintf(format, v/over)
	}
	switch {
	case !canonical.Given(used) && !canonical.Given(total):
		return absent
	case !canonical.Given(total):
		return number(used) + " " + unit
	}
	return number(used) + "/" + number(total) + " " + unit
}

func percent(v float64) string {
	if !canonical.Given(v) {
		return absent
	}
	return fmt.Sprintf("%.0f%%", v*100)
}

// ofBoard returns the text of a verdict that instances have no part in.
func ofBoard(text func(*canonical.Verdict) string) func(*row) string {
	return func(r *row) string {
		if r.device.IsInstance() {
			return absent
		}
		return text(r.verdict)
	}
}

func fraction(f canonical.Field) func(*row) string {
	return func(r *row) string { return percent(r.values[f]) }
}

func celsius(f canonical.Field) func(*row) string {
	return func(r *row) string {
		if !canonical.Given(r.values[f]) {
			return absent
		}
		return fmt.Sprintf("%.0f °C", r.values[f])
	}
}
