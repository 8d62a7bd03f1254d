package app

import (
	"bytes"
	"testing"
)

// TestShippedCountersLackNothing holds the counters file that we ship to what our
// scores need.
func TestShippedCountersLackNothing(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := Run([]string{"check", "counters", "../../deploy/dcgm-counters.csv"}, &stdout, &stderr)
	if code != exitDone || stderr.Len() > 0 {
		t.Errorf("exit %d: %s", code, &stderr)
	}
}
