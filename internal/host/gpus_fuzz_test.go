package host

import (
	"strings"
	"testing"
)

// FuzzBoard: each value read from the driver's text about a board is in that text, on one
// line.
func FuzzBoard(f *testing.F) {
	f.Add("Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-1\nBus Location: \t 0000:18:00.0\nDevice Minor: \t 0\n")
	f.Add("GPU UUID: GPU-????????-????-????-????-????????????\nDevice Minor\nBus Location::\n")
	f.Fuzz(func(t *testing.T, text string) {
		g := parseGPU([]byte(text))
		for _, value := range []string{g.UUID, g.PCIBusID, g.minor} {
			if !strings.Contains(text, value) || strings.ContainsAny(value, "\n") {
				t.Errorf("%q is not on a line of %q", value, text)
			}
		}
		if strings.Contains(g.UUID, "?") {
			t.Errorf("%q is not a board's UUID", g.UUID)
		}
	})
}
