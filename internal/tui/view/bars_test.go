package view

import (
	"math"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// TestMark checks the position of the mark of GPU util on a bar of real utilization.
func TestMark(t *testing.T) {
	for _, test := range []struct {
		real, util float64
		want       string
	}{
		{0.4, 0.9, "████░░░░│·"},
		{0.4, 1, "████░░░░░│"},
		{0.45, 0.9, "████▌░░░│·"},
		{0, 0.25, "░░│·······"},
		{0.4, 0.5, "████│·····"},
		{0.4, 0.42, "████│·····"},
		{0.45, 0.5, "████▌·····"}, // in one cell
		{0.4, 0.2, "████······"},
		{0.4, math.NaN(), "████······"},
		{math.NaN(), 0.9, "          "},
		{0.4, 7, "████░░░░░│"},
	} {
		var g screen.Grid
		g.Reset(10, 1)
		device := &client.GPU{RealUtilization: test.real}
		device.Values[canonical.NVMLUtilization] = test.util
		drawBar(g.All(), device, client.MetricReal, false)
		if got := strings.TrimSuffix(g.Glyphs(), "\n"); got != test.want {
			t.Errorf("real %v of %v: %q, want %q", test.real, test.util, got, test.want)
		}
	}
}
