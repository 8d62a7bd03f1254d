package main

import (
	"fmt"
	"strings"
)

const preamble = `# Mutants

The program with one place broken at a time, and whether its quick tests notice. ` + "`make mutants`" + ` writes this page, and goes on
where it was interrupted; [internal/mutants](../internal/mutants) is the program behind it. A mutant is **killed** if a test fails with it.
An **equivalent** one does what the program does; the file of survivors there says why of each. **Refused** ones do not compile. What
is **open** was not tried, or not by all tests, or survived and wants a test.

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
	for _, t := range c.tried {
		fmt.Fprintf(&b, "\n## %s\n\n| operator | mutants | killed | equivalent | refused | open |\n|---|--:|--:|--:|--:|--:|\n", t.dir)
		for _, o := range operators {
			if count := c.count(t.dir, o.name); len(count) > 0 {
				fmt.Fprintf(&b, "| %s | %s\n", o.name, count)
			}
		}
		fmt.Fprintf(&b, "| **all** | %s\n", c.count(t.dir, ""))
	}
	return b.String()
}

// tally is how many mutants had each verdict.
type tally map[verdict]int

// String returns the cells of a row.
func (t tally) String() string {
	all := t[killed] + t[survived] + t[refusal] + t[open]
	return fmt.Sprintf("%d | %d | %d | %d | %d |", all, t[killed], t[survived], t[refusal], t[open])
}

// count counts those of an operator in a package, of any if it is "". What is explained is
// taken for equivalent until a test kills it, and what survives without that is open.
func (c *campaign) count(dir, operator string) tally {
	t := tally{}
	for _, r := range c.results {
		if r.dir != dir || operator != "" && r.operator != operator {
			continue
		}
		switch {
		case r.verdict == killed || r.verdict == refusal:
			t[r.verdict]++
		case c.explains(r):
			t[survived]++
		default:
			t[open]++
		}
	}
	return t
}
