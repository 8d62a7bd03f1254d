package expose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// accounted is a source of board(); set sets the seconds in the accounts of the board and of a
// pod on it.
func accounted(name string) (f *fakeSource, set func(seconds int)) {
	s := snapshotOf(name, board())
	roster := &canonical.Roster{Devices: s.Frame.Topology.Devices, Present: 1}
	pods := &canonical.AllocationRoster{Roster: roster, Present: 1, Holders: []int{1}, Allocations: []canonical.Allocation{{Workload: canonical.Workload{Pod: "p"}}}}
	f = sourceOf(s)
	return f, func(seconds int) {
		next := *s
		account := canonical.Account{Read: true, Observed: time.Duration(seconds) * time.Second}
		account.Classes[canonical.Idle] = account.Observed
		account.Health[canonical.HealthOK] = account.Observed
		next.Ledger = canonical.Ledger{Roster: roster, AllocationRoster: pods, Devices: []canonical.Account{account}, Allocations: []canonical.Account{account}}
		f.snapshot = &next
	}
}

// TestCountersDoNotJump: the counters of a GPU in two sources continue from the values served
// last if the other source takes over, if the first comes back, and if the first leaves
// permanently. Each source by itself has its own account.
func TestCountersDoNotJump(t *testing.T) {
	one, setOne := accounted("one")
	two, setTwo := accounted("two")
	set := NewSet(one, two)
	server := serve(t, Options{Sources: set, Absent: func() *canonical.Failure { return nil }})
	for i, step := range []struct {
		one, two int // accounts; 0: cannot be read
		want     int
	}{
		{1000, 10, 1000},
		{0, 11, 1001},
		{0, 15, 1005},
		{1010, 16, 1005}, // its last seconds were served already, from the other
		{1012, 17, 1007},
		{0, 18, 1008},
		{-1, 20, 1010}, // left
	} {
		one.failure = nil
		setTwo(step.two)
		switch step.one {
		case 0:
			one.failure = refused
		case -1:
			set.Replace([]Source{two})()
		default:
			setOne(step.one)
		}
		_, body := ask(t, "GET", server.URL+"/metrics")
		want := fmt.Sprintf("%s %d", textBoard, step.want)
		if got := seriesOf(body, "kpulse_gpu_observed_seconds_total"); !slices.Equal(got, []string{want}) {
			t.Errorf("step %d: %q, want %s", i, got, want)
		}
		for family, more := range map[string]string{
			"kpulse_gpu_workload_class_seconds_total": textBoard + `,class="idle",bottleneck="idle"`,
			"kpulse_gpu_health_seconds_total":         textBoard + `,state="ok"`,
			"kpulse_allocation_seconds_total":         textBoard + `,workload_namespace="",workload_pod="p",workload_container="",workload_kind="",workload_name="",hpc_job=""`,
		} {
			if want := fmt.Sprintf("%s %d", more, step.want); !slices.Contains(seriesOf(body, family), want) {
				t.Errorf("step %d: %s is %q, want %s", i, family, seriesOf(body, family), want)
			}
		}
		_, alone := ask(t, "GET", server.URL+"/metrics?source=two")
		if want := fmt.Sprintf("%s %d", textBoard, step.two); !slices.Equal(seriesOf(alone, "kpulse_gpu_observed_seconds_total"), []string{want}) {
			t.Errorf("step %d: the second alone has not %s", i, want)
		}
	}
	if n := two.snapshot.Ledger.Devices[0].Observed; n != 20*time.Second {
		t.Errorf("the snapshot was changed to %s", n)
	}
}

// TestCountersOfAccountsThatBeginAgain: a source that took over with more than was served loses
// its account, as after a reload or when a workload returns. No counter falls below what was
// served, whether the source then serves the GPU or takes it over.
func TestCountersOfAccountsThatBeginAgain(t *testing.T) {
	one, setOne := accounted("one")
	two, setTwo := accounted("two")
	server := serve(t, Options{Sources: NewSet(one, two), Absent: func() *canonical.Failure { return nil }})
	for i, step := range []struct{ one, two, want int }{ // one of 0: cannot be read
		{100, 500, 100},
		{0, 501, 101},
		{0, 3, 104}, // began again
		{0, 5, 106},
		{200, 6, 106},
		{201, 8, 107},
		{0, 1, 108}, // began again while not served
		{0, 2, 109},
	} {
		one.failure = nil
		if setTwo(step.two); step.one == 0 {
			one.failure = refused
		} else {
			setOne(step.one)
		}
		_, body := ask(t, "GET", server.URL+"/metrics")
		want := fmt.Sprintf("%s %d", textBoard, step.want)
		if got := seriesOf(body, "kpulse_gpu_observed_seconds_total"); !slices.Equal(got, []string{want}) {
			t.Errorf("step %d: %q, want %s", i, got, want)
		}
	}
}

// TestCountersOfOverlappingScrapes: an account of a reading older than the one that another
// scrape has served did not begin again.
func TestCountersOfOverlappingScrapes(t *testing.T) {
	h := handovers{known: map[holder]*handover{}}
	begin := time.Unix(0, 0)
	for _, seconds := range []int{5, 9, 7, 10} {
		account := canonical.Account{Observed: time.Duration(seconds) * time.Second}
		one := h.take(holder{}, &canonical.Source{Name: "one", At: begin.Add(account.Observed)}, &account, begin)
		if one.offset != (canonical.Account{}) {
			t.Errorf("%d s: offset %+v", seconds, one.offset)
		}
	}
}

// TestHandoversForget: the handover of a device that is always read forgets other sources that
// had it for a while.
func TestHandoversForget(t *testing.T) {
	h := handovers{known: map[holder]*handover{}}
	account, now := canonical.Account{}, time.Unix(0, 0)
	for i := range 10 {
		now = now.Add(handoverMemory + time.Second)
		h.take(holder{}, &canonical.Source{Name: "one", At: now}, &account, now)
		h.note(holder{}, fmt.Sprint("other ", i), &account, now)
		h.follow(nil, nil, now)
	}
	if one := h.known[holder{}]; len(one.others) != 1 {
		t.Errorf("%d accounts of others are remembered, want that of the last", len(one.others))
	}
}

// TestCountsOfXIDsDoNotJump: they continue if the other source takes over, also for codes that it
// did not report.
func TestCountsOfXIDsDoNotJump(t *testing.T) {
	one, setOne := accounted("one")
	two, setTwo := accounted("two")
	server := serve(t, Options{Sources: NewSet(one, two)})
	type counts map[uint32]uint64
	told := func(f *fakeSource, of counts) {
		next := *f.snapshot
		for _, code := range slices.Sorted(maps.Keys(of)) {
			next.Ledger.XIDs = append(next.Ledger.XIDs, canonical.XIDTotal{Code: code, Total: of[code]})
		}
		f.snapshot = &next
	}
	for i, step := range []struct {
		one, two counts // nil cannot be read
		want     string
	}{
		{counts{}, counts{}, "[]"},
		{counts{31: 2, 79: 1}, counts{31: 1}, "[31:2 79:1]"},
		{nil, counts{31: 1}, "[31:2 79:1]"},
		{nil, counts{31: 2}, "[31:3 79:1]"},
		{nil, counts{31: 2, 79: 0, 94: 5}, "[31:3 79:1 94:5]"},
		{nil, counts{31: 2, 79: 1, 94: 5}, "[31:3 79:2 94:5]"},
		{counts{31: 3, 79: 1}, counts{31: 2, 79: 1, 94: 5}, "[31:3 79:2 94:5]"},
		{counts{31: 4, 79: 1}, counts{31: 2, 79: 1, 94: 5}, "[31:4 79:2 94:5]"},
	} {
		setOne(1000 + i)
		setTwo(10 + i)
		told(one, step.one)
		told(two, step.two)
		if one.failure = nil; step.one == nil {
			one.failure = refused
		}
		_, body := ask(t, "GET", server.URL+"/metrics")
		var got []string
		for _, series := range seriesOf(body, "kpulse_gpu_xid_errors_total") {
			code, total, _ := strings.Cut(strings.TrimPrefix(series, textBoard+`,xid="`), `" `)
			got = append(got, code+":"+total)
		}
		if fmt.Sprint(got) != step.want {
			t.Errorf("step %d: %v, want %s", i, got, step.want)
		}
	}
}
