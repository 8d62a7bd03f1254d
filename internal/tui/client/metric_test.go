package client

import (
	"math"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestPCIeLimit: a link that idles at an older generation is drawn against its maximum, if that
// is known.
func TestPCIeLimit(t *testing.T) {
	for _, tt := range []struct{ generation, width, best, most, want float64 }{
		{1, 16, 5, 16, 16 * 3938e6},
		{4, 8, math.NaN(), math.NaN(), 8 * 1969e6},
		{math.NaN(), math.NaN(), 4, 16, 16 * 1969e6},
		{math.NaN(), 16, math.NaN(), 16, math.NaN()},
		{9, 16, 99, 16, math.NaN()},
	} {
		var g GPU
		g.Values[canonical.PCIeLinkGeneration], g.Values[canonical.PCIeLinkWidth] = tt.generation, tt.width
		g.Values[canonical.PCIeLinkGenerationMax], g.Values[canonical.PCIeLinkWidthMax] = tt.best, tt.most
		if got := pcieLimit(1)(&g); got != tt.want && !(math.IsNaN(got) && math.IsNaN(tt.want)) {
			t.Errorf("%v: %v", tt, got)
		}
	}
}
