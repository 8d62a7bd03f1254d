package dcgmtest

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
const program = "github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest/dcgmi"

// sources are the sources of the fake. They are embedded only to make go test rerun tests when
// they change: it does not see what go build reads.
//
//go:embed dcgmi/*.go
var sources embed.FS

// compiled builds the fake once in each test binary and returns the file's bytes. They stay in memory because no
// temporary directory is removed at the end of the test binary.
var compiled = sync.OnceValues(func() ([]byte, error) {
	runtime.KeepAlive(sources)
	dir, err := os.MkdirTemp("", "dcgmtest-")
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

// FarHost is a --dcgm.host of another machine. With it, a dcgm-exporter that runs beside the tests does not matter.
const FarHost = "node7"

// Install builds the fake, named dcgmi, in a directory of its own, which is removed after the test, writes s beside it and
// returns the fake's path.
func Install(t testing.TB, s Scenario) string {
	t.Helper()
	program, err := compiled()
	if err != nil {
		t.Fatalf("cannot build the fake dcgmi: %v", err)
	}
	exe := filepath.Join(t.TempDir(), "dcgmi")
	writeProgram(t, exe, program)
	s.Write(t, Beside(exe))
	return exe
}

// writeProgram writes a program. A child forked while its file is open for writing would keep it open, and running the
// program would fail with "text file busy".
func writeProgram(t testing.TB, path string, program []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
}

// Wrap installs a dcgmi that is a shell script around the fake of s, which is $0.real. The script finds sleep and yes in
// the fake's directory, because tests make that the whole PATH.
func Wrap(t testing.TB, s Scenario, script string) string {
	t.Helper()
	exe := Install(t, s)
	dir := filepath.Dir(exe)
	for from, to := range map[string]string{exe: exe + ".real", Beside(exe): Beside(exe + ".real")} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range []string{"sleep", "yes"} {
		if path, err := exec.LookPath(tool); err != nil {
			t.Fatal(err)
		} else if err := os.Symlink(path, filepath.Join(dir, tool)); err != nil {
			t.Fatal(err)
		}
	}
	writeProgram(t, exe, []byte("#!/bin/sh\n"+script))
	return exe
}
