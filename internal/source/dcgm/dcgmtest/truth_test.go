package dcgmtest_test

import (
	"math"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// TestValues checks that values are in range, that counters never fall, and
// that another seed gives other values.
func TestValues(t *testing.T) {
	same, mean := 0, 0.0
	for tick := range 1000 {
		a, b := dcgmtest.Value(1, "GPU 0", 1002, tick), dcgmtest.Value(2, "GPU 0", 1002, tick)
		if a < 0 || a > 1 || a != dcgmtest.Value(1, "GPU 0", 1002, tick) {
			t.Fatalf("sample %d: %v", tick, a)
		}
		if a == b {
			same++
		}
		mean += a / 1000
		if dcgmtest.Value(1, "GPU 0", 156, tick+1) <= dcgmtest.Value(1, "GPU 0", 156, tick) {
			t.Fatalf("energy does not grow at sample %d", tick)
		}
	}
	if same > 20 || math.Abs(mean-0.5) > 0.05 {
		t.Errorf("%d of 1000 values alike for two seeds, mean %v", same, mean)
	}
	if v := dcgmtest.Value(1, "GPU 0", 230, 5); !math.IsNaN(v) {
		t.Errorf("an XID without a failure: %v", v)
	}
}
