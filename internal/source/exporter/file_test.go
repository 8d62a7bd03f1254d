package exporter

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFileIsReadAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "saved page.prom")
	s := open(t, path, Options{})
	var b raw.Batch
	for _, text := range []string{page, "", "up 1\n", string(lines(200 << 10)), page} {
		write(t, path, text)
		if err := s.Read(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if string(b.Body) != text || cap(b.Body) == len(b.Body) || b.At.IsZero() {
			t.Errorf("got %d bytes of %d at %v, want %d and a spare one", len(b.Body), cap(b.Body), b.At, len(text))
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := s.Read(t.Context(), &b); source.AsError(err).Failure != source.Unreachable || len(b.Body) != 0 {
		t.Errorf("after removal: %v, %d bytes", err, len(b.Body))
	}
	write(t, path, page)
	if err := s.Read(t.Context(), &b); err != nil || string(b.Body) != page {
		t.Errorf("after its return: %v", err)
	}
}

func TestFileFailures(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write(t, in("html"), "<html>\n")
	write(t, in("large"), strings.Repeat("u 1\n", 300))
	if err := syscall.Mkfifo(in("pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path          string
		failure       source.Failure
		cause, remedy string
	}{
		{in("missing"), source.Unreachable, "no such file", "begins with http://"},
		{in("html") + "/x", source.Broken, "not a directory", "cat "},
		{dir, source.Unreachable, "is not a regular file", "saved /metrics page"},
		{in("pipe"), source.Unreachable, "not a regular file", "saved /metrics page"},
		{in("html"), source.NotMetrics, `begins "<html>"`, "saved /metrics page"},
		{in("large"), source.TooLarge, "1200 bytes, over the limit of 1KiB", "--source.max-body=1MiB"},
	} {
		e := readError(t, tt.path, Options{MaxBody: 1 << 10})
		if e.Failure != tt.failure || !strings.Contains(e.Cause, tt.cause) || !strings.Contains(e.Remedy, tt.remedy) {
			t.Errorf("got %s %q\nwant %s, %q and %q", e.Failure, e, tt.failure, tt.cause, tt.remedy)
		}
	}
}

func TestFileHeedsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.prom")
	write(t, path, page)
	s := open(t, path, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Read(ctx, &raw.Batch{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), -1)
	defer cancel()
	if err := s.Read(ctx, &raw.Batch{}); source.AsError(err).Failure != source.Timeout {
		t.Errorf("late: %v", err)
	}
}

// TestNoRoomForAFile: a page that does not fit beside the others takes its earlier samples along.
func TestNoRoomForAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page")
	if err := os.WriteFile(path, bytes.Repeat([]byte("a 1\n"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(path, Options{Memory: &source.Memory{Limit: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := raw.Batch{Samples: make([]raw.Sample, 1<<20)}
	if err := s.Read(t.Context(), &b); !errors.Is(err, errNoMemory) || b.Body != nil || b.Samples != nil {
		t.Errorf("%v, with room for %d bytes and %d samples", err, cap(b.Body), cap(b.Samples))
	}
}
