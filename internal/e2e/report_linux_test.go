package e2e

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	reportPage = "../../testdata/bench/REPORT.md"
	noSize     = -1
)

// report is the result of one run, as in REPORT.md.
type report struct {
	took     time.Duration
	targets  []string // rows
	missed   missed
	compared []string // rows: a contender, and its time divided by expfmt's at each size
	growths  []string // sections
}

// cells returns the cells of a row that the code determines, in column order.
func (target costTarget) cells(size int) []string {
	i := max(0, size)
	return []string{name(size), target.what, target.number(target.goal.of(i)), target.number(target.worst.of(i))}
}

// number formats a value of a target, with its unit.
func (target costTarget) number(v float64) string {
	return strings.TrimSpace(short(v) + " " + target.unit)
}

// short formats a number with three significant digits.
func short(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(v, 'f', max(digits, 0), 64), zeros(digits)), ".")
}

// zeros returns the trailing characters to trim from a number with so many decimals.
func zeros(digits int) string {
	if digits > 0 {
		return "0"
	}
	return ""
}

// judgeGoal compares the written numbers, so readers reach the same verdict.
func judgeGoal(value, goal, worst string) string {
	number := func(text string) float64 {
		v, _ := strconv.ParseFloat(strings.Fields(text)[0], 64)
		return v
	}
	switch v := number(value); {
	case v > number(worst):
		return "**worse than allowed**"
	case v > number(goal):
		return "missed"
	}
	return "met"
}

// add records the result of a target.
func (r *report) add(t *testing.T, size int, target costTarget, m measured) {
	cells := target.cells(size)
	value, spread := target.number(m.quartile(2)), "one round"
	if len(m) > 1 {
		spread = short(m.quartile(1)) + " to " + short(m.quartile(3))
	}
	is := judgeGoal(value, cells[2], cells[3])
	row := "| " + strings.Join(append(cells, value, spread, is), " | ") + " |"
	r.targets = append(r.targets, row)
	t.Log(row)
	if is != "met" {
		r.missed.add(target)
	}
}

// missed are the targets whose goal is missed, by reason.
type missed [][]costTarget

func (m *missed) add(target costTarget) {
	for i, group := range *m {
		if group[0].reason != target.reason {
			continue
		}
		if !slices.ContainsFunc(group, func(other costTarget) bool { return other.what == target.what }) {
			(*m)[i] = append(group, target)
		}
		return
	}
	*m = append(*m, []costTarget{target})
}

// String returns a line for each reason.
func (m missed) String() string {
	if len(m) == 0 {
		return "None."
	}
	var lines []string
	for _, group := range m {
		var names []string
		for _, target := range group {
			names = append(names, target.what)
		}
		lines = append(lines, "- "+strings.Join(names, "; ")+": "+group[0].reason)
	}
	return strings.Join(lines, "\n")
}

// compare records the contenders' times for the body of a size.
func (r *report) compare(on *rig) {
	if r.compared == nil {
		for _, who := range contenders {
			r.compared = append(r.compared, "| "+who+", in process / expfmt's parse |")
		}
		r.compared = append(r.compared, "| a naive proxy through HTTP / ReverseProxy |", "| peak RSS of the naive proxy, MB |")
	}
	for i, who := range contenders {
		r.compared[i] += " " + short(on.beside(who, "expfmt").quartile(2)) + " |"
	}
	n := len(contenders)
	r.compared[n] += " " + short(naiveRatio(on).quartile(2)) + " |"
	r.compared[n+1] += " " + short(peakMemory(on.t, on.naive)) + " |"
}

// grow records the results of a growth's points.
func (r *report) grow(t *testing.T, g growth, all []measured) {
	medians := make([]float64, len(all))
	section := g.head()
	for i, m := range all {
		medians[i] = m.quartile(2)
		section += fmt.Sprintf("| %d | %s | %s to %s |\n", g.points[i], short(medians[i]), short(m.quartile(1)), short(m.quartile(3)))
	}
	section += "\n`" + sparkline(medians) + "`\n"
	r.growths = append(r.growths, section)
	t.Log(section)
}

// head returns the heading of a section and of its table.
func (g growth) head() string {
	return fmt.Sprintf("### %s\n\n%s.\n\n| %s | %s | quartiles |\n|--:|--:|---|\n", g.of, g.what, g.of, strings.TrimSpace("median "+g.unit))
}

// sparkline draws values from 0 up to the largest.
func sparkline(values []float64) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	most, line := slices.Max(values), []rune{}
	for _, v := range values {
		line = append(line, bars[min(len(bars)-1, int(v/most*float64(len(bars))))])
	}
	return string(line)
}

var reportHead = []string{"size", "measure", "goal", "limit", "median", "quartiles", "verdict"}

func (r *report) text() string {
	return fmt.Sprintf(`# What it costs

`+"`make report`"+` wrote this page, in one run of %d minutes on %s. A ratio compares two programs, or two functions, in the same
round; the median is over all rounds, and half of the rounds are between the quartiles. Ratios carry over to other
machines better than times do.
What a fleet costs a Prometheus is in [rules/README.md](../../rules/README.md).

## Targets

A size is entities × fields of the upstream's body. The goal is what we aim at, and the limit what we should never exceed.

| %s |
|---|---|--:|--:|--:|---|---|
%s

### Missed

%s

## Beside others

| | %s |
|---|--:|--:|--:|--:|
%s

## Growth

%s`, int(math.Ceil(r.took.Minutes())), machine(), strings.Join(reportHead, " | "), strings.Join(r.targets, "\n"), r.missed,
		sizeNames(), strings.Join(r.compared, "\n"), strings.Join(r.growths, "\n"))
}

func sizeNames() string {
	var names []string
	for i := range sizes {
		names = append(names, name(i))
	}
	return strings.Join(names, " | ")
}

// machine describes the machine of the measurement.
func machine() string {
	model := "an unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if m := regexp.MustCompile(`(?m)^model name\s*: (.*)$`).FindSubmatch(text); m != nil {
			model = string(m[1])
		}
	}
	return fmt.Sprintf("%d cores of %s, %s", runtime.NumCPU(), model, runtime.Version())
}

// TestReport checks the form of REPORT.md against the code's targets and growths: rows, goals, and
// a reason for each missed goal. The figures are those of the run.
func TestReport(t *testing.T) {
	text, err := os.ReadFile(reportPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	_, table, _ := strings.Cut(page, "| "+strings.Join(reportHead, " | ")+" |\n|---|---|--:|--:|--:|---|---|\n")
	rows := strings.Split(table, "\n")
	var why missed
	check := func(size int, target costTarget) {
		t.Helper()
		want := target.cells(size)
		cells := strings.Split(strings.Trim(rows[0], "| "), " | ")
		if size == noSize {
			cells = append([]string{""}, cells...)
		}
		rows = rows[1:]
		if len(cells) != len(reportHead) || !slices.Equal(cells[:4], want) {
			t.Fatalf("a row of REPORT.md is %q, want one of %q: run make report", cells, want)
		}
		is := judgeGoal(cells[4], cells[2], cells[3])
		if is != cells[6] {
			t.Errorf("%q: the verdict is %q, want %q", cells, cells[6], is)
		}
		if is != "met" {
			if target.reason == "" {
				t.Errorf("%q is missed without a reason", cells)
			}
			why.add(target)
		}
	}
	for i := range sizes {
		for _, target := range scrapeTargets {
			check(i, target)
		}
	}
	for _, target := range targetsOfAll {
		check(noSize, target)
	}
	if rows[0] != "" {
		t.Errorf("REPORT.md has the row %q, which is no target: run make report", rows[0])
	}
	if lines := "\n### Missed\n\n" + why.String() + "\n\n## Beside others\n"; !strings.Contains(page, lines) {
		t.Errorf("REPORT.md does not say why goals are missed: %s", lines)
	}
	for _, g := range growths {
		_, section, found := strings.Cut(page, g.head())
		for _, n := range g.points {
			var row string
			row, section, _ = strings.Cut(section, "\n")
			if found && !strings.HasPrefix(row, fmt.Sprintf("| %d | ", n)) {
				t.Errorf("the growth with %s has the row %q, want one of %d: run make report", g.of, row, n)
			}
		}
		if !found {
			t.Errorf("REPORT.md has no growth with %s: run make report", g.of)
		}
	}
	for _, who := range contenders {
		if !strings.Contains(page, "| "+who+", in process") {
			t.Errorf("REPORT.md compares us to no %s: run make report", who)
		}
	}
}

// TestReportNumbers: numbers have three significant digits, a verdict follows from the written
// numbers, and a sparkline begins at 0.
func TestReportNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0123456: "0.0123", 0.03: "0.03", 1.15: "1.15", 1: "1", 28: "28", 27.96: "28", 103.4: "103", 1030: "1030", 100: "100"} {
		if got := short(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
	for _, test := range [][4]string{{"1.15", "1.15", "2", "met"}, {"1.16", "1.15", "2", "missed"}, {"2", "1.15", "2", "missed"}, {"2.01 MB", "1.15 MB", "2 MB", "**worse than allowed**"}, {"0", "0", "0", "met"}} {
		if got := judgeGoal(test[0], test[1], test[2]); got != test[3] {
			t.Errorf("%q is %s", test, got)
		}
	}
	var why missed
	if why.String() != "None." {
		t.Errorf("without a missed goal: %s", why)
	}
	for _, target := range []costTarget{{what: "a", reason: "x"}, {what: "b", reason: "y"}, {what: "c", reason: "x"}, {what: "a", reason: "x"}} {
		why.add(target)
	}
	if got := why.String(); got != "- a; c: x\n- b: y" {
		t.Errorf("missed goals are written %s", got)
	}
	if got := sparkline([]float64{0, 4, 8}); got != "▁▅█" {
		t.Errorf("the sparkline is %s", got)
	}
}
