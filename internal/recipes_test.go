package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	recipeTitle = regexp.MustCompile(`(?m)^\*\*([^*]+)\*\* ?(.*)$`)
	recipeSize  = regexp.MustCompile(`^\(\d+ files?, (about )?\d+ lines?\b`)
	codeSpan    = regexp.MustCompile("`([^`\n]+)`")
	wordIn      = regexp.MustCompile("`(\\w+)`(?:, `(\\w+)`)*(?: and `(\\w+)`)? (?:in|to|of) `([\\w./-]+)`")
	ranTest     = regexp.MustCompile(`-run '?\^?([\w|]+)`)
	madeTarget  = regexp.MustCompile(`\bmake ([a-z-]+)`)
	isPath      = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+$|^[\w-]+\.(md|go|yml)$`)
)

// recipes returns the section "Adding things" of CONTRIBUTING.md.
func recipes(t *testing.T) string {
	t.Helper()
	_, rest, found := strings.Cut(readFile(t, "../CONTRIBUTING.md"), "\n## Adding things\n")
	section, _, ended := strings.Cut(rest, "\n## ")
	if !found || !ended {
		t.Fatal("CONTRIBUTING.md has no section Adding things")
	}
	return section
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRecipesSayTheirSize: each recipe has the size of the diff from following it.
func TestRecipesSayTheirSize(t *testing.T) {
	titles := recipeTitle.FindAllStringSubmatch(recipes(t), -1)
	if len(titles) < 8 {
		t.Errorf("%d recipes", len(titles))
	}
	for _, title := range titles {
		if !recipeSize.MatchString(title[2]) {
			t.Errorf("%s: %q does not begin with a size such as (3 files, 4 lines)", title[1], title[2])
		}
	}
}

// TestRecipesNameWhatThereIs: named files, words in files, tests, and make targets exist.
func TestRecipesNameWhatThereIs(t *testing.T) {
	text := recipes(t)
	paths := 0
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		if !isPath.MatchString(m[1]) {
			continue
		}
		paths++
		if _, err := os.Stat("../" + m[1]); err != nil {
			t.Errorf("%v", err)
		}
	}
	if paths < 20 {
		t.Errorf("only %d paths", paths)
	}
	for _, m := range wordIn.FindAllStringSubmatch(strings.ReplaceAll(text, "\n", " "), -1) {
		in := sources(t, "../"+m[4], "")
		for _, word := range m[1:4] {
			if !regexp.MustCompile(`\b` + word + `\b`).MatchString(in) {
				t.Errorf("%s has no %s", m[4], word)
			}
		}
	}
	tests := sources(t, ".", "_test.go") + sources(t, "../mixin", "_test.go")
	for _, m := range ranTest.FindAllStringSubmatch(text, -1) {
		for _, name := range strings.Split(m[1], "|") {
			if !regexp.MustCompile(`func Test\w*` + strings.TrimPrefix(name, "Test")).MatchString(tests) {
				t.Errorf("there is no test %s", name)
			}
		}
	}
	for _, m := range madeTarget.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(readFile(t, "../Makefile"), "\n"+m[1]+":") {
			t.Errorf("make has no target %s", m[1])
		}
	}
}

// sources returns the text of the files at or below a path that end in suffix.
func sources(t *testing.T, path, suffix string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, suffix) {
			return err
		}
		all.WriteString(readFile(t, file))
		return nil
	})
	if err != nil {
		t.Errorf("%v", err)
	}
	return all.String()
}
