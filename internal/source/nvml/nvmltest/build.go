package nvmltest

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// sources are the library's sources. They are embedded, so that the test binary can build them
// on any machine, and tests run again when they change.
//
//go:embed library/*.c library/*.h
var sources embed.FS

// compiled builds the library once in each test binary and returns the file's
// bytes, because no temporary directory is removed at the end of the test
// binary.
var compiled = sync.OnceValues(func() ([]byte, error) { return compile() })

// Build returns the path of the library in a directory of its own, which is
// removed after the test. It has no scenario yet: see ScenarioEnv. It skips the
// test if Go builds without cgo, the default without a C compiler.
func Build(t testing.TB) string {
	t.Helper()
	return install(t, compiled)
}

// BuildWithout is Build for a library that, like those of older drivers, does not
// export some functions.
func BuildWithout(t testing.TB, functions ...string) string {
	t.Helper()
	return install(t, func() ([]byte, error) { return compile(functions...) })
}

func install(t testing.TB, build func() ([]byte, error)) string {
	t.Helper()
	if !usesC {
		t.Skip("built without cgo, and so without NVML")
	}
	library, err := build()
	if err != nil {
		t.Fatalf("cannot build the fake NVML: %v", err)
	}
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	if err := os.WriteFile(path, library, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// compile runs the C compiler, CC like cgo.
func compile(without ...string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "nvmltest-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.CopyFS(dir, sources); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "library", "*.c"))
	if err != nil {
		return nil, err
	}
	out := filepath.Join(dir, "library.so")
	args := append(strings.Fields(os.Getenv("CC")), "-std=gnu11", "-Wall", "-Wextra", "-shared", "-fPIC", "-O1", "-fvisibility=hidden", "-pthread", "-o", out)
	if args[0] == "-std=gnu11" {
		args = append([]string{"cc"}, args...)
	}
	for _, function := range without {
		args = append(args, "-D"+function+"=fake_"+function)
	}
	if text, err := exec.CommandContext(context.Background(), args[0], append(args[1:], files...)...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", args[0], err, text)
	}
	return os.ReadFile(out)
}
