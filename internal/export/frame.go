package export

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// Frame writes a reading for people: source and time, the host if known, a line for each
// device, and below these what is missing and the batch job that we run in. The table leaves out columns that v.Width has no room for.
// It returns the error of out.
func Frame(out io.Writer, v *View) error {
	text := &strings.Builder{}
	fmt.Fprintln(text, diag.Text(sourceLine(v)))
	if line := hostLine(v.Host); line != "" {
		fmt.Fprintln(text, line)
	}
	fmt.Fprintln(text)
	left, err := Table(text, v)
	if err != nil {
		return err
	}
	notes := notesOf(v)
	if len(left) > 0 {
		notes = append(notes, "too wide: "+strings.Join(left, " ")+"; --wide shows all")
	}
	if len(notes) > 0 {
		fmt.Fprintln(text)
		for _, note := range notes {
			fmt.Fprintln(text, diag.Text(note))
		}
	}
	_, err = io.WriteString(out, text.String())
	return err
}

// sourceLine returns the source, the time, and the number of devices shown.
func sourceLine(v *View) string {
	boards, instances := 0, 0
	for _, i := range v.shown(nil) {
		if v.Frame.Topology.Devices[i].IsInstance() {
			instances++
		} else {
			boards++
		}
	}
	line := v.Source.Name
	if v.Source.Backend != "" {
		line += " (" + v.Source.Backend + ", " + v.Source.Aggregation + ")"
	}
	line += "  " + v.Frame.At.Format(time.DateTime+" MST") + "  " + diag.Count(boards, "GPU")
	if instances > 0 {
		line += ", " + diag.Count(instances, "MIG instance")
	}
	if shown := boards + instances; shown < v.Frame.Len() {
		line += fmt.Sprintf(" of %d devices", v.Frame.Len())
	}
	return line
}

// hostLine returns the load of the machine, "" if it is unknown.
func hostLine(h *canonical.Host) string {
	if h == nil {
		return ""
	}
	var parts []string
	if canonical.Given(h.CPUs) {
		parts = append(parts, fmt.Sprintf("CPU %s of %.0f", percent(h.CPUUtilization), h.CPUs))
	}
	if canonical.Given(h.MemoryTotal) {
		parts = append(parts, "memory "+shareOf(h.MemoryTotal-h.MemoryAvailable, h.MemoryTotal, 1<<30, "%.1f", "GiB"))
	}
	if len(parts) == 0 {
		return ""
	}
	return "host: " + strings.Join(parts, ", ")
}

// notesOf returns the lines below the table.
func notesOf(v *View) []string {
	var notes []string
	if r := v.Source.Roster; r != nil {
		for i := range r.Missed[:r.Named] {
			notes = append(notes, "lost: "+nameOf(&r.Missed[i])+", which the source names and has no reading of")
		}
		if n := len(r.Missed) - r.Named; n > 0 {
			notes = append(notes, fmt.Sprintf("lost: %s that should be there", diag.Count(n, "GPU")))
		}
	}
	if len(v.Source.Missing) > 0 {
		notes = append(notes, "missing: "+strings.Join(keysOf(v.Source.Missing), " ")+" (no device gave it)")
	}
	if len(v.Job) > 0 {
		line := "job:"
		for _, variable := range v.Job {
			line += " " + variable.Name + "=" + variable.Value
		}
		notes = append(notes, line)
	}
	return notes
}

// nameOf returns all known names of a board that was not read.
func nameOf(d *canonical.Device) string {
	words := []string{"GPU", orAbsent(d.GPU)}
	for _, text := range []string{d.UUID, d.PCIBusID, d.Model} {
		if text != "" {
			words = append(words, text)
		}
	}
	return diag.Text(strings.Join(words, " "))
}
