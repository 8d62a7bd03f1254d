package main

import (
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// small is a program whose tests kill the mutants of limit and table; the mutant of least is
// equivalent.
var small = map[string]string{
	"go.mod": "module example.org/small\n\ngo 1.26.0\n",
	"small.go": `package small

const limit = 10

const size = 3 - 1

var seats [size]int

var table = []string{"a", "b"}

type row struct {
	name string
	code int
}

var rows = [...]row{{"x", 1}, {"y", 2}}

func isMuch(v int, known bool) bool {
	if !known {
		return false
	}
	return v >= limit
}

func least(a, b int) int {
	if a < b {
		return a
	}
	return b
}

func first(all []int) (int, bool) {
	if len(all) == 0 {
		return 0, false // no caller looks at the number
	}
	return all[0], true
}

func forgotten(v int) int { return v + 1000 }
`,
	"small_test.go": `package small

import "testing"

func Test(t *testing.T) {
	if !isMuch(10, true) || isMuch(9, true) || isMuch(10, false) || least(1, 2) != 1 || least(2, 1) != 1 {
		t.Fail()
	}
	if v, ok := first([]int{7}); v != 7 || !ok {
		t.Fail()
	}
	if _, ok := first(nil); ok {
		t.Fail()
	}
	if len(table) != 2 || table[0] != "a" || table[1] != "b" || rows != [2]row{{"x", 1}, {"y", 2}} || len(seats) != 2 || seats[1] != 0 {
		t.Fail()
	}
}
`,
}

// TestCampaign mutates a small program whose tests are known.
func TestCampaign(t *testing.T) {
	dir := t.TempDir()
	for name, text := range small {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := campaign{root: dir, which: regexp.MustCompile(""), jobs: 2, stdout: io.Discard, stderr: io.Discard, remembered: filepath.Join(t.TempDir(), "results")}
	if err := c.run(t.Context(), []target{{".", []string{"."}, nil}}); err != nil {
		t.Fatal(err)
	}
	want := []string{ // those that survive
		"small.go forgotten: arithmetic: v + 1000 → -",
		"small.go forgotten: constant: 1000 → 1024 in return v + 1000",
		"small.go least: boundary: a < b → <=",
	}
	var got, dead []string
	for _, r := range c.results {
		switch r.verdict {
		case survived:
			got = append(got, r.name())
		case killed:
			dead = append(dead, r.name())
		default:
			t.Errorf("%s: %s", r.verdict, r.name())
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("survived: %q, want %q", got, want)
	}
	for _, name := range []string{
		"small.go isMuch: boundary: v >= limit → >",
		"small.go isMuch: condition: !known → !",
		"small.go isMuch: jump: without return false",
		"small.go limit: constant: 10 → 11 in limit = 10",
		"small.go size: constant: 1 → 2 in size = 3 - 1", // with it, the test does not compile
		`small.go table: row: without "b"`,
		`small.go rows: cell: 2 → 1 in {"y", 2}`,
	} {
		if !slices.Contains(dead, name) {
			t.Errorf("not killed: %s; killed: %q", name, dead)
		}
	}
	if err := c.verdict(); err == nil || !strings.Contains(err.Error(), "survived: . "+want[0]) {
		t.Errorf("the verdict is %v", err)
	}

	c.explained = []explanation{{".", want[2], "either is the least"}}
	c.results = append(c.results, result{".", &mutant{operator: "boundary"}, open})
	c.commit = "1234abcd of 2026-11-26"
	page, err := c.pageAfter("", []target{{".", nil, []string{"small.go"}}, {"other", nil, nil}})
	for _, want := range []string{
		"\n## .\n\nOf its files, only these are mutated: `small.go`.\nTried at commit 1234abcd of 2026-11-26.\n\n| operator | mutants | killed | equivalent | refused | survived | open |\n",
		"\n| boundary | 3 | 1 | 1 | 0 | 0 | 1 |\n", "\n| arithmetic | 1 | 0 | 0 | 0 | 1 | 0 |\n", "\nNot tried: other.\n",
	} {
		if err != nil || !strings.Contains(page, want) {
			t.Errorf("without %q, the page is\n%s%v", want, page, err)
		}
	}
	c.results = c.results[:len(c.results)-1]

	again := campaign{root: dir, which: c.which, jobs: 1, stdout: io.Discard, stderr: io.Discard, remembered: c.remembered, list: true}
	var out strings.Builder
	again.stdout = &out
	if err := again.run(t.Context(), []target{{".", []string{"."}, nil}}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != len(c.results) {
		t.Errorf("%d are listed, %d were tried", n, len(c.results))
	}

	again.list, again.stderr = false, &out
	out.Reset()
	if err := again.run(t.Context(), []target{{".", []string{"."}, nil}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), ".: 3 mutants tried in ") || len(again.results) != len(c.results) {
		t.Errorf("the next campaign has %d results of %d, and writes\n%s", len(again.results), len(c.results), out.String())
	}
}

// TestMemory: a verdict counts until a source or a test changes.
func TestMemory(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range small {
		write(name, text)
	}
	if err := os.Mkdir(filepath.Join(dir, "testdata"), 0o700); err != nil {
		t.Fatal(err)
	}
	t1, mu := target{".", []string{"."}, nil}, &mutant{file: "small.go"}
	path := filepath.Join(t.TempDir(), "results")
	known := func() verdict {
		t.Helper()
		sources, err := fingerprint(t.Context(), dir, t1)
		if err != nil {
			t.Fatal(err)
		}
		var m memory
		if err := m.open(path); err != nil {
			t.Fatal(err)
		}
		defer m.close()
		v := m.of(".", sources, mu)
		m.add(".", sources, mu, killed, "a test")
		return v
	}
	if v := known(); v != open {
		t.Errorf("before the first campaign: %s", v)
	}
	for name, text := range map[string]string{
		"small.go":          small["small.go"] + "\n// Changed.\n",
		"small_test.go":     small["small_test.go"] + "\n// Changed.\n",
		"go.mod":            small["go.mod"] + "\n// Changed.\n",
		"testdata/new.prom": "",
	} {
		if v := known(); v != killed {
			t.Errorf("before %s changes: %s", name, v)
		}
		write(name, text)
		if v := known(); v != open {
			t.Errorf("after a change of %s: %s", name, v)
		}
	}
}

// TestElsewhere: the memory knows of every file that tests of suites read outside of their packages.
func TestElsewhere(t *testing.T) {
	path := regexp.MustCompile(`"(?:\.\./)+((?:testdata|deploy|rules|mixin|cmd)/[^"]*)"`)
	for _, target := range targets {
		for _, dir := range target.suites {
			files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
			if err != nil || len(files) == 0 {
				t.Fatalf("%s: no tests, %v", dir, err)
			}
			for _, name := range files {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				for _, found := range path.FindAllSubmatch(text, -1) {
					if !slices.ContainsFunc(elsewhere, func(known string) bool { return strings.HasPrefix(string(found[1]), known) }) {
						t.Errorf("%s reads %s", name, found[1])
					}
				}
			}
		}
	}
}

// TestEnds: only a failed test or a crash kills a mutant. Tests that a signal ends run again.
func TestEnds(t *testing.T) {
	dir := t.TempDir()
	for script, want := range map[string]struct {
		killer  string
		unclear bool
	}{
		"exit 0": {},
		"echo '--- FAIL: TestX (0.00s)'; echo FAIL; exit 1":    {killer: "TestX"},
		"echo 'goleak: Errors on successful test run'; exit 1": {killer: "exit status 1"},
		"echo 'panic: no'; exit 2":                             {killer: "exit status 2"},
		"kill -XCPU $$":                                        {unclear: true},
		"kill -KILL $$":                                        {unclear: true},
		"exit 1":                                               {unclear: true},
		"exit 2":                                               {unclear: true},
		"[ -e again ] && exit 0; echo >again; kill -KILL $$":                                   {},
		"[ -e later ] && echo '--- FAIL: TestY (0.00s)' && exit 1; echo >later; kill -KILL $$": {killer: "TestY"},
	} {
		binary := filepath.Join(dir, "tests")
		if err := os.WriteFile(binary, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		s := suite{dir: dir, binary: binary, tests: []test{{name: "TestX"}}, killers: map[string]string{}}
		killer, err := s.kills(t.Context(), &mutant{id: 1})
		if killer != want.killer || errors.Is(err, errUnclear) != want.unclear || err != nil && !want.unclear {
			t.Errorf("%s: %q, %v", script, killer, err)
		}
	}
}

// TestRefused: a mutant that the compiler refuses is blamed.
func TestRefused(t *testing.T) {
	p, err := load(t.Context(), "../canonical")
	if err != nil {
		t.Fatal(err)
	}
	m := &mutant{id: 1, file: "pci.go", edits: []edit{{offset: 0, text: "no"}}}
	b := &build{p: p, mutants: []*mutant{m}}
	if got := b.blamed(&refused{"/tmp/x/pci.go:1:1: syntax error"}); len(got) != 1 || got[0] != m {
		t.Errorf("blamed %v", got)
	}
	if got := b.blamed(&refused{"/tmp/x/pci.go:2:1: syntax error"}); len(got) != 0 {
		t.Errorf("blamed %v for another line", got)
	}
}

// TestPage: a section that is not tried stays, one of a package that is no target goes, and the
// sums are of all sections.
func TestPage(t *testing.T) {
	const old = "\n## old\n\nTried at commit 1.\n\n| operator | mutants | killed | equivalent | refused | survived | open |\n|---|--:|--:|--:|--:|--:|--:|\n" +
		"| boundary | 15 | 1 | 2 | 3 | 4 | 5 |\n| logic | 1 | 1 | 0 | 0 | 0 | 0 |\n| **all** | 16 | 2 | 2 | 3 | 4 | 5 |\n"
	c := campaign{results: []result{
		{"new", &mutant{operator: "boundary"}, killed},
		{"new", &mutant{operator: "boundary"}, survived},
	}}
	c.tried = []target{{"new", nil, nil}}
	table := []target{{"old", nil, nil}, {"new", nil, nil}}
	const sums = "\n13 of 18 mutants have a verdict.\n\n## All packages\n\n| operator | mutants | killed | equivalent | refused | survived | open |\n|---|--:|--:|--:|--:|--:|--:|\n" +
		"| boundary | 17 | 2 | 2 | 3 | 5 | 5 |\n| logic | 1 | 1 | 0 | 0 | 0 | 0 |\n| **all** | 18 | 3 | 2 | 3 | 5 | 5 |\n"
	const added = "\n## new\n\n| operator | mutants | killed | equivalent | refused | survived | open |\n|---|--:|--:|--:|--:|--:|--:|\n" +
		"| boundary | 2 | 1 | 0 | 0 | 1 | 0 |\n| **all** | 2 | 1 | 0 | 0 | 1 | 0 |\n"
	previous := "# Mutants\n\n## gone\n\n| **all** | 9 | 9 | 0 | 0 | 0 | 0 |\n" + old + strings.ReplaceAll(added, "2 | 1", "7 | 6")
	page, err := c.pageAfter(previous, table)
	if err != nil || !strings.HasSuffix(page, sums+old+added) {
		t.Errorf("the page is\n%s%v", page, err)
	}
	c.tried = nil
	if again, err := c.pageAfter(page, table); err != nil || again != page {
		t.Errorf("without a target, the page is\n%s%v", again, err)
	}
	if _, err := c.pageAfter(strings.Replace(page, "| logic | 1 | 1 | 0 | 0 | 0 | 0 |\n| **all** | 16 |", "| **all** | 16 |", 1), table); err == nil || !strings.Contains(err.Error(), "old: the rows do not add up to **all**") {
		t.Errorf("without a row: the error is %v", err)
	}
	for _, row := range []string{"| 15 | x | 2 | 3 | 4 | 5 |", "| 15 | 1 | 2 | 3 | 4 |", "| 16 | 1 | 2 | 3 | 4 | 5 |"} {
		wrong := strings.Replace(page, "| 15 | 1 | 2 | 3 | 4 | 5 |", row, 1)
		if _, err := c.pageAfter(wrong, table); err == nil || err.Error() != "old: not a row of counts: | boundary "+row+"; correct it, or try the package again" {
			t.Errorf("%s: the error is %v", row, err)
		}
	}
}

// TestWholePage: the page in the repository has a section for each target, all mutants in it are
// killed or explained, and a call that tries none keeps it.
func TestWholePage(t *testing.T) {
	text, err := os.ReadFile("../../testdata/MUTANTS.md")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "MUTANTS.md")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := new(campaign).writePage(path, targets); err != nil {
		t.Fatal(err)
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != string(text) {
		t.Errorf("testdata/MUTANTS.md has other text or other sections than a page of these targets: run make mutants: %v", err)
	}
	for _, target := range targets {
		section := sectionOf(string(text), target.dir)
		files := "Of its files, only these are mutated: `" + strings.Join(target.files, "`, `") + "`.\n"
		if target.files == nil && strings.Contains(section, "Of its files") || target.files != nil && !strings.Contains(section, files) {
			t.Errorf("the section of %s is of other files: run make mutants PACKAGE=%s", target.dir, target.dir)
		}
		rows := map[string]tally{}
		if err := addRows(rows, section); err != nil || rows[total][open]+rows[total][survived] > 0 || rows[total].mutants() == 0 {
			t.Errorf("%s: %v, %v", target.dir, rows[total], err)
		}
	}
}

// TestSomeWriteNoPage: a call that tries only some mutants of a package writes no page.
func TestSomeWriteNoPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page")
	for _, args := range [][]string{{"-list"}, {"-run", "x"}} {
		var said strings.Builder
		code := run(append(args, "-write", path, "internal/selection"), io.Discard, &said)
		if _, err := os.Stat(path); code != 2 || err == nil || said.String() != "mutants: -write needs all mutants of a package: leave out -list and -run\n" {
			t.Errorf("%v: exit code %d, %v: %s", args, code, err, said.String())
		}
	}
}

// TestTargets: each explanation belongs to an existing mutant, and all edits result in source that
// parses, with unchanged line numbers.
func TestTargets(t *testing.T) {
	setting, err := exec.CommandContext(t.Context(), "go", "env", "CGO_ENABLED").Output()
	if err != nil {
		t.Fatal(err)
	}
	cgo := strings.TrimSpace(string(setting)) == "1"
	all, err := readExplanations(explained)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if !slices.ContainsFunc(targets, func(t target) bool { return t.dir == e.dir }) {
			t.Errorf("%s has an explanation, but is no target", e.dir)
		}
	}
	for _, target := range targets {
		p, err := load(t.Context(), filepath.Join("../..", target.dir))
		if err != nil {
			t.Fatal(err)
		}
		mutants, err := derive(p, target)
		if errors.Is(err, errNotBuilt) && !cgo {
			t.Logf("%s: %v", target.dir, err)
			continue
		}
		if err != nil || len(mutants) < 100 {
			t.Errorf("%s: %d mutants, %v", target.dir, len(mutants), err)
		}
		for _, e := range strayed(all, target.dir, mutants) {
			t.Errorf("survivors.csv explains a mutant that is gone: %s %s", e.dir, e.name)
		}
		names := map[string]bool{}
		for _, m := range mutants {
			if names[m.name()] {
				t.Errorf("%s: two mutants are named %s", target.dir, m.name())
			}
			names[m.name()] = true
		}
		for _, f := range p.files {
			in := slices.DeleteFunc(slices.Clone(mutants), func(m *mutant) bool { return m.source() != f.name || m.alone })
			text := rewrite(f.text, in)
			if _, err := parser.ParseFile(token.NewFileSet(), f.name, text, parser.SkipObjectResolution); err != nil {
				t.Errorf("%s: %v", target.dir, err)
			}
			if a, b := strings.Count(string(text), "\n"), strings.Count(string(f.text), "\n"); a != b {
				t.Errorf("%s: %s has %d lines with mutants, %d without", target.dir, f.name, a, b)
			}
		}
	}
}
