package rules_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/expose/exposetest"
)

// TestPromtool has Prometheus' own tool check the rules, and run their tests with the
// series of each form.
func TestPromtool(t *testing.T) {
	binary, err := exec.LookPath("promtool")
	if err != nil {
		// CI sets it, which makes the absence a failure.
		if os.Getenv("KPULSE_REQUIRE_PROMETHEUS") != "" {
			t.Fatal(err)
		}
		t.Skip("no promtool in the PATH; apt-get install prometheus")
	}
	for _, file := range slices.Sorted(maps.Keys(ruleFiles(t))) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			promtool(t, binary, "check", file)
		})
	}
	for _, file := range testFiles(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			for _, as := range inBothForms(t, file) {
				promtool(t, binary, "test", as)
			}
		})
	}
}

func promtool(t *testing.T, binary, verb, file string) {
	t.Helper()
	if out, err := exec.Command(binary, verb, "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool %s rules %s: %v\n%s", verb, file, err, out)
	}
}

// inBothForms returns a file of tests, and those with the series of each form where it makes a
// difference.
func inBothForms(t *testing.T, file string) (files []string) {
	t.Helper()
	files = []string{file}
	for _, form := range exposetest.Forms {
		text, n, err := exposetest.Promtool(file, form)
		if err != nil {
			t.Fatal(err)
		}
		if t.Logf("%s: %d tests are others", form, n); n == 0 {
			continue
		}
		as := filepath.Join(t.TempDir(), form+"-"+filepath.Base(file))
		if err := os.WriteFile(as, text, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, as)
	}
	return files
}
