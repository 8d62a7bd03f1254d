package rules_test

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// TestPromtool checks the rules with promtool, and runs their tests.
func TestPromtool(t *testing.T) {
	binary, err := exec.LookPath("promtool")
	if err != nil {
		// CI sets it: there a missing promtool is a failure.
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
			slow.Test(t, "promtool: half a minute of CPU")
			t.Parallel()
			promtool(t, binary, "test", file)
		})
	}
}

func promtool(t *testing.T, binary, verb, file string) {
	t.Helper()
	if out, err := exec.Command(binary, verb, "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool %s rules %s: %v\n%s", verb, file, err, out)
	}
}
