package compute

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// world generates random histories: boards come, go and are cut into instances, and pods come,
// go, share and move.
type world struct {
	r           *rand.Rand
	boards      [4]worldBoard
	pods        map[string][]string // in the order in which they came, by device
	topology    *canonical.Topology
	allocations *canonical.AllocationSet
	rows        map[string][]float64
}

type worldBoard struct {
	away    bool
	cut     []worldInstance
	implied bool
}

type worldInstance struct{ id, profile string }

// cutAt returns instances of random profiles.
func (w *world) cutAt(ids ...string) (cut []worldInstance) {
	for _, id := range ids {
		cut = append(cut, worldInstance{id, []string{"1g.10gb", "3g.40gb"}[w.r.IntN(2)]})
	}
	return cut
}

func newWorld(seed uint64) *world {
	w := &world{r: rand.New(rand.NewPCG(seed, 1)), pods: map[string][]string{}, rows: map[string][]float64{}}
	w.arrange()
	return w
}

func (w *world) once(in int) bool { return w.r.IntN(in) == 0 }

// change makes some random changes. If boards is false, the boards stay as they are.
func (w *world) change(boards bool) {
	for i := range w.boards {
		b := &w.boards[i]
		switch {
		case !boards:
		case w.once(12):
			b.away = !b.away
		case w.once(20):
			b.cut = nil
			for k := range w.r.IntN(3) {
				b.cut = append(b.cut, w.cutAt(strconv.Itoa(k+w.r.IntN(2)*3))...)
			}
			b.implied = len(b.cut) > 0 && w.once(2)
		}
	}
	if boards {
		w.arrange()
	}
	for i := range w.topology.Devices {
		key := refKey(&w.topology.Devices[i])
		if w.rows[key] == nil || w.once(4) {
			row := reading{}.row()
			fillRow(w.r, row, w.once(6))
			w.rows[key] = row
		}
	}
	if w.once(3) {
		w.move()
	}
}

// arrange makes a topology of the boards if they changed, and allocations for it.
func (w *world) arrange() {
	var devices []canonical.Device
	for i, b := range w.boards {
		if b.away {
			continue
		}
		d := canonical.Device{Hostname: "n", GPU: strconv.Itoa(i), UUID: fmt.Sprint("GPU-", i), Implied: b.implied}
		if i == 3 {
			d.UUID = ""
		}
		devices = append(devices, d)
		d.Board, d.Implied = len(devices)-1, false
		for _, part := range b.cut {
			d.Instance, d.Profile = part.id, part.profile
			devices = append(devices, d)
		}
	}
	if w.topology == nil || !slices.EqualFunc(devices, w.topology.Devices, func(a, b canonical.Device) bool {
		a.Board, b.Board = 0, 0
		return a == b
	}) {
		w.topology = topology(devices...)
		w.rent()
	}
}

// move lets pods come and go.
func (w *world) move() {
	for i := range w.topology.Devices {
		key := refKey(&w.topology.Devices[i])
		pods := slices.Clone(w.pods[key])
		for range w.r.IntN(3) {
			pod := string(rune('a' + w.r.IntN(6)))
			if k := slices.Index(pods, pod); k >= 0 {
				pods = slices.Delete(pods, k, k+1)
			} else {
				pods = append(pods, pod)
			}
		}
		w.pods[key] = pods
	}
	w.rent()
}

// rent makes allocations of the pods, at most three on a device.
func (w *world) rent() {
	w.allocations = &canonical.AllocationSet{Holders: make([]int, len(w.topology.Devices))}
	for i := range w.topology.Devices {
		pods := w.pods[refKey(&w.topology.Devices[i])]
		w.allocations.Holders[i] = len(pods)
		for _, pod := range pods[:min(len(pods), 3)] {
			a := canonical.Allocation{Device: i, Workload: canonical.Workload{Pod: pod}}
			if w.once(2) { // known or not, at random in each reading
				a.Kind, a.Name = "Job", strconv.Itoa(w.r.IntN(3))
			}
			w.allocations.Allocations = append(w.allocations.Allocations, a)
		}
	}
	if len(w.allocations.Allocations) == 0 && w.once(2) {
		w.allocations = nil
	}
}

// frame is a reading of the world.
func (w *world) frame(at time.Time) *canonical.Frame {
	f := &canonical.Frame{At: at, AllocationSet: w.allocations}
	f.Shape(w.topology)
	for i := range w.topology.Devices {
		copy(f.Row(i), w.rows[refKey(&w.topology.Devices[i])])
	}
	return f
}

// TestLedgerAgainstReference plays random histories, and checks every account in every reading
// and the invariants of accounts.
func TestLedgerAgainstReference(t *testing.T) {
	remembered, charged := 0, 0
	for seed := range uint64(20) {
		w, j, ref := newWorld(seed), newJudge(t, nil), newRefLedger()
		at := start
		var verdicts []canonical.Verdict
		var memory [2]canonical.Ledger // in turns, as in a pipeline
		before := map[string]canonical.Account{}
		for n := range 300 {
			w.change(true)
			gaps := []time.Duration{0, 100 * time.Millisecond, 15 * sec, 15 * sec, 15 * sec, minute, minute, 7 * minute, 25 * minute, 61 * minute}
			gap := gaps[w.r.IntN(len(gaps))]
			dt := min(gap, 5*minute)
			at = at.Add(gap)
			f, l := w.frame(at), &memory[n%2]
			verdicts = j.Judge(f, verdicts)
			j.Account(l, f, verdicts, dt)
			ref.read(f, verdicts, dt)
			checkDevices(t, l, f, ref)
			checkAllocations(t, l, f, ref, n)
			checkNothingTakenBack(t, l, before, ref)
			remembered += len(l.Roster.Devices) - l.Roster.Present
			charged += len(l.Allocations)
			if t.Failed() {
				t.Fatalf("seed %d, reading %d", seed, n)
			}
		}
	}
	if remembered < 10_000 || charged < 10_000 {
		t.Errorf("%d remembered devices and %d allocations test too little", remembered, charged)
	}
}

// refSlack is by how much the roundings of this many readings may differ, in seconds.
func refSlack(readings int) float64 { return float64(readings+1) * 1e-9 }

func checkDevices(t *testing.T, l *canonical.Ledger, f *canonical.Frame, ref *refLedger) {
	t.Helper()
	r := l.Roster
	if r.Present != f.Len() || !slices.Equal(r.Devices[:r.Present], f.Topology.Devices) {
		t.Fatalf("roster %+v of topology %+v", r, f.Topology)
	}
	var gone []string
	for i := range r.Devices {
		d, a := &r.Devices[i], l.Devices[i]
		if i >= r.Present {
			gone = append(gone, refKey(d))
		}
		want := ref.devices[refKey(d)]
		if want == nil {
			t.Fatalf("%s: an account of what is forgotten", refKey(d))
		}
		if math.Abs(a.Utilized.Seconds()-want.utilized) > refSlack(300) {
			t.Errorf("%s: utilized %v, want %v", refKey(d), a.Utilized, want.utilized)
		}
		utilized := a.Utilized
		a.Utilized = 0
		if !a.XIDChanged.Equal(want.XIDChanged) {
			t.Errorf("%s: XID changed at %v, want %v", refKey(d), a.XIDChanged, want.XIDChanged)
		}
		a.XIDChanged = want.XIDChanged
		if a = timeOnly(a); a != want.Account {
			t.Errorf("%s: account\n%+v, want\n%+v", refKey(d), a, want.Account)
		}
		if classes := sum(a.Classes[:]); classes != a.Observed {
			t.Errorf("%s: observed %v, but classes %v", refKey(d), a.Observed, classes)
		}
		if health := sum(a.Health[:]); !d.IsInstance() && health != a.Observed || d.IsInstance() && health != 0 {
			t.Errorf("%s: observed %v, but health %v", refKey(d), a.Observed, health)
		}
		if utilized > a.Known || a.Known > a.Observed {
			t.Errorf("%s: utilized %v of %v of %v", refKey(d), utilized, a.Known, a.Observed)
		}
	}
	if want := ref.gone(); !slices.Equal(gone, want) {
		t.Errorf("remembers %v, want %v", gone, want)
	}
}

func checkAllocations(t *testing.T, l *canonical.Ledger, f *canonical.Frame, ref *refLedger, readings int) {
	t.Helper()
	list := l.AllocationRoster
	var present []canonical.Allocation
	if f.AllocationSet != nil {
		present = f.AllocationSet.Allocations
	}
	if list.Roster != l.Roster || list.Present != len(present) || !slices.EqualFunc(list.Allocations[:list.Present], present, func(a, b canonical.Allocation) bool {
		return a.Device == b.Device && a.Workload == b.Workload
	}) {
		t.Fatalf("list %+v, allocations %+v", list, f.AllocationSet)
	}
	for i, n := range list.Holders {
		if f.AllocationSet == nil && n != 0 || f.AllocationSet != nil && n != f.AllocationSet.Holders[i] {
			t.Errorf("holders %v", list.Holders)
		}
	}
	if len(list.Allocations) != len(ref.allocations) || len(list.Holders) != f.Len() {
		t.Errorf("%d allocations and %d holders, want %d and %d", len(list.Allocations), len(list.Holders), len(ref.allocations), f.Len())
	}
	for i, a := range list.Allocations {
		key := refAllocationKey(&l.Roster.Devices[a.Device], a.Workload, a.Kind, a.Name)
		got, want := &l.Allocations[i], ref.allocations[key]
		if want == nil {
			t.Fatalf("%s: an account of what is forgotten", key)
		}
		if a.Kind != want.kind || a.Name != want.name {
			t.Errorf("%s: described as %s %s, want %s %s", key, a.Kind, a.Name, want.kind, want.name)
		}
		// Each share of a split time may be off by a microsecond.
		slack := time.Duration(readings+1) * time.Microsecond
		if !apartAtMost(got.Observed, want.Observed, slack) || !apartAtMost(got.Known, want.Known, slack) ||
			!apartAtMost(got.Utilized, time.Duration(want.utilized*1e9), slack) {
			t.Errorf("%s: account %+v, want %+v", key, got, want)
		}
		if sum(got.Classes[:]) != got.Observed || sum(got.Health[:]) != 0 || got.Utilized > got.Known || got.Known > got.Observed {
			t.Errorf("%s: account %+v", key, got)
		}
		for c := range got.Classes {
			if !apartAtMost(got.Classes[c], want.Classes[c], slack) {
				t.Errorf("%s: %v %v, want %v", key, canonical.Class(c), got.Classes[c], want.Classes[c])
			}
		}
	}
}

// checkNothingTakenBack checks that no account decreased, unless it was forgotten meanwhile.
func checkNothingTakenBack(t *testing.T, l *canonical.Ledger, before map[string]canonical.Account, ref *refLedger) {
	t.Helper()
	check := func(key string, a canonical.Account, born bool) {
		b := before[key]
		ok := a.Observed >= b.Observed && a.Known >= b.Known && a.Utilized >= b.Utilized && a.XIDChanges >= b.XIDChanges && a.Microjoules >= b.Microjoules && (a.Metered || !b.Metered)
		for i := range a.Classes {
			ok = ok && a.Classes[i] >= b.Classes[i]
		}
		for i := range a.Health {
			ok = ok && a.Health[i] >= b.Health[i]
		}
		if !ok && !born {
			t.Errorf("%s: from %+v\nto %+v", key, b, a)
		}
		before[key] = a
	}
	for i := range l.Roster.Devices {
		key := refKey(&l.Roster.Devices[i])
		check(key, l.Devices[i], ref.devices[key].Observed == 0)
	}
	for i, a := range l.AllocationRoster.Allocations {
		key := refAllocationKey(&l.Roster.Devices[a.Device], a.Workload, a.Kind, a.Name)
		check(key, l.Allocations[i], ref.allocations[key].Observed == 0)
	}
}

func sum(d []time.Duration) (total time.Duration) {
	for _, d := range d {
		total += d
	}
	return total
}

func apartAtMost(a, b, slack time.Duration) bool { return (a - b).Abs() <= slack }

// TestAllocationsShareObservedTime: if no holder is left out or forgotten, the holders of a
// device together get exactly its observed time while it was held.
func TestAllocationsShareObservedTime(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		b := newAccounts(t, nil)
		b.devices(gpu1)
		var pods []string
		var allocated, observed time.Duration
		b.read(0, 0, heavy)
		for range 200 {
			dt := time.Duration(r.IntN(2_000_000)) * time.Microsecond
			observed += dt
			if len(pods) > 0 {
				allocated += dt
			}
			for range r.IntN(3) {
				pod := string(rune('a' + r.IntN(7)))
				if k := slices.Index(pods, pod); k >= 0 {
					pods = slices.Delete(slices.Clone(pods), k, k+1)
				} else {
					pods = append(slices.Clone(pods), pod)
				}
			}
			b.hold(pods)
			b.read(dt, dt, heavy)
			var shares time.Duration
			for _, a := range b.ledger.Allocations {
				shares += a.Observed
			}
			if device := b.of("GPU-1", "").Observed; shares != allocated || device != observed {
				t.Fatalf("seed %d: holders have %v of %v, want %v of %v", seed, shares, device, allocated, observed)
			}
		}
	}
}
