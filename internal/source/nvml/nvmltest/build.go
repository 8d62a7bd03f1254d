package nvmltest

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
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
var compiled = sync.OnceValues(compile)

// Build returns the path of the library in a directory of its own, which is
// removed after the test. It has no scenario yet: see ScenarioEnv. It skips the
// test if Go builds without cgo, the default without a C compiler.
func Build(t testing.TB) string {
	t.Helper()
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"}) {
		t.Skip("built without cgo, and so without NVML")
	}
	library, err := compiled()
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
func compile() ([]byte, error) {
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
	args := append(strings.Fields(cmp.Or(os.Getenv("CC"), "cc")),
		"-std=gnu11", "-Wall", "-Wextra", "-shared", "-fPIC", "-O1", "-fvisibility=hidden", "-pthread", "-o", out)
	if text, err := exec.CommandContext(context.Background(), args[0], append(args[1:], files...)...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", args[0], err, text)
	}
	return os.ReadFile(out)
}
