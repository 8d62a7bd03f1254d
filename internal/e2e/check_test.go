package e2e

import (
	"bytes"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/app"
)

// TestShippedCountersLackNothing holds the counters file that we ship to what our
// scores need.
func TestShippedCountersLackNothing(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := app.Run([]string{"check", "counters", "../../deploy/dcgm-counters.csv"}, &stdout, &stderr)
	if code != 0 || stderr.Len() > 0 {
		t.Errorf("exit %d: %s", code, &stderr)
	}
}
