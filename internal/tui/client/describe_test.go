package client

import (
	"math"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestRecoveryInWords checks that the number of a recovery action is shown with its meaning, and an
// unknown number as it is.
func TestRecoveryInWords(t *testing.T) {
	for value, want := range map[float64]string{
		1: "driver asks for a GPU reset (1)", 2: "driver asks for a node reboot (2)", 3: "driver asks to drain peer-to-peer (3)",
		4: "driver asks to drain and reset the GPU (4)", 5: "driver asks to recover the IMEX domain (5)",
		0: "driver asks for recovery 0", 6: "driver asks for recovery 6", math.NaN(): "driver asks for recovery",
	} {
		g := NewGPU("", canonical.Device{})
		g.Values[canonical.RecoveryAction] = value
		if got := g.ConditionText(canonical.CondRecoveryAction); got != want {
			t.Errorf("%v: %q, want %q", value, got, want)
		}
	}
}
