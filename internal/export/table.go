// Package export writes readings for people and programs without a server: as text, as
// JSON, and tick by tick as CSV.
package export

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

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

// lessened are the columns that a narrow terminal goes without, the first first.
var lessened = []string{"MEM-TEMP", "DRAM", "TENSOR", "SM", "HOST", "MODEL", "HOLDER", "TEMP", "POWER", "MEMORY", "CONDITIONS"}

// Table writes the devices of one reading, a line each, with `--` for missing readings. It returns the
// titles of the columns that do not fit v.Width, and the error of out.
func Table(out io.Writer, v *View) (left []string, err error) {
	columns := columns
	if set := v.Frame.AllocationSet; set == nil || len(set.Allocations) == 0 {
		columns = columns[:len(columns)-1]
	}
	const gap = 2
	total := -gap
	widths, lines := make([]int, len(columns)), [][]string{{}}
	for _, c := range columns {
		lines[0] = append(lines[0], c.title)
	}
	for _, i := range v.shown(nil) {
		r, line := v.row(i), []string(nil)
		for _, c := range columns {
			line = append(line, diag.Text(c.text(&r)))
		}
		lines = append(lines, line)
	}
	for k := range columns {
		for _, line := range lines {
			widths[k] = max(widths[k], utf8.RuneCountInString(line[k]))
		}
		total += widths[k] + gap
	}
	for _, title := range lessened {
		if k := slices.Index(lines[0], title); k >= 0 && v.Width > 0 && total > v.Width {
			left, total, widths[k] = append(left, title), total-widths[k]-gap, 0
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, gap, ' ', 0)
	for _, line := range lines {
		var cells []string
		for k, cell := range line {
			if widths[k] > 0 {
				cells = append(cells, cell)
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t")) // a tabwriter reports its errors when it is flushed
	}
	return left, w.Flush()
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
