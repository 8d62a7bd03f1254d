package compute

import (
	"slices"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// segment is a stretch of time in which nothing changes.
type segment struct {
	end         time.Duration
	rows        [][]float64
	allocations *canonical.AllocationSet // from the end of the previous segment on
}

// TestPartition reads one history of piecewise constant input in many ways: at the ends of its
// segments, at random times as well, in ticks, and twice each. All give the same totals.
func TestPartition(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(seed)
		for i := range w.boards {
			w.boards[i] = worldBoard{cut: w.cutAt([]string{"1", "2"}[:w.r.IntN(3)]...)}
		}
		w.topology = nil
		w.arrange()
		var history []segment
		for end := time.Duration(0); len(history) < 40; {
			end += time.Duration(1+w.r.IntN(100)) * 100 * time.Millisecond
			w.change(false)
			s := segment{end: end, allocations: w.allocations}
			for i := range w.topology.Devices {
				row := slices.Clone(w.rows[refKey(&w.topology.Devices[i])])
				for _, f := range rising { // a condition held from a reading depends on its time
					row[f.field] = absent
				}
				row[canonical.XIDLast] = absent
				s.rows = append(s.rows, row)
			}
			history = append(history, s)
		}
		end := history[len(history)-1].end
		var ends, ticks, random []time.Duration
		for _, s := range history {
			ends = append(ends, s.end)
		}
		for at := time.Duration(0); at < end; at += 100 * time.Millisecond {
			ticks = append(ticks, at)
		}
		for range 500 {
			random = append(random, time.Duration(w.r.Int64N(int64(end/time.Microsecond)))*time.Microsecond)
		}
		want := playHistory(t, w, history, ends)
		for name, times := range map[string][]time.Duration{
			"ticks": append(ticks, ends...), "random": append(random, ends...), "twice": append(slices.Clone(ends), ends...),
		} {
			got := playHistory(t, w, history, times)
			if len(got.Devices) != len(want.Devices) || !slices.Equal(got.AllocationRoster.Allocations, want.AllocationRoster.Allocations) {
				t.Fatalf("seed %d, %s: other devices or allocations", seed, name)
			}
			compareTotals(t, name, got.Devices, want.Devices, len(times))
			compareTotals(t, name, got.Allocations, want.Allocations, len(times))
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// compareTotals wants the same times in both; utilized seconds may differ by one rounding per
// reading.
func compareTotals(t *testing.T, name string, got, want []canonical.Account, readings int) {
	t.Helper()
	for i := range got {
		a, b := got[i], want[i]
		if !apartAtMost(a.Utilized, b.Utilized, time.Duration(readings)) {
			t.Errorf("%s: %d: utilized %v, want %v", name, i, a.Utilized, b.Utilized)
		}
		a.Utilized, b.Utilized = 0, 0
		if a, b = timeOnly(a), timeOnly(b); a != b {
			t.Errorf("%s: %d: account\n%+v, want\n%+v", name, i, a, b)
		}
	}
}

// playHistory reads a history at 0 and at the given times. At the end of a segment it reads that
// segment's values, and the holders of the next.
func playHistory(t *testing.T, w *world, history []segment, times []time.Duration) canonical.Ledger {
	j := newJudge(t, func(o *Options) {
		for i, c := range conditions { // those that depend on the number of readings
			if slices.Contains([]Test{AnyBit, LinksDown, Fabric, ProfilingStalled}, c.Test) {
				o.States[i] = 0
			}
		}
	})
	times = append([]time.Duration{0}, times...)
	slices.Sort(times)
	var l canonical.Ledger
	var verdicts []canonical.Verdict
	before := time.Duration(0)
	for _, at := range times {
		values := slices.IndexFunc(history, func(s segment) bool { return at <= s.end })
		holders := slices.IndexFunc(history, func(s segment) bool { return at < s.end })
		f := &canonical.Frame{At: start.Add(at)}
		if holders >= 0 {
			f.AllocationSet = history[holders].allocations
		}
		f.Shape(w.topology)
		for i, row := range history[values].rows {
			copy(f.Row(i), row)
		}
		verdicts = j.Judge(f, verdicts)
		j.Account(&l, f, verdicts, at-before)
		before = at
	}
	return l
}
