package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// command runs a program, which must succeed, and returns its output.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// only returns the one file that a pattern matches.
func only(t *testing.T, dir, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %v, %v; want one file", pattern, files, err)
	}
	return files[0]
}

// writeFiles writes texts by path below a folder, with their folders.
func writeFiles(t *testing.T, dir string, texts map[string]string) {
	t.Helper()
	for path, text := range texts {
		path = filepath.Join(dir, path)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// top is the root of the repository.
const top = "../.."

// The build is stamped with a fictitious version and commit: a checkout may lack .git, and a new
// commit during the test would change the date.
const (
	aVersion  = "v1.2.3-rc.4"
	aRevision = "0123456789abcdef0123456789abcdef01234567"
	aDate     = "2023-11-14T22:13:20Z"
)

var stamps = []string{"VERSION=" + aVersion, "REVISION=" + aRevision, "SOURCE_DATE_EPOCH=1700000000"}
