package engine

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// TestASourceThatLeftIsForgotten: rules see none of its series, even if a reading comes
// late, and nothing of it is kept.
func TestASourceThatLeftIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		te := started(t, nil, nil)
		rank := 0
		te.e.opts.Rank = func(string) int { return rank }
		groups := group15([2]string{"r:x", "x"})
		groups[0].Interval = 10 * time.Second
		te.e.Replace(groups, time.Now())
		te.publish("x 1\n")
		time.Sleep(11 * time.Second)
		if got := te.value(); got != 1 {
			t.Fatalf("the result is %v, want 1", got)
		}
		rank = -1
		te.publish("x 2\n")
		time.Sleep(20 * time.Second)
		if got := te.value(); !math.IsNaN(got) || len(te.e.pages) != 0 {
			t.Errorf("after it left the result is %v, and %d sources are known", got, len(te.e.pages))
		}
	})
}
