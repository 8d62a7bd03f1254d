package slow

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// TestsOf returns the names of the tests in a folder, for tables that name tests.
func TestsOf(t testing.TB, folder string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has the tests %v, %v", folder, files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunction.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}
