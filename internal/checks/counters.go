package checks

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
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

// ForExporter is what a counters file is checked for if dcgm-exporter is to read it.
type ForExporter struct {
	// Version of the exporter, such as 4.8.2; "" if it is not known.
	Version string
	// Wants are the readings that it should give.
	Wants []CounterWant
}

// checker reads one file.
type checker struct {
	file     string
	exporter *ForExporter   // nil if we read it ourselves
	known    []string       // names of fields, those that we read first
	lines    map[string]int // by field
	given    [canonical.NumFields]bool
	counters []dcgm.Counter
	problems diag.Problems
}

// allNames are the names of fields in DCGM 4.6's dcgm_fields.h, including those of earlier
// versions, one per line. dcgm-exporter 4.8.2 knows all of them.
//
//go:embed names.txt
var allNames string

// namesOf is the version of dcgm-exporter that ends with allNames.
const namesOf = "4.8.2"

// configMap finds a Kubernetes ConfigMap in YAML or JSON.
var configMap = regexp.MustCompile(`(?m)^\s*"?kind"?\s*:\s*"?ConfigMap\b`)

// CheckCounters returns the counters that body selects, in the order of its lines, and its mistakes
// and missing wants, of which there may be none. Like the exporter's own loader, it refuses a file for a single mistake.
// exporter is nil if we serve its series ourselves: names that we do not know are then left out.
func CheckCounters(file string, body []byte, exporter *ForExporter) ([]dcgm.Counter, diag.Problems) {
	c := &checker{file: file, exporter: exporter, known: translate.CountedFamilies(), lines: map[string]int{}}
	if configMap.Match(body) {
		c.reject(0, "is a Kubernetes ConfigMap, and the exporter reads only the content of its key; "+
			"write that to a file: kubectl get configmap NAME -o jsonpath='{.data.metrics}'")
		return nil, c.problems
	}
	for i := range dcgm.Fields {
		if f := &dcgm.Fields[i]; !f.Foreign() {
			c.known = append(c.known, f.Family)
		}
	}
	c.known = append(c.known, strings.Fields(allNames)...)
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
	if exporter != nil && exporter.Version != "" && older(exporter.Version, namesOf) {
		c.warn(0, "is checked against the names of dcgm-exporter %s: which of them %s lacks is not known here", namesOf, exporter.Version)
	}
	if exporter != nil && !c.problems.Refuse() {
		c.missing(exporter.Wants)
	}
	return c.counters, c.problems
}

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

// record checks a line: the field, its TYPE, and HELP. A field of type label becomes a label of all series.
func (c *checker) record(line int, record []string) {
	for i := range record {
		record[i] = strings.Trim(record[i], " ")
	}
	if len(record) > 3 {
		c.reject(line, `must have 3 columns and has %d; put a help with commas between quotes, as in %s`, len(record),
			asLine(record[0], record[1], strings.Join(record[2:], ", ")))
		return
	} else if len(record) < 3 {
		c.reject(line, "must have 3 columns and has %d; write NAME, type, help", len(record))
		return
	}
	name, kind, help := record[0], record[1], record[2]
	if first, twice := c.lines[name]; twice {
		c.reject(line, "%s is in line %d already and would be served twice; remove one of them", name, first)
		return
	}
	c.lines[name] = line
	c.checkName(line, name)
	if kind != "gauge" && kind != "counter" && kind != dcgm.LabelType {
		c.reject(line, "%s has the type %q; write gauge or counter", name, kind)
	}
	if !utf8.ValidString(help) {
		c.reject(line, "%s has a help that is not UTF-8, and Prometheus refuses a page with it; write it in UTF-8", name)
	}
	if f, ok := translate.FieldOf(name); ok && kind != dcgm.LabelType {
		c.given[f] = true
	}
	c.counters = append(c.counters, dcgm.Counter{Name: name, Type: kind, Help: help})
}

// checkName checks the name of a field.
func (c *checker) checkName(line int, name string) {
	vendors := strings.HasPrefix(name, "DCGM_FI_") || strings.HasPrefix(name, "dcgm_")
	// The dialect also has names that only we serve.
	if _, ok := translate.FieldOf(name); ok && vendors || slices.Contains(c.known, name) {
		c.checkVersion(line, name)
		return
	}
	meant := ""
	if near := diag.Within(name, c.known, 2); near != "" {
		meant = " did you mean " + near + "?"
	}
	if vendors && c.exporter == nil {
		c.warn(line, "%s is not a known field;%s dcgm-exporter does not start with a field that its DCGM does not know", name, meant)
	} else if vendors {
		c.reject(line, "%s is a field of no known version of DCGM;%s dcgm-exporter does not start with it", name, meant)
	} else {
		c.reject(line, "%q is not a field of DCGM;%s", name, cmp.Or(meant, " their names begin with DCGM_FI_"))
	}
}

// checkVersion checks that the exporter is new enough for a name.
func (c *checker) checkVersion(line int, name string) {
	since := ""
	switch _, read := translate.FieldOf(name); {
	case c.exporter == nil || strings.Contains("\n"+allNames, "\n"+name+"\n"):
	case strings.HasPrefix(name, "DCGM_EXP_") && strings.HasSuffix(name, "_TOTAL"):
		since = "4.8.3"
	case read && strings.HasPrefix(name, "DCGM_FI_"):
		since = "4.9.0"
	}
	switch {
	case since == "":
	case c.exporter.Version == "":
		c.warn(line, "%s is new in dcgm-exporter %s, and an older one does not start with it; check against yours with --exporter=VERSION", name, since)
	case older(c.exporter.Version, since):
		c.reject(line, "%s is new in dcgm-exporter %s, and %s does not start with it; remove the line", name, since, c.exporter.Version)
	}
}

// older reports whether version a is before b. Both are numbers with dots.
func older(a, b string) bool {
	split := func(version string) (numbers []int) {
		for part := range strings.SplitSeq(version, ".") {
			n, _ := strconv.Atoi(part)
			numbers = append(numbers, n)
		}
		return numbers
	}
	return slices.Compare(split(a), split(b)) < 0
}

// resolve finds the field of each line, by any of its names and in any unit. It needs all
// lines, since they tell the unit of an ambiguous name.
func (c *checker) resolve() {
	names := slices.Collect(maps.Keys(c.lines))
	for i := range c.counters {
		line := &c.counters[i]
		line.Field = slices.IndexFunc(dcgm.Fields[:], func(f dcgm.Field) bool { return f.Family == line.Name && !f.Foreign() })
		native := translate.NativeOf(line.Name, line.Help, names)
		if at := dcgm.FieldOf([]byte(native.Column)); line.Field == dcgm.Unknown && at >= 0 {
			line.Field, line.Times, line.Per = at, native.Times, native.Per
		}
		if native.Ambiguous && line.Type != dcgm.LabelType {
			c.warn(c.lines[line.Name], "%s is percent in some versions and a ratio in others, and nothing in the file shows which; "+
				"state it in its help: (in %%) or (ratio)", line.Name)
		}
	}
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
