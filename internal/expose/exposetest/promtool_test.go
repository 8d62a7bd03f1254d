package exposetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFiles rewrites tests that mix both forms in each form.
func TestFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a_test.yml")
	if err := os.WriteFile(file, []byte(`rule_files: [a.rules.yml]
tests:
  - name: changes
    input_series:
      - {series: 'kpulse_gpu_health{gpu="0",state="ok"}', values: '1 1 0 1'}
      - {series: 'kpulse_gpu_health{gpu="0",state="crit"}', values: '0 0 1 0'}
      - {series: 'kpulse_gpu_recommended_action{gpu="0",action="none"}', values: '1 1 0 1'}
      - {series: 'kpulse_gpu_recommended_action{gpu="0",action="reboot_node"}', values: '_ 0 1 stale'}
      - {series: 'kpulse_allocation_class_seconds_total{gpu="0",class="idle"}', values: '0 0 0 0'}
      - {series: 'kpulse_gpu_temperature_celsius{gpu="0"}', values: '0 0 0 0'}
  - name: of which no form makes another
    input_series:
      - {series: 'kpulse_gpu_temperature_celsius{gpu="0"}', values: '40x3'}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	files := Files(t, file)
	if len(files) != 3 || files[0] != file {
		t.Fatalf("files %q, want that and one of each form", files)
	}
	for i, want := range map[int]struct {
		series int
		has    []string
		lacks  []string
	}{
		// Lean: no zeros, no action none, no class that the allocation was never in.
		1: {4, []string{`values: 1 1 stale 1`, `values: _ _ 1 stale`, `values: 0 0 0 0`}, []string{`action="none"`, `class="idle"`}},
		// Full: 5 states, 7 actions and 13 classes, one temperature.
		2: {5 + 7 + 13 + 1, []string{`values: 1 1 0 1`, `{__name__="kpulse_gpu_health", gpu="0", state="hot"}`, `action="replace"`, `class="unknown"`, `values: 0 0 0 0`}, nil},
	} {
		text, err := os.ReadFile(files[i])
		if err != nil {
			t.Fatal(err)
		}
		got := string(text)
		if n := strings.Count(got, "- series: "); n != want.series || strings.Contains(got, "makes another") {
			t.Errorf("%s has %d series, want %d:\n%s", files[i], n, want.series, got)
		}
		for _, w := range want.has {
			if !strings.Contains(got, w) {
				t.Errorf("%s lacks %s:\n%s", files[i], w, got)
			}
		}
		for _, w := range want.lacks {
			if strings.Contains(got, w) {
				t.Errorf("%s has %s:\n%s", files[i], w, got)
			}
		}
	}
}
