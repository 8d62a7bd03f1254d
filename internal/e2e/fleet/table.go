package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// table is a table between comments with its name, such as those of rules/README.md. A run replaces
// the rows that it measured and keeps the others.
type table struct {
	name string
	head []string
	rows []row
}

// row is the measurements of a fleet in a form.
type row struct {
	nodes int
	form  string
	cells []string
}

// compared heads a column with the ratio of the previous one to the exporters alone.
const compared = "× exporters alone"

// The tables, without rows.
var (
	costs = table{name: "fleet", head: []string{
		"nodes", "scraped", "head series", "`kpulse_*` series per GPU", "memory in use, MB", compared, "peak resident, MB", compared,
		"CPU, cores", "bytes per sample", "CPU of a proxy, ms per scrape",
	}}
	evaluations = table{name: "fleet-rules", head: []string{"nodes", "scraped"}}
)

// shown formats a number, or a dash for 0.
func shown(v float64, format string) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf(format, v)
}

// row returns a cost's row in the table of costs.
func (c cost) row(nodes int, form string) row {
	return row{nodes, form, []string{
		fmt.Sprintf("%.0f", c.series), fmt.Sprintf("%.0f", c.ours/float64(nodes*gpusPerNode)), fmt.Sprintf("%.0f", c.live/1e6), "", fmt.Sprintf("%.0f", c.resident/1e6), "",
		fmt.Sprintf("%.2f", c.cpu), shown(c.bytes, "%.2f"), shown(1e3*c.proxies, "%.1f"),
	}}
}

// set adds a row, and replaces that of the same fleet and form.
func (t *table) set(r row) {
	t.rows = slices.DeleteFunc(t.rows, func(o row) bool { return o.nodes == r.nodes && o.form == r.form })
	t.rows = append(t.rows, r)
	slices.SortStableFunc(t.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.nodes, b.nodes), cmp.Compare(place(a.form), place(b.form)))
	})
}

// place returns the position of a form; a form with rules follows the same form without.
func place(name string) int {
	base, ruled := strings.CutSuffix(name, withRules)
	at := 2 * slices.IndexFunc(forms, func(f form) bool { return f.name == base })
	if ruled {
		at++
	}
	return at
}

// withRules is the suffix of a form with which Prometheus evaluates the rules.
const withRules = ", and rules"

// String returns the table in Markdown.
func (t *table) String() string {
	var b strings.Builder
	write := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	write(t.head)
	aligned := []string{"--:", "---"}
	for range t.head[2:] {
		aligned = append(aligned, "--:")
	}
	fmt.Fprintf(&b, "|%s|\n", strings.Join(aligned, "|"))
	alone := map[int]row{}
	for _, r := range t.rows {
		if r.form == forms[0].name {
			alone[r.nodes] = r
		}
		cells := slices.Clone(r.cells)
		for i := range cells {
			if t.head[i+2] == compared {
				cells[i] = quotient(r.cells[i-1], alone[r.nodes].cells, i-1)
			}
		}
		write(append([]string{strconv.Itoa(r.nodes), r.form}, cells...))
	}
	return b.String()
}

// quotient returns the ratio of a cell to that of the exporters alone.
func quotient(cell string, alone []string, i int) string {
	if len(alone) <= i {
		return "–"
	}
	a, _ := strconv.ParseFloat(cell, 64)
	b, err := strconv.ParseFloat(alone[i], 64)
	if err != nil || b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f ×", a/b)
}

// read reads the rows of a page. It skips rows of unknown forms; a column that the page lacks has
// dashes.
func (t *table) read(page string) error {
	_, _, section, err := t.cut(page)
	if err != nil {
		return err
	}
	var head []string
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[0] == t.head[0] {
			head = cells
		}
		nodes, err := strconv.Atoi(cells[0])
		if err != nil || len(cells) != len(head) || place(cells[1]) < 0 {
			continue // the head, or a row of another version
		}
		r := row{nodes, cells[1], nil}
		for i, name := range t.head[2:] {
			r.cells = append(r.cells, cellOf(head, cells, name, t.head[:i+2]))
		}
		t.set(r)
	}
	return nil
}

// cellOf returns the cell of a column, or a dash if there is none. Of columns with the same name it
// takes the one after as many as are in before.
func cellOf(head, cells []string, name string, before []string) string {
	skip := 0
	for _, other := range before {
		if other == name {
			skip++
		}
	}
	for i := range head {
		if head[i] == name {
			if skip--; skip < 0 {
				return cells[i]
			}
		}
	}
	return "–"
}

// cut returns the page before and after the table, and the table's section.
func (t *table) cut(page string) (before, after, section string, err error) {
	begin, end := "<!-- "+t.name+":begin -->\n", "<!-- "+t.name+":end -->\n"
	before, rest, found := strings.Cut(page, begin)
	section, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", "", "", errors.New("the page has no " + begin + "… " + end)
	}
	return before + begin, end + after, section, nil
}

// merge replaces rows of the table in a file with those of t.
func (t *table) merge(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before := &table{name: t.name, head: t.head}
	if err := before.read(string(text)); err != nil {
		return err
	}
	for _, r := range t.rows {
		before.set(r)
	}
	head, tail, _, err := t.cut(string(text))
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(head+"\n"+before.String()+"\n"+tail), 0o644) //nolint:gosec // everybody may read the page
}
