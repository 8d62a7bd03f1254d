package settings

import (
	"os"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/e2e/environment"
)

func TestMain(m *testing.M) {
	environment.Clear()
	os.Exit(m.Run())
}

// TestEnvironmentOfTests: the variables of settings do not reach the tests.
func TestEnvironmentOfTests(t *testing.T) {
	for i := range table {
		if table[i].Flag != "" {
			t.Setenv(table[i].Variable(), "set")
		}
	}
	environment.Clear()
	for i := range table {
		if s := &table[i]; s.Flag != "" && os.Getenv(s.Variable()) != "" {
			t.Errorf("%s reaches the tests", s.Variable())
		}
	}
}
