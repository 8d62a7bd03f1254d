//go:build cgo && linux

package nvml

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/nvml/nvmltest"
)

// A reading through a library that is loaded like the driver's equals, line by
// line, what an exporter serves for the same boards, except that we have a row
// for a board with MIG instances too.
func TestThroughTheLibrary(t *testing.T) {
	truths := nvmltest.H100(2)
	truths[1] = truths[1].Cut(2)
	scenario := filepath.Join(t.TempDir(), "scenario")
	nvmltest.FromTruth(truths).Write(t, scenario)
	t.Setenv(nvmltest.ScenarioEnv, scenario)
	s, err := New(Options{LibraryPath: nvmltest.Build(t), Period: 150 * time.Millisecond, Hostname: "gpu07"})
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{Source: s, t: t}
	r.read()
	r.read()
	got, want := samples(r.b.AppendAll(nil)), samples(nvmltest.Exposition("gpu07", truths))
	if len(want) < 100 {
		t.Fatalf("the exporter has %d lines", len(want))
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("missing: %s", line)
		}
	}
	for _, line := range got {
		whole := strings.Contains(line, `{gpu="1",`) && !strings.Contains(line, "GPU_I_ID")
		if !whole && !slices.Contains(want, line) {
			t.Errorf("not the exporter's: %s", line)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func samples(body []byte) []string {
	lines := strings.Split(string(body), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" || line[0] == '#' })
}
