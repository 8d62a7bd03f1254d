package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestRangesAreWhole: enough samples are kept, whatever moves a selection into the past.
// The last sample is at the instant of the evaluation.
func TestRangesAreWhole(t *testing.T) {
	for _, test := range []struct {
		expr   string
		offset time.Duration
		want   float64 // a sample's value is its seconds since the beginning
	}{
		{"count_over_time(x[10s])", 0, 10},
		{"min_over_time(x[10s])", 0, 91},
		{"x offset 7s", 0, 93},
		{"x offset 500ms", 0, 99},
		{"min_over_time(x[10s] offset 7s)", 0, 84},
		{"min_over_time(x[10s])", 5 * time.Second, 86},
		{"x", 5 * time.Second, 95},
		{"min_over_time(x[20s:5s])", 0, 85},
		{"min_over_time(min_over_time(x[10s])[20s:5s])", 0, 76},
		{"min_over_time(sum_over_time(x[1s])[20s:5s] offset 10s)", 0, 75},
	} {
		t.Run(test.expr, func(t *testing.T) {
			groups := group15([2]string{"r:x", test.expr})
			groups[0].Offset = test.offset
			te := newTestEngine(t, groups)
			at := time.Unix(1_700_000_000, 0)
			for second := range 101 {
				at = time.Unix(1_700_000_000+int64(second), 0)
				te.observe("s", at, fmt.Sprintf("x %d\n", second))
			}
			if got := te.evaluate(at)[`{__name__="r:x", by="us"}`]; got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestALateEvaluationSeesNothingLater: the result for an instant does not depend on the
// time of the evaluation.
func TestALateEvaluationSeesNothingLater(t *testing.T) {
	te := newTestEngine(t, nil)
	begin := time.Unix(1_700_000_010, 0)
	groups := group15([2]string{"r:x", "x"})
	groups[0].Interval = 10 * time.Second
	te.e.Replace(groups, begin)
	for _, second := range []int{9, 12} {
		at := begin.Add(time.Duration(second) * time.Second)
		te.e.inbox.put(outcome{source: "s", at: at, snapshot: &canonical.Snapshot{Valid: [][]byte{fmt.Appendf(nil, "x %d\n", second)}}})
	}
	late := begin.Add(13 * time.Second)
	te.e.step(t.Context(), late)
	if got := te.results(late)[`{__name__="r:x", by="us"}`]; got != 9 {
		t.Errorf("for the 10th second the result is %v, want 9", got)
	}
	te.e.step(t.Context(), late)
	te.e.step(t.Context(), begin.Add(20*time.Second))
	if got := te.results(late)[`{__name__="r:x", by="us"}`]; got != 12 {
		t.Errorf("for the 20th second the result is %v, want 12", got)
	}
}

// TestRulesThatTakeTooLong: a rule that takes longer than its interval has no results.
func TestRulesThatTakeTooLong(t *testing.T) {
	groups := group15([2]string{"r:x", "vector(1)"})
	groups[0].Interval = time.Nanosecond
	te := newTestEngine(t, nil)
	g := newGroup(groups[0], time.Time{})
	te.e.run(t.Context(), g, time.Unix(1_700_000_000, 0))
	if g.rules[0].failures.Load() != 1 || !strings.Contains(te.log.String(), "take longer than its interval of 1ns; lengthen it") {
		t.Errorf("%d failures; the log says %q", g.rules[0].failures.Load(), te.log)
	}
}

// TestTooManySamplesFail: one evaluation must not use all memory.
func TestTooManySamplesFail(t *testing.T) {
	te := newTestEngine(t, group15([2]string{"r:x", "sum_over_time(vector(1)[30d:1s])"}, [2]string{"r:y", "vector(2)"}))
	at := time.Unix(1_700_000_000, 0)
	te.evaluate(at)
	if got := te.names(at); got != "r:y" || !strings.Contains(te.log.String(), "too many samples") {
		t.Errorf("results of %s; the log says %q", got, te.log)
	}
}

// TestTheLimitOfSamplesChanges: Limit applies to the samples kept, and to those that an
// evaluation may load.
func TestTheLimitOfSamplesChanges(t *testing.T) {
	te := newTestEngine(t, group15([2]string{"r:x", "sum_over_time(x[1m])"}))
	at := time.Unix(1_700_000_000, 0)
	for range 30 {
		at = at.Add(time.Second)
		te.observe("s", at, "x 1\n")
	}
	for _, c := range []struct {
		samples int
		want    float64 // 0 is no result
	}{{100, 30}, {10, 0}, {100, 30}} {
		te.e.Limit(c.samples)
		if got := te.evaluate(at)[`{__name__="r:x", by="us"}`]; got != c.want {
			t.Errorf("limited to %d samples, their sum is %v, want %v: %s", c.samples, got, c.want, te.log)
		}
	}
	if want := "too many samples"; !strings.Contains(te.log.String(), want) {
		t.Errorf("the log does not say %q:\n%s", want, te.log)
	}
}

// TestTooManyResultsFail: the results of all rules together are bounded.
func TestTooManyResultsFail(t *testing.T) {
	te := newTestEngine(t, group15([2]string{"r:a", "x"}, [2]string{"r:b", "2 * x"}, [2]string{"r:c", "count(x)"}, [2]string{"r:d", "3 * x"}))
	te.e.opts.Limits.Series = 5
	at := time.Unix(1_700_000_000, 0)
	for _, c := range []struct{ page, want string }{
		{"x{i=\"0\"} 1\nx{i=\"1\"} 1\n", "r:a r:a r:b r:b r:c"},
		{"x{i=\"0\"} 1\nx{i=\"1\"} 1\nx{i=\"2\"} 1\n", "r:a r:a r:a r:c"},
		{"x{i=\"0\"} 1\n", "r:a r:b r:c r:d"},
	} {
		at = at.Add(time.Second)
		te.observe("s", at, c.page)
		te.evaluate(at)
		te.evaluate(at) // the budget is not used up
		if got := te.names(at); got != c.want {
			t.Errorf("from\n%sthere are results of %s, want %s", c.page, got, c.want)
		}
	}
	if want := "2 results, but only 0 of the 5 that all rules together may have are left"; !strings.Contains(te.log.String(), want) {
		t.Errorf("the log does not say %q:\n%s", want, te.log)
	}
}

// TestRulesForgetWhatTheyNoLongerGive: thousands of pods come and go, and only the last
// ones are remembered.
func TestRulesForgetWhatTheyNoLongerGive(t *testing.T) {
	te := newTestEngine(t, group15([2]string{"r:x", "x"}, [2]string{"r:sum", "sum(r:x)"}))
	at := time.Unix(1_700_000_000, 0)
	for pod := range 800 {
		at = at.Add(time.Second)
		te.observe("s", at, fmt.Sprintf("x{pod=\"%d\"} 1\nx{pod=\"%d\"} 1\n", pod, pod+1))
		if got := te.evaluate(at)[`{__name__="r:sum", by="us"}`]; got != 2 {
			t.Fatalf("the sum is %v, want 2", got)
		}
	}
	if n := len(te.e.pages["s"].lines); n != 2 {
		t.Errorf("%d lines are remembered for 2 series", n)
	}
	if got := te.e.store.series.Load(); got > 2*400 { // from the last 5 minutes and a sweep
		t.Errorf("%d series are kept", got)
	}
}

// TestServedNamesAreNotRecorded: a source's series have priority, and nothing is served
// twice.
func TestServedNamesAreNotRecorded(t *testing.T) {
	te := newTestEngine(t, group15([2]string{"x", "2 * y"}, [2]string{"r:y", "y"}))
	at := time.Unix(1_700_000_000, 0)
	te.observe("s", at, "y 1\n")
	te.evaluate(at)
	if got := te.names(at); got != "r:y x" {
		t.Errorf("results of %s, want r:y and x", got)
	}
	te.observe("s", at.Add(time.Second), "y 1\nx 1\n")
	if got := te.names(at); got != "r:y" {
		t.Errorf("before the next evaluation: results of %s, want r:y", got)
	}
	te.evaluate(at.Add(time.Second))
	if got := te.names(at); got != "r:y" || !strings.Contains(te.log.String(), "a source already serves a family by the name") {
		t.Errorf("results of %s, want r:y; the log says %q", got, te.log)
	}
	te.e.Replace(group15([2]string{"y", "x"}, [2]string{"x", "y"}), at) // both are selected
	te.observe("s", at.Add(2*time.Second), "y 1\nx 1\n")
	te.e.Replace(group15([2]string{"x", "y"}, [2]string{"r:x", "x"}), at)
	te.observe("s", at.Add(3*time.Second), "y 1\nx 1\n")
	te.evaluate(at.Add(3 * time.Second))
	if got := te.names(at); got != "r:x" {
		t.Errorf("after a reload: results of %s, want r:x", got)
	}
	te.e.Replace(group15([2]string{"x", "vector(1)"}), at)
	te.observe("s", at.Add(4*time.Second), "") // no sample
	te.evaluate(at.Add(4 * time.Second))
	if got := te.names(at); got != "" {
		t.Errorf("after a reload, before a reading: results of %s, want none", got)
	}
}

// TestResultsOfTheFuture: setting the clock back does not make old results fresh, and a
// small step does not make results stale.
func TestResultsOfTheFuture(t *testing.T) {
	te := newTestEngine(t, group15([2]string{"r:x", "vector(1)"}))
	at := time.Unix(1_700_000_010, 0)
	te.evaluate(at)
	for before, want := range map[time.Duration]int{0: 1, time.Second: 1, time.Hour: 0, 24 * time.Hour: 0} {
		if got := te.results(at.Add(-before)); len(got) != want {
			t.Errorf("the clock is set back by %s: %v, want %d results", before, got, want)
		}
	}
}
