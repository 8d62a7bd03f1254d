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

// TestTheFirstSourceWins: of a series that two sources have, rules see that of the first in the configuration,
// whichever is read first, and that of the second while the first has none.
func TestTheFirstSourceWins(t *testing.T) {
	te := newTestEngine(t, group15([2]string{"r:x", "x"}))
	te.e.opts.Rank = func(source string) int { return map[string]int{"first": 0, "second": 1}[source] }
	for i, step := range []struct {
		source, page string
		want         float64
	}{{"second", "x 2\n", 2}, {"first", "x 1\n", 1}, {"second", "x 2\n", 1}, {"first", "", 0}, {"second", "x 2\n", 2}} {
		at := time.Unix(1_700_000_000+int64(15*i), 0)
		te.observe(step.source, at, step.page)
		if got := te.evaluate(at)[`{__name__="r:x", by="us"}`]; got != step.want {
			t.Errorf("step %d: after a reading of the %s source the result is %v, want %v", i, step.source, got, step.want)
		}
	}
}
