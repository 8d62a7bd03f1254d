package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// output is a table to print, or to write into a page between comments with its name.
type output struct {
	page, name string
	head       []string // two lines
}

// add prints a row, or writes it into the page. There it replaces the row with the same first
// keys cells; a new row follows those of the same size and form, the first two cells.
func (o *output) add(keys int, cells ...string) error {
	row := "| " + strings.Join(cells, " | ") + " |"
	if o.page == "" {
		_, err := fmt.Println(row)
		return err
	}
	text, err := os.ReadFile(o.page)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+o.name+":begin -->\n", "<!-- "+o.name+":end -->\n"
	before, rest, found := strings.Cut(string(text), begin)
	section, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("%s has no %s… %s", o.page, begin, end)
	}
	rows := strings.Split(strings.TrimSpace(section), "\n")
	if len(rows) < 2 || rows[0] != o.head[0] {
		rows = o.head
	}
	prefix := "| " + strings.Join(cells[:keys], " | ") + " |"
	at := slices.IndexFunc(rows, func(r string) bool { return strings.HasPrefix(r, prefix) })
	if at < 0 {
		rows = append(rows, row)
	} else {
		rows[at] = row
	}
	slices.SortStableFunc(rows[2:], func(a, b string) int {
		ofA, ofB := strings.Split(a, " | "), strings.Split(b, " | ")
		sizeA, _ := strconv.Atoi(strings.TrimPrefix(ofA[0], "| "))
		sizeB, _ := strconv.Atoi(strings.TrimPrefix(ofB[0], "| "))
		return cmp.Or(cmp.Compare(sizeA, sizeB), cmp.Compare(slices.Index(formOrder, form(ofA[1])), slices.Index(formOrder, form(ofB[1]))))
	})
	return os.WriteFile(o.page, []byte(before+begin+"\n"+strings.Join(rows, "\n")+"\n\n"+end+after), 0o644) //nolint:gosec // a page for all to read
}

// print prints the head of a table without a page.
func (o *output) print() {
	if o.page == "" {
		fmt.Println(strings.Join(o.head, "\n"))
	}
}
