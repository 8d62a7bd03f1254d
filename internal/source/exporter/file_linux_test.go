package exporter

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// TestFileOfAnother reads as the user nobody if it runs as root: each thread has its own user for
// file access.
func TestFileOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.prom")
	write(t, path, page)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		const nobody = 65534
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Skip(err)
		}
		defer syscall.Setfsuid(0)
	}
	e := readError(t, path, Options{})
	if e.Failure != source.Unreachable || !strings.HasSuffix(e.Cause, "permission denied") || !strings.Contains(e.Remedy, "ls -l "+path) {
		t.Errorf("got %s %q", e.Failure, e)
	}
}
