package main

import (
	"go/parser"
	"go/token"
	"io"
	"os"
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
	c := campaign{root: dir, which: regexp.MustCompile(""), jobs: 2, stdout: io.Discard, stderr: io.Discard, remembered: filepath.Join(dir, "results")}
	if err := c.run(t.Context(), []target{{".", []string{"."}}}); err != nil {
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
	if page := c.page(); !strings.Contains(page, "\n| boundary | 3 | 1 | 1 | 0 | 0 | 1 |\n") || !strings.Contains(page, "\n| arithmetic | 1 | 0 | 0 | 0 | 1 | 0 |\n") {
		t.Errorf("the page is\n%s", page)
	}
	c.results = c.results[:len(c.results)-1]

	again := campaign{root: dir, which: c.which, jobs: 1, stdout: io.Discard, stderr: io.Discard, remembered: c.remembered, list: true}
	var out strings.Builder
	again.stdout = &out
	if err := again.run(t.Context(), []target{{".", []string{"."}}}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != len(c.results) {
		t.Errorf("%d are listed, %d were tried", n, len(c.results))
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

// TestTargets: each explanation belongs to an existing mutant, and all edits result in source that
// parses, with unchanged line numbers.
func TestTargets(t *testing.T) {
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
		mutants, err := derive(p)
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
