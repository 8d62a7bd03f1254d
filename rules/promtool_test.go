package rules_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPromtool has Prometheus' own tool check the rules and run their tests.
func TestPromtool(t *testing.T) {
	binary, err := exec.LookPath("promtool")
	if err != nil {
		// CI sets it, which makes the absence a failure.
		if os.Getenv("KPULSE_REQUIRE_PROMETHEUS") != "" {
			t.Fatal(err)
		}
		t.Skip("no promtool in the PATH; apt-get install prometheus")
	}
	for _, c := range []struct{ verb, pattern string }{{"check", "*.rules.yml"}, {"test", "*_test.yml"}} {
		files, err := filepath.Glob(c.pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", c.pattern, files, err)
		}
		for _, file := range files {
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				out, err := exec.Command(binary, c.verb, "rules", file).CombinedOutput()
				if err != nil {
					t.Errorf("promtool %s rules %s: %v\n%s", c.verb, file, err, out)
				}
			})
		}
	}
}
