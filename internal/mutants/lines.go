package main

import (
	"encoding/csv"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// lines derives the mutants of tables that the package embeds as strings: variables with a go:embed
// directive that are read in one place.
func (p *pkg) lines() (found []*mutant, err error) {
	for _, f := range p.files {
		for _, d := range f.syntax.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR || gen.Doc == nil {
				continue
			}
			for _, c := range gen.Doc.List {
				if name, ok := strings.CutPrefix(c.Text, "//go:embed "); ok {
					more, err := p.table(name, gen.Specs[0].(*ast.ValueSpec).Names[0])
					if err != nil {
						return nil, err
					}
					found = append(found, more...)
				}
			}
		}
	}
	return found, nil
}

// table derives the mutants of a table in a variable.
func (p *pkg) table(name string, variable *ast.Ident) (found []*mutant, err error) {
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		return nil, err
	}
	source, edits := p.reader(variable)
	if source == nil {
		return nil, fmt.Errorf("%s: nothing reads %s", name, variable.Name)
	}
	rows := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
	isCSV := filepath.Ext(name) == ".csv"
	for i, line := range rows {
		first, _, _ := strings.Cut(strings.ReplaceAll(line, " ", ","), ",")
		if first == "#" || i == 0 && isCSV {
			continue
		}
		add := func(change, to string) {
			found = append(found, &mutant{file: name, function: first, operator: "line", change: change, from: "\n" + line, to: "\n" + to})
		}
		add("without it", "")
		if isCSV {
			cells(rows, i, add)
		}
	}
	if len(found) > 0 {
		found[0].edits, found[0].edited = edits, source.name
	}
	return found, nil
}

// told are the columns of the tables that only people read.
var told = []string{"mnemonic", "source", "meaning", "advice", "subcode"}

// cells replaces each cell of a CSV line with that of the next line that differs. The first column
// is the name of the line.
func cells(rows []string, i int, add func(change, to string)) {
	head, these := split(rows[0]), split(rows[i])
	for column := 1; column < len(these); column++ {
		if slices.Contains(told, head[column]) {
			continue
		}
		for k := 1; k < len(rows)-1; k++ {
			other := split(rows[1+(i-1+k)%(len(rows)-1)])[column]
			if other == these[column] {
				continue
			}
			changed := append([]string{}, these...)
			changed[column] = other
			add(fmt.Sprintf("%s %q → %q", head[column], these[column], other), join(changed))
			break
		}
	}
}

func split(line string) []string {
	cells, err := csv.NewReader(strings.NewReader(line)).Read()
	if err != nil {
		return nil
	}
	return cells
}

func join(cells []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(cells) // to memory
	w.Flush()
	return b.String()
}

// reader returns the edits that insert the switch where the variable is read.
func (p *pkg) reader(variable *ast.Ident) (f *source, edits []edit) {
	for id, object := range p.info.Uses {
		if object != p.info.Defs[variable] {
			continue
		}
		name := p.fset.Position(id.Pos()).Filename
		for _, f = range p.files {
			if f.name == name {
				return f, []edit{{offset: p.offset(id.Pos()), text: "mutantText("}, {offset: p.offset(id.End()), text: ")", closing: true}}
			}
		}
	}
	return nil, nil
}
