package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

const preamble = `# Mutants

The program with one place broken at a time, and whether its quick tests notice. ` + "`make mutants`" + ` writes this page, and resumes
where it was interrupted; with ` + "`PACKAGE=internal/rules`" + `, it writes that section and keeps the others. A verdict of an earlier
commit counts if the sources are the same.
[internal/mutants](../internal/mutants) is the program behind it. A mutant is **killed** if a test fails with
it. An **equivalent** one behaves like the program; the file of survivors there has the reason for each. **Refused** ones do not
compile. One that **survived** all tests needs another test. **Open** ones were not tried, or not with all tests.

A mutant is tried only with tests in which it computes something other than the program: first with the test that killed its
neighbour, then with the quickest, so most verdicts take a few hundredths of a second. Code that decides nothing is not mutated:
capacities, the size in bits of a float, numbers returned beside false or an error, and the columns of tables that only people read.

## Operators

| operator | what it does |
|---|---|
`

// writePage writes the page to path.
func (c *campaign) writePage(path string, table []target) error {
	text, err := c.page(path, table)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// page returns testdata/MUTANTS.md: a section for each target of the table. Those that this call did
// not try keep their section of the previous page, the file at path.
func (c *campaign) page(path string, table []target) (string, error) {
	previous, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	text, err := c.pageAfter(string(previous), table)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}

// pageAfter is page for the text of the previous page.
func (c *campaign) pageAfter(previous string, table []target) (string, error) {
	var text strings.Builder
	all := map[string]tally{}
	var without []string
	for _, t := range table {
		section := sectionOf(previous, t.dir)
		if slices.ContainsFunc(c.tried, func(other target) bool { return other.dir == t.dir }) {
			section = c.section(t)
		}
		if section == "" {
			without = append(without, t.dir)
		}
		text.WriteString(section)
		if err := addRows(all, section); err != nil {
			return "", fmt.Errorf("%s: %w", t.dir, err)
		}
	}
	var b strings.Builder
	b.WriteString(preamble)
	for _, o := range operators {
		fmt.Fprintf(&b, "| %s | %s |\n", o.name, o.about)
	}
	sum := all[total]
	fmt.Fprintf(&b, "\n%d of %d mutants have a verdict.\n", sum.mutants()-sum[open], sum.mutants())
	if len(without) > 0 {
		fmt.Fprintf(&b, "Not tried: %s.\n", strings.Join(without, ", "))
	}
	b.WriteString("\n## All packages\n\n")
	writeRows(&b, all)
	b.WriteString(text.String())
	return b.String(), nil
}

// sectionOf returns the section of a directory, "" if the page has none.
func sectionOf(page, dir string) string {
	title := "\n## " + dir + "\n"
	_, rest, ok := strings.Cut(page, title)
	if !ok {
		return ""
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return title + strings.TrimRight(text, "\n") + "\n"
}

// section returns the section of a target that was tried.
func (c *campaign) section(t target) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n", t.dir)
	if t.files != nil {
		fmt.Fprintf(&b, "Of its files, only these are mutated: `%s`.\n", strings.Join(t.files, "`, `"))
	}
	if c.commit != "" {
		fmt.Fprintf(&b, "Tried at commit %s.\n", c.commit)
	}
	if t.files != nil || c.commit != "" {
		b.WriteString("\n")
	}
	rows := map[string]tally{total: c.count(t.dir, "")}
	for _, o := range operators {
		if count := c.count(t.dir, o.name); len(count) > 0 {
			rows[o.name] = count
		}
	}
	writeRows(&b, rows)
	return b.String()
}

// total is the last row of a table.
const total = "**all**"

// columns are the verdicts in the order of the columns, after the number of mutants.
var columns = []verdict{killed, equivalent, refusal, survived, open}

// writeRows writes a table of counts by operator, and their total.
func writeRows(b *strings.Builder, rows map[string]tally) {
	b.WriteString("| operator | mutants |")
	for _, v := range columns {
		fmt.Fprintf(b, " %s |", v)
	}
	fmt.Fprintf(b, "\n|---|--:|%s\n", strings.Repeat("--:|", len(columns)))
	for _, o := range operators {
		if count, ok := rows[o.name]; ok {
			fmt.Fprintf(b, "| %s | %s\n", o.name, count)
		}
	}
	fmt.Fprintf(b, "| %s | %s\n", total, rows[total])
}

// addRows adds the counts of a section's table to sums.
func addRows(sums map[string]tally, section string) error {
	rest := 0 // of the total, without the rows before it
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| operator |") {
			continue
		}
		operator, counts, ok := readRow(line)
		if !ok {
			return fmt.Errorf("not a row of counts: %s; correct it, or try the package again", strings.TrimSpace(line))
		}
		if sums[operator] == nil {
			sums[operator] = tally{}
		}
		for v, n := range counts {
			sums[operator][v] += n
		}
		if operator == total {
			rest -= counts.mutants()
		} else {
			rest += counts.mutants()
		}
	}
	if rest != 0 {
		return fmt.Errorf("the rows do not add up to %s; correct them, or try the package again", total)
	}
	return nil
}

// readRow reads a row of counts, whose first is the sum of the others.
func readRow(line string) (operator string, counts tally, ok bool) {
	cells := strings.Split(strings.Trim(line, "| \n"), " | ")
	if len(cells) != 2+len(columns) {
		return "", nil, false
	}
	counts = tally{}
	for i, v := range columns {
		n, err := strconv.Atoi(cells[2+i])
		if err != nil {
			return "", nil, false
		}
		counts[v] = n
	}
	return cells[0], counts, cells[1] == strconv.Itoa(counts.mutants())
}

// tally is the number of mutants by verdict.
type tally map[verdict]int

// mutants returns the number of mutants.
func (t tally) mutants() (n int) {
	for _, of := range t {
		n += of
	}
	return n
}

// String returns the cells of a row.
func (t tally) String() string {
	cells := fmt.Sprintf("%d |", t.mutants())
	for _, v := range columns {
		cells += fmt.Sprintf(" %d |", t[v])
	}
	return cells
}

// count counts the mutants of an operator, or of all if it is "", in a package. Explained mutants
// count as equivalent unless a test kills them.
func (c *campaign) count(dir, operator string) tally {
	t := tally{}
	for _, r := range c.results {
		if r.dir != dir || operator != "" && r.operator != operator {
			continue
		}
		if (r.verdict == survived || r.verdict == open) && c.explains(r) {
			r.verdict = equivalent
		}
		t[r.verdict]++
	}
	return t
}
