package settings

import (
	"os"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/e2e/environment"
)

func TestMain(m *testing.M) {
	environment.Clear()
	os.Exit(m.Run())
}

// TestEnvironmentOfTests: the variables of settings do not reach the tests, and those that choose
// tests are known to the program.
func TestEnvironmentOfTests(t *testing.T) {
	for i := range table {
		if table[i].Flag != "" {
			t.Setenv(table[i].Variable(), "set")
		}
	}
	tests := []string{"BENCH", "BINARY", "DCGM_STACK", "DEBIAN", "DIFFERENTIAL", "KUBERNETES", "REQUIRE_TMUX", "SLOW", "SOAK", "THANOS"}
	for _, name := range tests {
		t.Setenv(OwnVariables+name, "set")
	}
	environment.Clear()
	var left []string
	for _, entry := range os.Environ() {
		if strings.HasPrefix(entry, OwnVariables) {
			left = append(left, entry)
		}
	}
	if len(left) < len(tests) {
		t.Errorf("left are %q, want at least the %d that choose tests", left, len(tests))
	}
	if unknown := UnknownVariables(left); len(unknown) > 0 {
		t.Errorf("the program warns of %v", unknown)
	}
	for i := range table {
		if s := &table[i]; s.Flag != "" && os.Getenv(s.Variable()) != "" {
			t.Errorf("%s reaches the tests", s.Variable())
		}
	}
}
