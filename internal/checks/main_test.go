package checks

import (
	"os"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/e2e/environment"
)

func TestMain(m *testing.M) {
	environment.Clear()
	os.Exit(m.Run())
}
