package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/rules"
)

// lease counts its releases.
type lease struct{ released int }

func (h *lease) Release() { h.released++ }

// publish passes a reading of source s to the engine, as a pipeline does.
func (te *testEngine) publish(page string) (used bool, h *lease) {
	h = &lease{}
	snap := &canonical.Snapshot{Valid: [][]byte{[]byte(page)}, Source: canonical.Source{Name: "s", At: time.Now()}}
	return te.e.Observe(snap, h), h
}

// started runs an engine in a synctest bubble until the test ends. The clock starts at a
// whole minute.
func started(t *testing.T, groups []rules.Group, serves func(string) bool) *testEngine {
	te := newTestEngine(t, nil)
	if serves != nil {
		te.e.opts.Serves = serves
	}
	te.e.Replace(groups, time.Now())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		te.e.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return te
}

// value returns the only result now, NaN if there is none.
func (te *testEngine) value() float64 {
	te.t.Helper()
	results := te.results(time.Now())
	if len(results) > 1 {
		te.t.Errorf("results %v, want one", results)
	}
	for _, v := range results {
		return v
	}
	return math.NaN()
}

func TestGroupsAreEvaluatedAtMultiplesOfTheirInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := group15([2]string{"r:x", "x"})
		groups[0].Interval = 10 * time.Second
		te := started(t, groups, nil)
		time.Sleep(3 * time.Second)
		for second := 3; second < 40; second += 2 {
			if used, _ := te.publish(fmt.Sprintf("x %d\n", second)); !used {
				t.Errorf("the reading at %d s was not used", second)
			}
			synctest.Wait()
			want := math.NaN()
			if n := second / 10 * 10; n > 0 {
				want = float64(n - 1) // the last reading before
			}
			if got := te.value(); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("at %d s the result is %v, want %v", second, got, want)
			}
			time.Sleep(2 * time.Second)
		}
		if got := gathered(t, te.e)["kpulse_proxy_rule_evaluations_total"]; got != 4 {
			t.Errorf("%v evaluations, want those at 10, 20, 30 and 40 s", got)
		}
	})
}

func TestReadingsAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		te := started(t, group15([2]string{"r:x", "x"}), nil)
		used, first := te.publish("x 1\n")
		time.Sleep(100 * time.Millisecond)
		again, second := te.publish("x 1\n")
		if !used || again {
			t.Errorf("used are %v and %v, want one a second", used, again)
		}
		synctest.Wait()
		if first.released != 1 || second.released != 0 {
			t.Errorf("released %d and %d times, want 1 and 0", first.released, second.released)
		}
	})
}

func TestWithoutRulesNothingIsTaken(t *testing.T) {
	te := newTestEngine(t, nil)
	snap := &canonical.Snapshot{Source: canonical.Source{Name: "s", At: time.Now()}}
	if n := testing.AllocsPerRun(100, func() {
		if te.e.Observe(snap, &lease{}) {
			t.Error("a reading was used")
		}
	}); n > 1 { // the lease itself
		t.Errorf("%v allocations", n)
	}
}

// TestWhatIsNotServedIsNotSeen: rules see no series after a failed read, nor of a silent
// stream.
func TestWhatIsNotServedIsNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		groups := group15([2]string{"r:x", "x"})
		groups[0].Interval = time.Second
		te := started(t, groups, func(string) bool { return !silent.Load() })
		step := func(want float64) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			if got := te.value(); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("the result is %v, want %v", got, want)
			}
		}
		time.Sleep(300 * time.Millisecond)
		te.publish("x 1\n")
		step(1)
		step(1) // seen until it is replaced
		te.e.Failed("s", time.Now())
		step(math.NaN())
		te.publish("x 2\n") // immediately after the failure
		step(2)
		silent.Store(true)
		step(math.NaN())
		silent.Store(false)
		step(math.NaN())
		te.publish("x 3\n")
		step(3)
		te.publish("y 3\n") // gone from the page
		step(math.NaN())
	})
}

// TestResultsGrowOld: results that nothing replaces are not served for long.
func TestResultsGrowOld(t *testing.T) {
	te := newTestEngine(t, group15([2]string{"r:x", "vector(7)"}))
	at := time.Unix(1_700_000_000, 0)
	te.evaluate(at)
	for after, want := range map[time.Duration]int{0: 1, 31 * time.Second: 1, 32 * time.Second: 0} {
		if got := len(te.results(at.Add(after))); got != want {
			t.Errorf("%d results after %s, want %d", got, after, want)
		}
	}
	if page := te.page(at.Add(time.Minute)); page != "" {
		t.Errorf("served is\n%s", page)
	}
}

// TestFailedRulesHaveNoResults: results of a failed rule are neither served nor seen by
// other rules.
func TestFailedRulesHaveNoResults(t *testing.T) {
	groups := group15(
		[2]string{"r:twice", "x"}, // fails with two GPUs, since the label below makes them alike
		[2]string{"r:of", "r:twice"},
		[2]string{"r:many", "x"}, // fails with three
		[2]string{"r:good", "count(x)"},
	)
	groups[0].Limit = 2
	groups[0].Rules[0].Labels = map[string]string{"gpu": "all"}
	te := newTestEngine(t, groups)
	at := time.Unix(1_700_000_000, 0)
	for i, want := range []string{"r:good r:many r:of r:twice", "r:good r:many r:many", "r:good", "r:good r:many r:of r:twice"} {
		pages := []string{"x{gpu=\"0\"} 1\n", "x{gpu=\"0\"} 1\nx{gpu=\"1\"} 1\n", "x{gpu=\"0\"} 1\nx{gpu=\"1\"} 1\nx{gpu=\"2\"} 1\n", "x{gpu=\"0\"} 1\n"}
		te.observe("s", at, pages[i])
		at = at.Add(time.Second)
		te.evaluate(at)
		if got := te.names(at); got != want {
			t.Errorf("with %d GPUs there are %s, want %s", strings.Count(pages[i], "x{"), got, want)
		}
	}
	if got := gathered(t, te.e)["kpulse_proxy_rule_evaluation_failures_total"]; got != 3 {
		t.Errorf("%v failures are counted, want 3", got)
	}
	for _, want := range []string{"two results have the same labels", "3 results, but only 2 are allowed", "can be evaluated again"} {
		if !strings.Contains(te.log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, te.log)
		}
	}
	if n := strings.Count(te.log.String(), "cannot be evaluated"); n != 2 {
		t.Errorf("%d failures are logged, want the first in a row of each rule", n)
	}
}

// TestLabelNamesOfTheFormat: a rule may not return a label name that older servers refuse.
func TestLabelNamesOfTheFormat(t *testing.T) {
	te := newTestEngine(t, group15([2]string{"r:bad", `label_replace(x, "a.b", "c", "", "")`}, [2]string{"r:good", "x"}))
	at := time.Unix(1_700_000_000, 0)
	te.observe("s", at, "x 1\n")
	te.evaluate(at)
	if got := te.names(at); got != "r:good" || !strings.Contains(te.log.String(), "a label name that the text format does not allow") {
		t.Errorf("there are %s; the log says\n%s", got, te.log)
	}
}

// names returns the names of the results, sorted.
func (te *testEngine) names(at time.Time) string {
	var names []string
	for line := range strings.Lines(te.page(at)) {
		if name, _, _ := strings.Cut(line, "{"); !strings.HasPrefix(line, "#") {
			names = append(names, strings.Fields(name)[0])
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestRulesOfOneName: results of rules with one name are in one block, and if several have
// a series, the first is served.
func TestRulesOfOneName(t *testing.T) {
	te := newTestEngine(t, group15([2]string{"r:x", "vector(1)"}, [2]string{"r:y", "vector(2)"}, [2]string{"r:x", `label_replace(vector(3), "a", "\"\\", "", "") or vector(4)`}, [2]string{"r:sum", "sum(r:x)"}))
	at := time.Unix(1_700_000_000, 0)
	te.evaluate(at)
	const want = `# HELP r:x Recorded by the rule group g.
# TYPE r:x untyped
r:x{by="us"} 1
r:x{a="\"\\",by="us"} 3
# HELP r:y Recorded by the rule group g.
# TYPE r:y untyped
r:y{by="us"} 2
# HELP r:sum Recorded by the rule group g.
# TYPE r:sum untyped
r:sum{by="us"} 4
`
	if got := te.page(at); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestMissedIterations: if an evaluation takes longer than the interval, the next is for
// the latest instant, and the skipped ones are counted.
func TestMissedIterations(t *testing.T) {
	groups := group15([2]string{"r:now", "vector(time())"})
	groups[0].Interval = 10 * time.Second
	te := newTestEngine(t, nil)
	at := time.Unix(1_700_000_000, 0)
	te.e.Replace(groups, at)
	te.e.step(t.Context(), at.Add(45*time.Second))
	if got := te.results(at.Add(45 * time.Second))[`{__name__="r:now", by="us"}`]; got != 1_700_000_040 {
		t.Errorf("evaluated at %v, want 1700000040", got)
	}
	if got := gathered(t, te.e)["kpulse_proxy_rule_group_iterations_missed_total"]; got != 3 {
		t.Errorf("%v iterations are missed, want 3", got)
	}
}

// TestReplaceKeepsWhatStays: Replace keeps the samples of series that are still selected,
// and the results of unchanged groups.
func TestReplaceKeepsWhatStays(t *testing.T) {
	kept := group15([2]string{"r:kept", "count_over_time(x[1m])"})
	other := group15([2]string{"r:other", "y"})
	other[0].Name = "other"
	te := newTestEngine(t, append(kept, other...))
	at := time.Unix(1_700_000_000, 0)
	for range 3 {
		te.observe("s", at, "x 1\ny 2\n")
		at = at.Add(time.Second)
	}
	te.evaluate(at)
	third := group15([2]string{"r:third", "z or r:other"})
	third[0].Name = "third"
	moved := group15([2]string{"r:kept", "count_over_time(x[1m])"})
	moved[0].Rules[0].Line = 77
	te.e.Replace(append(moved, third...), at)
	if got := te.names(at); got != "r:kept" {
		t.Errorf("served are %q, want r:kept", got)
	}
	te.observe("s", at, "x 1\ny 2\nz 5\n")
	results := te.evaluate(at)
	if results[`{__name__="r:kept", by="us"}`] != 4 || results[`{__name__="r:third", by="us"}`] != 5 || len(results) != 2 {
		t.Errorf("results %v, want r:kept 4 and r:third 5", results)
	}
	m := gathered(t, te.e)
	if m["kpulse_proxy_rule_store_series"] != 2 || m["kpulse_proxy_rule_store_samples"] != 5 {
		t.Errorf("%v series with %v samples are kept, want 2 with 5", m["kpulse_proxy_rule_store_series"], m["kpulse_proxy_rule_store_samples"])
	}
	if !slices.Contains(te.lines(), "77") {
		t.Errorf("the telemetry knows lines %v, want 77 among them", te.lines())
	}
}

// lines returns the lines of the rules that the telemetry names.
func (te *testEngine) lines() (lines []string) {
	for _, g := range *te.e.groups.Load() {
		for _, r := range g.rules {
			lines = append(lines, fmt.Sprint(r.Line))
		}
	}
	return lines
}
