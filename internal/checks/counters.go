package checks

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// CounterWant is a reading that a score needs.
type CounterWant struct {
	// AnyOf are alternative readings: one is enough.
	AnyOf []canonical.Field
	// For is the score that needs it, such as "real utilization".
	For string
}

// columns of a line: the field, its TYPE, and HELP.
const columns = 3

// types are the words that the exporter accepts as a TYPE. A field of type label becomes a
// label of all series.
var types = []string{"gauge", "counter", "histogram", "summary", dcgm.LabelType}

// checker reads one file.
type checker struct {
	file     string
	known    []string
	lines    map[string]int // by field
	given    [canonical.NumFields]bool
	counters []dcgm.Counter
	problems diag.Problems
}

// CheckCounters returns the counters that body selects, in the order of its lines, and its mistakes
// and missing wants, of which there may be none. Like the exporter's own loader, it refuses a file for a single mistake.
func CheckCounters(file string, body []byte, wants []CounterWant) ([]dcgm.Counter, diag.Problems) {
	c := &checker{file: file, known: known(), lines: map[string]int{}}
	reader := csv.NewReader(bytes.NewReader(body))
	reader.Comment = '#'
	reader.FieldsPerRecord = -1 // record reports a wrong number
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if parse, is := errors.AsType[*csv.ParseError](err); is {
			c.reject(parse.Line, `is not CSV: %v; write a quote right after its comma, as in NAME,type,"help, more help"`, parse.Err)
			continue
		}
		line, _ := reader.FieldPos(0)
		c.record(line, record)
	}
	c.resolve()
	if len(c.lines) == 0 && len(c.problems) == 0 {
		c.reject(0, "names no field, so the exporter would serve nothing; write lines of NAME, type, help")
	}
	if !c.problems.Refuse() {
		c.missing(wants)
	}
	return c.counters, c.problems
}

// known returns the names of all fields, those that we read first.
func known() []string {
	names := translate.CountedFamilies()
	for i := range dcgm.Fields {
		if f := &dcgm.Fields[i]; !f.Foreign() {
			names = append(names, f.Family)
		}
	}
	return append(names, strings.Fields(allNames)...)
}

// allNames are the names of fields in DCGM 4.6's dcgm_fields.h, including those of earlier
// versions, one per line.
//
//go:embed names.txt
var allNames string

// reject adds a mistake with which dcgm-exporter would not start, or Prometheus would refuse
// its page.
func (c *checker) reject(line int, format string, args ...any) {
	c.problems = append(c.problems, diag.Problem{File: c.file, Line: line, Text: fmt.Sprintf(format, args...)})
}

// warn adds a mistake that the exporter tolerates.
func (c *checker) warn(line int, format string, args ...any) {
	c.reject(line, format, args...)
	c.problems[len(c.problems)-1].Warning = true
}

// record checks a line.
func (c *checker) record(line int, record []string) {
	for i := range record {
		record[i] = strings.Trim(record[i], " ")
	}
	switch {
	case len(record) > columns:
		c.reject(line, `must have 3 columns and has %d; put a help with commas between quotes, as in %s`, len(record),
			asLine(record[0], record[1], strings.Join(record[2:], ", ")))
		return
	case len(record) < columns:
		c.reject(line, "must have 3 columns and has %d; write NAME, type, help", len(record))
		return
	}
	name, kind, help := record[0], record[1], record[2]
	if !c.name(line, name) {
		return
	}
	switch {
	case !slices.Contains(types, kind):
		c.reject(line, "%s has the type %q; write gauge or counter", name, kind)
	case kind == "histogram" || kind == "summary":
		c.warn(line, "%s is a %s, which its series are not; write gauge or counter", name, kind)
	}
	switch {
	case !utf8.ValidString(help):
		c.reject(line, "%s has a help that is not UTF-8, and Prometheus refuses a page with it; write it in UTF-8", name)
	case help == "":
		c.warn(line, "%s has no help; write what it is, and in which unit", name)
	}
	if f, ok := translate.FieldOf(name); ok && kind != dcgm.LabelType {
		c.given[f] = true
	}
	c.counters = append(c.counters, dcgm.Counter{Name: name, Type: kind, Help: help})
}

// resolve finds the field of each line, by any of its names and in any unit. It needs all
// lines, since they tell the unit of an ambiguous name.
func (c *checker) resolve() {
	names := make([]string, len(c.counters))
	for i := range c.counters {
		names[i] = c.counters[i].Name
	}
	for i := range c.counters {
		line := &c.counters[i]
		line.Field = slices.IndexFunc(dcgm.Fields[:], func(f dcgm.Field) bool { return f.Family == line.Name && !f.Foreign() })
		native := translate.NativeOf(line.Name, line.Help, names)
		if at := dcgm.FieldOf([]byte(native.Column)); line.Field == dcgm.Unknown && at >= 0 {
			line.Field, line.Times, line.Per = at, native.Times, native.Per
		}
		if native.Ambiguous && line.Type != dcgm.LabelType {
			c.warn(c.lines[line.Name], "%s is percent in some versions and a ratio in others, and nothing in the file shows which; state it in its help: (in %%) or (ratio)", line.Name)
		}
	}
}

// name checks the name of a field, and reports whether to check the rest of the line.
func (c *checker) name(line int, name string) bool {
	if first, twice := c.lines[name]; twice {
		c.reject(line, "%s is in line %d already and would be served twice; remove one of them", name, first)
		return false
	}
	c.lines[name] = line
	vendors := strings.HasPrefix(name, "DCGM_FI_") || strings.HasPrefix(name, "dcgm_")
	// The dialect also has names that only we serve.
	if _, ok := translate.FieldOf(name); ok && vendors || slices.Contains(c.known, name) {
		return true
	}
	near := diag.Within(name, c.known, 2)
	meant := ""
	if near != "" {
		meant = " did you mean " + near + "?"
	}
	switch {
	case vendors:
		c.warn(line, "%s is not a known field;%s dcgm-exporter does not start with a field that its DCGM does not know", name, meant)
	case near != "":
		c.reject(line, "%q is not a field of DCGM;%s", name, meant)
	default:
		c.reject(line, "%q is not a field of DCGM; their names begin with DCGM_FI_", name)
	}
	return true
}

// missing warns of each want that no line satisfies, with a line that would.
func (c *checker) missing(wants []CounterWant) {
	for _, want := range wants {
		if slices.ContainsFunc(want.AnyOf, func(f canonical.Field) bool { return c.given[f] }) {
			continue
		}
		line, recent := lineFor(want.AnyOf[0])
		add := "add the line"
		if recent {
			add = "with DCGM 4.5 or newer, add the line (dcgm-exporter does not start with a field that DCGM does not know)"
		}
		c.problems = append(c.problems, diag.Problem{File: c.file, Warning: true, Below: line,
			Text: fmt.Sprintf("gives no %s%s, for %s; %s", canonical.Prefix, canonical.Fields[want.AnyOf[0]].Name, want.For, add)})
	}
}

// CounterLinesFor returns the lines of a counters file for readings, in their order, without those
// that DCGM lacks.
func CounterLinesFor(readings []canonical.Field) (lines []string) {
	for _, r := range readings {
		if line, _ := lineFor(r); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// lineFor returns a line for a reading, "" if DCGM lacks it, and whether only recent DCGM
// versions have it.
func lineFor(reading canonical.Field) (line string, recent bool) {
	for i := range dcgm.Fields {
		f := &dcgm.Fields[i]
		if r, ok := translate.FieldOf(f.Family); ok && r == reading && !f.Foreign() {
			return asLine(f.Family, f.Type, f.Help), f.Recent
		}
	}
	return "", false
}

// asLine writes a line with the quotes that it needs.
func asLine(record ...string) string {
	var s strings.Builder
	_ = csv.NewWriter(&s).WriteAll([][]string{record}) // a strings.Builder returns no errors
	return strings.TrimSuffix(s.String(), "\n")
}
