package main

import (
	"fmt"
	"strings"
)

const preamble = `# Mutants

The program with one place broken at a time, and whether its quick tests notice. ` + "`make mutants`" + ` writes this page, and resumes
where it was interrupted; [internal/mutants](../internal/mutants) is the program behind it. A mutant is **killed** if a test fails with
it. An **equivalent** one behaves like the program; the file of survivors there has the reason for each. **Refused** ones do not
compile. One that **survived** all tests needs another test. **Open** ones were not tried, or not with all tests.

A mutant is tried only with tests in which it computes something other than the program: first with the test that killed its
neighbour, then with the quickest, so most verdicts take a few hundredths of a second. Code that decides nothing is not mutated:
capacities, the size in bits of a float, numbers returned beside false or an error, and the columns of tables that only people read.

## Operators

| operator | what it does |
|---|---|
`

// page returns testdata/MUTANTS.md.
func (c *campaign) page() string {
	var b strings.Builder
	b.WriteString(preamble)
	for _, o := range operators {
		fmt.Fprintf(&b, "| %s | %s |\n", o.name, o.about)
	}
	all := c.count("", "")
	if all[open] == 0 {
		fmt.Fprintf(&b, "\nAll %d mutants have a verdict.\n", all.mutants())
	} else {
		fmt.Fprintf(&b, "\n%d of %d mutants have a verdict; the others are open.\n", all.mutants()-all[open], all.mutants())
	}
	if c.commit != "" {
		fmt.Fprintf(&b, "The program is that of commit %s. A verdict of an earlier call counts if it is of the same sources.\n", c.commit)
	}
	c.section(&b, "All packages", target{})
	for _, t := range c.tried {
		c.section(&b, t.dir, t)
	}
	return b.String()
}

// section writes the counts of a target, or of all for the zero target, by operator.
func (c *campaign) section(b *strings.Builder, title string, t target) {
	fmt.Fprintf(b, "\n## %s\n\n", title)
	if t.files != nil {
		fmt.Fprintf(b, "Of its files, only these are mutated: `%s`.\n\n", strings.Join(t.files, "`, `"))
	}
	fmt.Fprint(b, "| operator | mutants | killed | equivalent | refused | survived | open |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, o := range operators {
		if count := c.count(t.dir, o.name); len(count) > 0 {
			fmt.Fprintf(b, "| %s | %s\n", o.name, count)
		}
	}
	fmt.Fprintf(b, "| **all** | %s\n", c.count(t.dir, ""))
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
	return fmt.Sprintf("%d | %d | %d | %d | %d | %d |", t.mutants(), t[killed], t[equivalent], t[refusal], t[survived], t[open])
}

// count counts the mutants of an operator in a package; "" means any. Explained mutants count as
// equivalent unless a test kills them.
func (c *campaign) count(dir, operator string) tally {
	t := tally{}
	for _, r := range c.results {
		if dir != "" && r.dir != dir || operator != "" && r.operator != operator {
			continue
		}
		if (r.verdict == survived || r.verdict == open) && c.explains(r) {
			r.verdict = equivalent
		}
		t[r.verdict]++
	}
	return t
}
