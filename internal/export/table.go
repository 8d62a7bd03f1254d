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
	text  func(d *canonical.Device, row []float64, v *canonical.Verdict) string
}

// columns of the table. Instances have no health of their own, and a board known
// only from its instances has no class.
var columns = []column{
	{"HOST", func(d *canonical.Device, _ []float64, _ *canonical.Verdict) string { return orAbsent(d.Hostname) }},
	{"GPU", func(d *canonical.Device, _ []float64, _ *canonical.Verdict) string { return idOf(d) }},
	{"MODEL", func(d *canonical.Device, _ []float64, _ *canonical.Verdict) string {
		if d.IsInstance() {
			return "  MIG " + orAbsent(d.Profile)
		}
		return orAbsent(d.Model)
	}},
	{"REAL", func(_ *canonical.Device, _ []float64, v *canonical.Verdict) string { return percent(v.RealUtilization) }},
	{"CLASS", func(d *canonical.Device, _ []float64, v *canonical.Verdict) string {
		if d.Implied {
			return absent
		}
		return v.Class.String()
	}},
	{"HEALTH", func(d *canonical.Device, _ []float64, v *canonical.Verdict) string {
		if d.IsInstance() {
			return absent
		}
		return v.Health.String()
	}},
	{"GPU-UTIL", fraction(canonical.NVMLUtilization)},
	{"SM", fraction(canonical.SMActive)},
	{"TENSOR", fraction(canonical.TensorActive)},
	{"DRAM", fraction(canonical.DRAMActive)},
	{"MEMORY", func(_ *canonical.Device, row []float64, _ *canonical.Verdict) string {
		return shareOf(row[canonical.FramebufferUsed], row[canonical.FramebufferTotal], 1<<30, "%.1f", "GiB")
	}},
	{"POWER", func(_ *canonical.Device, row []float64, _ *canonical.Verdict) string {
		return shareOf(row[canonical.Power], row[canonical.PowerLimit], 1, "%.0f", "W")
	}},
	{"TEMP", amount(canonical.Temperature, "°C")},
	{"MEM-TEMP", amount(canonical.MemoryTemperature, "°C")},
	{"CONDITIONS", func(d *canonical.Device, _ []float64, v *canonical.Verdict) string {
		if d.IsInstance() {
			return absent
		}
		return orAbsent(strings.Join(raised(v), ","))
	}},
}

// Table writes the devices of one reading, a line each, with `--` for missing readings. It
// returns the error of out.
func Table(out io.Writer, v *View) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i, c := range columns {
		cell(w, i, c.title)
	}
	for _, i := range v.shown(nil) {
		for k, c := range columns {
			cell(w, k, diag.Text(c.text(&v.Frame.Topology.Devices[i], v.Frame.Row(i), &v.Verdicts[i])))
		}
	}
	return w.Flush()
}

// cell writes one cell, and ends the line after the last one. A tabwriter
// reports its errors when it is flushed.
func cell(w io.Writer, column int, text string) {
	end := "\t"
	if column == len(columns)-1 {
		end = "\n"
	}
	fmt.Fprint(w, text+end)
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

func fraction(f canonical.Field) func(*canonical.Device, []float64, *canonical.Verdict) string {
	return func(_ *canonical.Device, row []float64, _ *canonical.Verdict) string { return percent(row[f]) }
}

func amount(f canonical.Field, unit string) func(*canonical.Device, []float64, *canonical.Verdict) string {
	return func(_ *canonical.Device, row []float64, _ *canonical.Verdict) string {
		if !canonical.Given(row[f]) {
			return absent
		}
		return fmt.Sprintf("%.0f %s", row[f], unit)
	}
}
