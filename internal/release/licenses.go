package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licenseFile matches the names of files with the licence of what lies beside them.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense)([-._].*)?$`)

// phrases identify the licences that may be linked into the program, by SPDX id: a licence has all
// of its phrases. A file may have several licences. A person must read files without any before
// they are linked.
var phrases = []struct {
	id  string
	all []string
	not string // a phrase of another licence that has all of these too
}{
	{"Apache-2.0", []string{"Apache License", "Version 2.0, January 2004"}, ""},
	{"Apache-2.0", []string{"http://www.apache.org/licenses/LICENSE-2.0"}, ""},
	{"BSD-2-Clause", []string{"Redistributions of source code must retain", "Redistributions in binary form must reproduce"}, "endorse or promote"},
	{"BSD-3-Clause", []string{"Redistributions of source code must retain", "Redistributions in binary form must reproduce", "endorse or promote"}, ""},
	{"ISC", []string{"Permission to use, copy, modify, and/or distribute this software"}, ""},
	{"ISC", []string{"Permission to use, copy, modify, and distribute this software"}, ""},
	{"MIT", []string{"Permission is hereby granted, free of charge, to any person obtaining a copy"}, ""},
}

var blanks = regexp.MustCompile(`\s+`)

// identify returns the SPDX ids of the licences in a text, sorted, joined with " AND "; "" if none
// is known.
func identify(text string) string {
	text = blanks.ReplaceAllString(text, " ")
	var ids []string
	for _, p := range phrases {
		has := !slices.ContainsFunc(p.all, func(phrase string) bool { return !strings.Contains(text, phrase) })
		if has && (p.not == "" || !strings.Contains(text, p.not)) && !slices.Contains(ids, p.id) {
			ids = append(ids, p.id)
		}
	}
	return strings.Join(ids, " AND ")
}

// licensesIn returns the licence files in a directory below a module's root.
func licensesIn(root, below string) (found []license, err error) {
	files, err := os.ReadDir(filepath.Join(root, below))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if !f.Type().IsRegular() || !licenseFile.MatchString(f.Name()) || strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, below, f.Name()))
		if err != nil {
			return nil, err
		}
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
		found = append(found, license{
			name: filepath.ToSlash(filepath.Join(below, f.Name())),
			text: strings.Trim(string(text), "\n"),
			id:   identify(string(text)),
		})
	}
	return found, nil
}

// ids returns the SPDX ids of the licences of a module, sorted.
func (m *module) ids() (ids []string) {
	for _, l := range m.licenses {
		for id := range strings.SplitSeq(l.id, " AND ") {
			if id != "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

const licensesHead = `kpulse-proxy is distributed under the Apache License 2.0. These modules are linked into
it, under the following licences; each text appears once, below the names of all files that
contain it.

`

// writeLicenses writes a table of a program's modules, then the texts of their licences.
func writeLicenses(w io.Writer, p *program) error {
	var b strings.Builder
	b.WriteString(licensesHead)
	var texts []string
	owners := map[string][]string{} // by text
	for _, m := range p.modules {
		fmt.Fprintf(&b, "%s %s: %s\n", m.path, m.version, strings.Join(m.ids(), ", "))
		for _, l := range m.licenses {
			if owners[l.text] == nil {
				texts = append(texts, l.text)
			}
			owners[l.text] = append(owners[l.text], m.path+": "+l.name)
		}
	}
	for _, text := range texts {
		rule := strings.Repeat("=", 88)
		fmt.Fprintf(&b, "\n%s\n%s\n%s\n\n%s\n", rule, strings.Join(owners[text], "\n"), rule, text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
