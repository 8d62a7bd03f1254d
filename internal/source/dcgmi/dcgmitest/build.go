package dcgmitest

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// program is the import path of the fake.
const program = "github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest/dcgmi"

// sources are those of the fake. They are in the test binary only so that go
// test runs tests again when they change: what go build reads it does not see.
//
//go:embed fake/*.go dcgmi/*.go
var sources embed.FS

// compiled builds the fake once in each test binary and returns the file's
// bytes. They stay in memory because no directory lives as long as the binary
// and is removed with it.
var compiled = sync.OnceValues(func() ([]byte, error) {
	runtime.KeepAlive(sources)
	dir, err := os.MkdirTemp("", "dcgmitest-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	exe := filepath.Join(dir, "dcgmi")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", exe, program)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(exe)
})

// Build returns the path of a fake named dcgmi in a directory of its own, which
// goes with the test. It has no scenario yet.
func Build(t testing.TB) string {
	t.Helper()
	program, err := compiled()
	if err != nil {
		t.Fatalf("cannot build the fake dcgmi: %v", err)
	}
	exe := filepath.Join(t.TempDir(), "dcgmi")
	// A child that is forked while the file is open for writing would hold it
	// open, and running it would then fail with "text file busy".
	syscall.ForkLock.RLock()
	err = os.WriteFile(exe, program, 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// Install builds the fake, writes s beside it and returns the fake's path.
func Install(t testing.TB, s Scenario) string {
	t.Helper()
	exe := Build(t)
	s.Write(t, Beside(exe))
	return exe
}
