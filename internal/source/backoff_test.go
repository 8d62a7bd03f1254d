package source

import (
	"math"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	const s = time.Second
	tests := []struct {
		n               int
		lowest, highest time.Duration // at random 0 and just below 1
	}{
		{0, s, s + s/4}, // before any failure, the same as after the first
		{1, s, s + s/4},
		{2, s + s/2, 2*s + s/2},
		{3, 3 * s, 5 * s},
		{4, 6 * s, 10 * s},
		{6, 24 * s, 40 * s},
		{7, 45 * s, 60 * s}, // 64 s is over the longest
		{40, 45 * s, 60 * s},
		{math.MaxInt, 45 * s, 60 * s},
	}
	for _, tt := range tests {
		if got := Backoff(tt.n, 0); got != tt.lowest {
			t.Errorf("after %d failures at least %s, want %s", tt.n, got, tt.lowest)
		}
		if got := Backoff(tt.n, math.Nextafter(1, 0)).Round(time.Microsecond); got != tt.highest {
			t.Errorf("after %d failures at most %s, want %s", tt.n, got, tt.highest)
		}
	}
}
