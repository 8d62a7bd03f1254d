package compute

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute/computetest"
	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// counted returns a count of the board at index 0.
func counted(w canonical.Witness, code uint32, n uint64) canonical.XIDCount {
	return canonical.XIDCount{Witness: w, Code: code, Count: n}
}

// TestXIDsAgainstReference reports a board's errors through several witnesses, with counts that
// lag by up to three readings, over resets and recovery actions.
func TestXIDsAgainstReference(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 3))
	witnesses := []canonical.Witness{canonical.WitnessTotal, canonical.WitnessDriver, canonical.WitnessKernel}
	codes := []uint32{13, 31, 43, 45, 48, 63, 74, 79, 94, 95, 119, 154}
	var raised [2]int
	rounds := slow.Rounds(30, 100)
	for range rounds {
		j, top := newJudge(t, nil), topology(canonical.Device{GPU: "0", UUID: "GPU-0"})
		told := slices.Clone(witnesses)[r.IntN(3):]
		var history []computetest.Reading
		var truth []map[uint32]uint64
		energy, recovery := 1000., 0.
		var v []canonical.Verdict
		var l canonical.Ledger
		for i := range 60 {
			now := map[uint32]uint64{}
			if i > 0 {
				for c, n := range truth[i-1] {
					now[c] = n
				}
			}
			if i > 0 && i < 50 && r.IntN(6) == 0 {
				now[codes[r.IntN(len(codes))]] += uint64(1 + r.IntN(3))
			}
			truth = append(truth, now)
			if energy++; r.IntN(25) == 0 {
				energy = 0
			}
			if r.IntN(10) == 0 {
				recovery = float64(r.IntN(2))
			}
			f := frame(top, start.Add(time.Duration(i)*15*time.Second), reading{canonical.Energy: energy, canonical.RecoveryAction: recovery})
			for _, w := range told {
				lag := min(i, r.IntN(4))
				if i >= 50 {
					lag = 0
				}
				f.XIDs = append(f.XIDs, appendCounts(nil, w, truth[max(i-lag, latest(history, w, truth))])...)
			}
			history = append(history, computetest.Reading{At: f.At, Row: f.Row(0), XIDs: f.XIDs})
			v = j.Judge(f, v)
			j.Account(&l, f, v, 0)
			if i%6 != 5 { // the reference is slow
				continue
			}
			want := computetest.XIDs(history)
			fatal, recent := v[0].Findings.Of(canonical.CondXIDFatal) == canonical.Raised, v[0].Findings.Of(canonical.CondXIDRecent) == canonical.Raised
			if fatal != (len(want.Fatal) > 0) || recent != (len(want.Warned) > 0) {
				t.Fatalf("reading %d: fatal %v, recent %v, want %+v", i, fatal, recent, want)
			}
			raised[0], raised[1] = raised[0]+int(indicator(fatal)), raised[1]+int(indicator(recent))
		}
		for _, x := range l.XIDs {
			if want := computetest.Totals(history)[int(x.Code)]; x.Total != uint64(want) || x.Total != truth[59][x.Code] {
				t.Fatalf("XID %d came %d times, want %d, in truth %d", x.Code, x.Total, want, truth[59][x.Code])
			}
		}
	}
	if min(raised[0], raised[1]) < 2*rounds {
		t.Errorf("fatal and recent were raised %v times, want %d each", raised, 2*rounds)
	}
}

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func appendCounts(dst []canonical.XIDCount, w canonical.Witness, counts map[uint32]uint64) []canonical.XIDCount {
	dst = append(dst, counted(w, 0, 0))
	for code, n := range counts {
		dst = append(dst, counted(w, code, n))
	}
	return dst
}

// latest returns the index of the truth that a witness reported in the latest reading: it never
// goes back before that.
func latest(history []computetest.Reading, w canonical.Witness, truth []map[uint32]uint64) int {
	if len(history) == 0 {
		return 0
	}
	told := map[uint32]uint64{}
	for _, x := range history[len(history)-1].XIDs {
		if x.Witness == w && x.Code != 0 {
			told[x.Code] = x.Count
		}
	}
	return slices.IndexFunc(truth, func(m map[uint32]uint64) bool { return reflect.DeepEqual(m, told) })
}

// TestXIDTotals plays counts of one code, and checks the total.
func TestXIDTotals(t *testing.T) {
	const total, window, driver, kernel = canonical.WitnessTotal, canonical.WitnessWindow, canonical.WitnessDriver, canonical.WitnessKernel
	type step struct {
		at     time.Duration
		counts []canonical.XIDCount
		want   int // -1 for no series
	}
	one := func(w canonical.Witness, n uint64) []canonical.XIDCount {
		return []canonical.XIDCount{counted(w, 13, n)}
	}
	none := func(w canonical.Witness) []canonical.XIDCount { return []canonical.XIDCount{counted(w, 0, 0)} }
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"born at 0 for a minute", []step{{0, none(total), -1}, {15 * sec, one(total, 2), 0}, {74 * sec, one(total, 2), 0}, {75 * sec, one(total, 2), 2}, {80 * sec, one(total, 3), 3}}},
		{"earlier errors are not counted", []step{{0, one(total, 7), 0}, {2 * minute, one(total, 8), 1}}},
		{"except by the driver, which counts since our start", []step{{0, one(driver, 2), 0}, {2 * minute, one(driver, 2), 2}}},
		{"a total restarts", []step{{0, one(total, 7), 0}, {2 * minute, one(total, 2), 2}, {3 * minute, none(total), 2}, {4 * minute, one(total, 2), 4}}},
		{"errors leave a window", []step{{0, one(window, 0), -1}, {15 * sec, one(window, 3), 0}, {2 * minute, one(window, 1), 3}, {3 * minute, one(window, 2), 4}, {9 * minute, none(window), 4}, {10 * minute, one(window, 2), 6}}},
		{"a count without a code", []step{{0, []canonical.XIDCount{counted(total, 0, 3)}, -1}, {15 * sec, []canonical.XIDCount{counted(total, 0, 5)}, -1}}},
		{"the least code", []step{{0, none(driver), -1}, {15 * sec, []canonical.XIDCount{counted(driver, 1, 2)}, 0}, {2 * minute, []canonical.XIDCount{counted(driver, 1, 2)}, 2}}},
		{"no witness for a while", []step{{0, none(total), -1}, {minute, one(total, 1), 0}, {2 * minute, nil, 1}, {3 * minute, one(total, 1), 1}}},
		{"two witnesses of one error", []step{
			{0, append(none(total), none(kernel)...), -1}, {minute, append(one(total, 0), one(kernel, 2)...), 0}, {2 * minute, append(one(total, 2), one(kernel, 2)...), 2},
			{3 * minute, append(one(total, 3), one(kernel, 2)...), 3}, {4 * minute, append(one(total, 3), one(kernel, 3)...), 3},
		}},
		{"errors that one never reported hide no others", []step{
			{0, append(none(total), none(kernel)...), -1}, {minute, append(one(total, 0), one(kernel, 9)...), 0}, {20 * minute, append(one(total, 1), one(kernel, 9)...), 10},
		}},
	} {
		j, top := newJudge(t, nil), topology(canonical.Device{GPU: "0", UUID: "GPU-0"})
		var l canonical.Ledger
		for i, s := range c.steps {
			f := frame(top, start.Add(s.at), reading{})
			f.XIDs = s.counts
			j.Account(&l, f, j.Judge(f, nil), 0)
			got := -1
			for _, x := range l.XIDs {
				got = int(x.Total)
			}
			if got != s.want {
				t.Errorf("%s: step %d: %d, want %d", c.name, i, got, s.want)
			}
		}
	}
}

// TestXIDEvents checks Events against what happened.
func TestXIDEvents(t *testing.T) {
	j, top := newJudge(t, nil), topology(canonical.Device{Hostname: "n", GPU: "0", UUID: "GPU-0", PCIBusID: "00000000:1A:00.0"})
	var v []canonical.Verdict
	judge := func(after time.Duration, r reading, records ...canonical.XIDEvent) (list []string) {
		f := frame(top, start.Add(after), r)
		f.XIDEvents = records
		v = j.Judge(f, v)
		for _, e := range j.Events(nil) {
			if e.UUID != "GPU-0" || e.Hostname != "n" || e.GPU != "0" || e.PCIBusID == "" || e.At.IsZero() {
				t.Errorf("%+v has no board, or no time", e)
			}
			switch e.Kind {
			case canonical.EventXID:
				list = append(list, fmt.Sprintf("%d× %v %v %s %s", e.Count, e.Severity, e.Action, e.Text, e.Process))
			case canonical.EventRaised, canonical.EventCleared:
				list = append(list, string(e.Kind)+" "+e.Condition.String()+" "+e.State.String()+" "+e.Action.String())
			default:
				list = append(list, string(e.Kind)+" "+e.Text)
			}
		}
		return list
	}
	want := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
	}
	hot := reading{canonical.Temperature: 99, canonical.Energy: 1000}
	want(judge(0, hot), "raised gpu_temperature hot check_hardware")
	want(judge(1, hot))
	cool := reading{canonical.Temperature: 50, canonical.Energy: 1000}
	want(judge(sec, cool, canonical.XIDEvent{Code: 79, Count: 1, Text: "lost", PID: 7, Process: "train"}),
		"1× fatal reboot_node lost train", "cleared gpu_temperature hot none", "raised xid_fatal crit reboot_node")
	want(judge(2*sec, cool.with(canonical.XIDLast, 79.))) // already reported
	want(judge(3*sec, reading{canonical.Temperature: 50}))
	if j.Resolve("GPU-1") || !j.Resolve("GPU-0") || j.Resolve("GPU-0") {
		t.Error("GPU-0 alone had something to resolve, once")
	}
	want(judge(4*sec, cool.with(canonical.XIDLast, 79.)), "resolved "+resolvedByOperator, "cleared xid_fatal crit none")
	want(judge(5*sec, cool.with(canonical.Energy, 0.)))
	want(judge(5*sec+1, cool.with(canonical.Energy, 1.)), "reset "+resolvedByEnergy)
	want(judge(6*sec, cool, canonical.XIDEvent{Code: 45, Count: 40}, canonical.XIDEvent{Code: 45}), "40× sympathetic none  ", "1× sympathetic none  ")
	want(judge(7*sec, cool.with(canonical.MemoryBanksNone, 1.)), "raised memory_worn warn check_hardware")
	j = newJudge(t, nil)
	fatal := cool.with(canonical.XIDLast, 79.)
	want(judge(0, fatal), "0× fatal reboot_node it was there at the first reading ", "raised xid_fatal crit reboot_node")
	j.Resolve("GPU-0") // just before a reload
	next := newJudge(t, nil)
	next.Resume(j)
	j = next
	want(judge(sec, fatal), "resolved "+resolvedByOperator, "cleared xid_fatal crit none")
}

// TestRecordsOfUnknownBoards: a record of a board that was never read is an event if the source
// names the board.
func TestRecordsOfUnknownBoards(t *testing.T) {
	top := topology(gpu1)
	top.Absent = []canonical.Device{gpu2}
	for _, c := range []struct {
		topology *canonical.Topology
		device   int
		uuid     string // of the event, "" for none
	}{{top, 0, "GPU-1"}, {top, 1, "GPU-2"}, {top, 2, ""}, {top, -1, ""}, {nil, 0, ""}} {
		j := newJudge(t, nil)
		f := &canonical.Frame{At: start, XIDEvents: []canonical.XIDEvent{{Device: c.device, Code: 45, Count: 2}}}
		if c.topology != nil {
			f = frame(c.topology, start)
			f.XIDEvents = []canonical.XIDEvent{{Device: c.device, Code: 45, Count: 2}}
		}
		j.Judge(f, nil)
		uuid := ""
		for _, e := range j.Events(nil) {
			if uuid = e.UUID; e.Kind != canonical.EventXID || e.Count != 2 {
				t.Errorf("device %d: %+v", c.device, e)
			}
		}
		if uuid != c.uuid {
			t.Errorf("device %d: an event of %q, want %q", c.device, uuid, c.uuid)
		}
	}
}

// TestXIDClockSetBack: after the clock is set back, nothing is held longer than from the new
// time.
func TestXIDClockSetBack(t *testing.T) {
	j, top := newJudge(t, func(o *Options) { o.XIDHold = time.Hour }), topology(canonical.Device{GPU: "0", UUID: "GPU-0"})
	for i, s := range []struct {
		at   time.Duration
		code float64
		want canonical.Finding
	}{
		{100 * time.Hour, 0, canonical.Clear}, {100*time.Hour + 1, 48, canonical.Raised}, {0, 45, canonical.Raised},
		{time.Hour, 45, canonical.Raised}, {time.Hour + 1, 45, canonical.NotRead}, // nothing resolved it
	} {
		v := j.Judge(frame(top, start.Add(s.at), reading{canonical.XIDLast: s.code}), nil)
		if got := v[0].Findings.Of(canonical.CondXIDFatal); got != s.want {
			t.Errorf("step %d: %v, want %v", i, got, s.want)
		}
	}
}

// TestXIDsAreBounded: whatever a board reports, it has at most some hundred codes, those of the
// table among them, and a flood allocates nothing.
func TestXIDsAreBounded(t *testing.T) {
	j, top := newJudge(t, nil), topology(canonical.Device{GPU: "0", UUID: "GPU-0"})
	f := frame(top, start, reading{})
	for code := uint32(1000); code < 20000; code++ {
		f.XIDEvents = append(f.XIDEvents, canonical.XIDEvent{Code: code, Count: 1})
	}
	f.XIDEvents = append(f.XIDEvents, canonical.XIDEvent{Code: 1 << 30, Count: 1}, canonical.XIDEvent{Code: 79, Count: 1}, canonical.XIDEvent{Device: 9, Code: 79}, canonical.XIDEvent{Device: -1, Code: 79})
	v := j.Judge(f, nil)
	var l canonical.Ledger
	j.Account(&l, f, v, 0)
	if n := len(l.XIDs); n > mostXIDs+len(canonical.XIDs()) || v[0].Action != canonical.ActionRebootNode {
		t.Errorf("%d codes, action %v", n, v[0].Action)
	}
	flood := frame(top, start, reading{})
	flood.XIDEvents = []canonical.XIDEvent{{Code: 95, Count: 400_000}, {Code: 45, Count: 1}, {Code: 13, Count: 9}}
	flood.XIDs = []canonical.XIDCount{counted(canonical.WitnessTotal, 95, 1)}
	var events []canonical.Event
	step := func() {
		flood.At = flood.At.Add(sec)
		flood.XIDs[0].Count += 400_000
		v = j.Judge(flood, v)
		j.Account(&l, flood, v, 0)
		events = j.Events(events[:0])
	}
	step()
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("a reading of a flood makes %v allocations", n)
	}
}

func TestRecoveryActionOf(t *testing.T) {
	for v, want := range map[float64]canonical.Action{
		absent: canonical.ActionNone, 0: canonical.ActionNone, 1: canonical.ActionResetGPU, 2: canonical.ActionRebootNode,
		3: canonical.ActionRestartApplication, 4: canonical.ActionResetGPU, 5: canonical.ActionCheckHardware, 6: canonical.ActionCheckHardware,
	} {
		if got := recoveryActionOf(v); got != want {
			t.Errorf("%v asks for %v, want %v", v, got, want)
		}
	}
}
