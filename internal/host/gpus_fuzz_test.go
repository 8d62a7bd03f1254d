package host

import (
	"strings"
	"testing"
)

// FuzzBoard: what is read of the driver's text about a board stands in it, on one line.
func FuzzBoard(f *testing.F) {
	f.Add("Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-1\nBus Location: \t 0000:18:00.0\nDevice Minor: \t 0\n")
	f.Add("GPU UUID: GPU-????????-????-????-????-????????????\nDevice Minor\nBus Location::\n")
	f.Fuzz(func(t *testing.T, text string) {
		g := parseGPU([]byte(text))
		for _, value := range []string{g.UUID, g.PCIBusID, g.minor} {
			if !strings.Contains(text, value) || strings.ContainsAny(value, "\n") {
				t.Errorf("%q of %q", value, text)
			}
		}
		if strings.Contains(g.UUID, "?") {
			t.Errorf("UUID %q is of no board", g.UUID)
		}
	})
}
