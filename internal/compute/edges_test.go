package compute

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestOptionsAtTheirBounds: the documented least and greatest values of an option are accepted,
// and values just beyond them are not.
func TestOptionsAtTheirBounds(t *testing.T) {
	for n, c := range []struct {
		good bool
		set  func(*Options)
	}{
		{true, func(o *Options) { o.MinCoverage = 0 }},
		{true, func(o *Options) { o.MinCoverage = 1 }},
		{false, func(o *Options) { o.MinCoverage = math.Nextafter(1, 2) }},
		{true, func(o *Options) { o.Missing = Zero }},
		{false, func(o *Options) { o.Missing = numMissing }},
		{true, func(o *Options) { o.Birth = time.Second }},
		{false, func(o *Options) { o.Birth = time.Second - 1 }},
		{true, func(o *Options) { o.Birth = 5 * time.Minute }},
		{false, func(o *Options) { o.Birth = 5*time.Minute + 1 }},
		{true, func(o *Options) { o.XIDHold = 1 }},
		{false, func(o *Options) { o.XIDHold = 0 }},
		{true, func(o *Options) { o.Thresholds.RiseHold = 1 }},
		{false, func(o *Options) { o.Thresholds.RiseHold = 0 }},
		{true, func(o *Options) { o.Thresholds.StalledReadings = 1 }},
		{false, func(o *Options) { o.Thresholds.StalledReadings = 0 }},
		{true, func(o *Options) { o.Thresholds.SteadyReadings = 1 }},
		{false, func(o *Options) { o.Thresholds.SteadyReadings = 0 }},
		{true, func(o *Options) { o.Thresholds.LinkTraining, o.Thresholds.StalledSpan = 0, 0 }},
		{true, func(o *Options) { o.Thresholds.Temperature = 200 }},
		{false, func(o *Options) { o.Thresholds.Temperature = math.Nextafter(200, 201) }},
		{true, func(o *Options) { o.Thresholds.Temperature = math.SmallestNonzeroFloat64 }},
		{false, func(o *Options) { o.Thresholds.Temperature = 0 }},
		{true, func(o *Options) { o.ExpectedGPUs, o.MaxDevices, o.MaxAllocations = 0, 0, 0 }},
		{false, func(o *Options) { o.ExpectedGPUs = -1 }},
		{true, func(o *Options) {
			o.XIDs = map[uint32]XIDOverride{1: {canonical.NumSeverities - 1, canonical.NumActions - 1}}
		}},
		{false, func(o *Options) { o.XIDs = map[uint32]XIDOverride{0: {}} }},
		{false, func(o *Options) { o.XIDs = map[uint32]XIDOverride{1: {Severity: canonical.NumSeverities}} }},
		{false, func(o *Options) { o.XIDs = map[uint32]XIDOverride{1: {Action: canonical.NumActions}} }},
	} {
		o := DefaultOptions()
		c.set(&o)
		if wrong := o.Check(); (len(wrong) == 0) != c.good {
			t.Errorf("case %d: %v", n, wrong)
		}
	}
	fractions := 0
	for i := range reflect.TypeFor[Thresholds]().NumField() {
		f := reflect.TypeFor[Thresholds]().Field(i)
		if f.Type.Kind() != reflect.Float64 || f.Tag.Get("yaml") == "-" {
			continue
		}
		most := 1.0
		if f.Name == "TransferPCIe" || f.Name == "RemappedRows" {
			most = math.MaxFloat64
		}
		fractions++
		for v, good := range map[float64]bool{0: true, most: true, math.Nextafter(most, math.Inf(1)): false, -math.SmallestNonzeroFloat64: false} {
			o := DefaultOptions()
			reflect.ValueOf(&o.Thresholds).Elem().Field(i).SetFloat(v)
			if wrong := o.Check(); (len(wrong) == 0) != good {
				t.Errorf("%s = %g: %v", f.Name, v, wrong)
			}
		}
	}
	if fractions < 20 {
		t.Errorf("%d thresholds were set", fractions)
	}
}

// TestMeterToTheUnit reads single counters.
func TestMeterToTheUnit(t *testing.T) {
	row := func(joules, watts float64) []float64 {
		return reading{canonical.Energy: joules, canonical.Power: watts}.row()
	}
	if got := microjoules(math.MaxInt64 / 1e6); got != -1 {
		t.Errorf("a counter that overflows is %d", got)
	}
	if got := microjoules(9e12); got != 9e18 {
		t.Errorf("9e12 J are %d µJ", got)
	}
	if got := microjoules(-1e-9); got != -1 {
		t.Errorf("a counter that is negative by less than a microjoule is %d", got)
	}
	m := meter{counter: 0}
	if energy, _ := m.read(row(1000, 0), time.Second-time.Microsecond, time.Second); energy != 1e9 {
		t.Errorf("with an unobserved microsecond: %d, want all of the rise", energy)
	}
	m = meter{counter: 0}
	if energy, _ := m.read(row(1000, 0), time.Second/2, time.Second); energy != 5e8 {
		t.Errorf("half of the time was observed: %d", energy)
	}
	// The counter restarts at 0, and continues.
	m = meter{counter: 5e9}
	for _, step := range []struct {
		joules float64
		energy int64
	}{{0, 250e6}, {100, 100e6}} {
		if energy, _ := m.read(row(step.joules, 250), time.Second, time.Second); energy != step.energy {
			t.Errorf("at %g J: %d, want %d", step.joules, energy, step.energy)
		}
	}
	// Up to a million watts are believed.
	for watts, want := range map[float64]int64{1e6: 1e12, 1e6 + 1: 0} {
		m = newMeter()
		if energy, _ := m.read(row(absent, watts), time.Second, time.Second); energy != want || m.works(watts) != (want > 0) {
			t.Errorf("%g W: %d µJ, want %d", watts, energy, want)
		}
	}
	for profile, want := range map[string]float64{"1g.10gb": 1, "9g.80gb": 9, "1c.3g.20gb": 3, "0g.5gb": 0, ":g.5gb": 0, "": 0} {
		if got := slicesOf(profile); got != want {
			t.Errorf("%q has %g slices, want %g", profile, got, want)
		}
	}
}

// TestMeteredFromZero: a counter of 0 and a power of 0 are readings.
func TestMeteredFromZero(t *testing.T) {
	for _, r := range []reading{{canonical.Energy: 0}, {canonical.Power: 0}} {
		b := newAccounts(t, nil)
		b.devices(gpu1)
		b.read(0, 0, r)
		if a := b.of("GPU-1", ""); !a.Metered {
			t.Errorf("%v: %+v", r, a)
		}
	}
}

// TestRestartsToTheUnit: a counter may be rounded by one, and a board whose energy counter stands
// still did not restart.
func TestRestartsToTheUnit(t *testing.T) {
	for _, c := range []struct {
		last, now float64
		fell      bool
		wentOn    bool
	}{{100, 99, false, false}, {100, 98.9, true, false}, {100, 100, false, true}, {100, 101, false, true}, {1, 0, true, false}, {0, 0, false, true}} {
		for _, f := range []canonical.Field{canonical.Energy, canonical.ECCSingleBitVolatile, canonical.ECCDoubleBitVolatile} {
			r := newRestarts()
			r.observe(reading{f: c.last}.row(), start)
			r.observe(reading{}.row(), start) // changes nothing
			if fell, wentOn := r.observe(reading{f: c.now}.row(), start); (fell == canonical.Fields[f].Name) != c.fell || wentOn != (c.wentOn && f == canonical.Energy) {
				t.Errorf("%s of %g after %g: %q, %t", canonical.Fields[f].Name, c.now, c.last, fell, wentOn)
			}
		}
	}
}

// TestUnseenRestart: a gap of up to three minutes is too short for a restart.
func TestUnseenRestart(t *testing.T) {
	for gap, want := range map[time.Duration]bool{3 * time.Minute: false, 3*time.Minute + 1: true} {
		b := newAccounts(t, nil)
		b.devices(gpu1)
		b.read(0, 0, heavy)
		b.read(gap, gap, heavy)
		if got := !b.judge.memory.present[0].restarts.at.IsZero(); got != want {
			t.Errorf("after %v: %t", gap, got)
		}
	}
}

// TestXIDsToTheInstant: the bounds on times and numbers of XIDs are exact.
func TestXIDsToTheInstant(t *testing.T) {
	judge := func() (*Judge, *device) {
		j := newJudge(t, nil)
		top := topology(canonical.Device{GPU: "0", UUID: "GPU-0"})
		j.Judge(frame(top, start, reading{canonical.XIDLast: 0}), nil)
		return j, j.memory.present[0]
	}

	j, d := judge()
	if j.find(d, 1023, start) == nil || j.find(d, 1024, start) != nil {
		t.Error("codes end at 1023")
	}
	created := 1
	for code := uint32(300); code < 900; code++ {
		if j.find(d, code, start) != nil {
			created++
		}
	}
	if created != 256 {
		t.Errorf("%d unlisted codes are kept, want 256", created)
	}
	if j.find(d, 79, start) == nil {
		t.Error("a listed code beyond those is not kept")
	}

	for lag, settled := range map[time.Duration]bool{5 * time.Minute: false, 5*time.Minute + 1: true} {
		x := xid{total: 7, rose: start}
		x.settle(start.Add(lag))
		if (x.told[0] == 7) != settled {
			t.Errorf("after %v: told %v of 7", lag, x.told)
		}
	}
	x := xid{total: 7, rose: start}
	x.told[0] = 7
	if n := x.rise(start.Add(time.Hour), 0); n != 0 || x.rose != start {
		t.Errorf("nothing new was reported: %d, %v", n, x.rose)
	}

	x.told[0] = 10
	if n := x.rise(start.Add(time.Hour), 0); n != 3 || x.total != 10 || x.rose != start.Add(time.Hour) {
		t.Errorf("10 were reported, 7 were known: %d, %+v", n, x)
	}

	for lag, forgotten := range map[time.Duration]bool{5*time.Minute - 1: true, 5 * time.Minute: false} {
		x := xid{warned: start}
		if j.occur(d, &x, start.Add(lag), meaning{severity: canonical.SeverityNone}, true); x.warned.IsZero() != forgotten {
			t.Errorf("a record after %v is not a warning: %v", lag, x.warned)
		}
	}
	warned := xid{warned: start}
	if j.occur(d, &warned, start.Add(time.Second), meaning{severity: canonical.SeverityWarning}, true); warned.warned != start {
		t.Error("a record that warns removes the warning")
	}

	for lag, latched := range map[time.Duration]bool{24 * time.Hour: true, 24*time.Hour + 1: false} {
		j, d := judge()
		j.memory.at = start.Add(lag)
		x := j.find(d, 79, start)
		if j.latch(d, x, start, x.meaning, false); (d.xids.latched == 1) != latched {
			t.Errorf("reported after %v: %d are fatal", lag, d.xids.latched)
		}
	}
}

// TestRecoveryToTheInstant: an action that was asked for up to five minutes before a code is
// not about it, and a code is held for a day, to the nanosecond.
func TestRecoveryToTheInstant(t *testing.T) {
	const lag = 5 * time.Minute
	for _, c := range []struct {
		asked, now time.Duration // after the code
		resolved   bool
	}{
		{-lag, 2 * time.Minute, false}, {-lag + 1, 2 * time.Minute, true},
		{time.Second, time.Minute, true}, {time.Second, time.Minute - 1, false},
		{-lag, 24 * time.Hour, false}, {-lag, 24*time.Hour + 1, true},
	} {
		j := newJudge(t, nil)
		d := &device{xids: newXIDs()}
		x := j.find(d, 119, start) // which the driver's action does not follow
		j.latch(d, x, start, x.meaning, false)
		d.xids.asked = start.Add(c.asked)
		for range 3 {
			j.observeRecovery(d, reading{canonical.RecoveryAction: 0}.row(), start.Add(c.now))
		}
		if (d.xids.latched == 0) != c.resolved {
			t.Errorf("asked %v after it, now %v: %d are fatal", c.asked, c.now, d.xids.latched)
		}
	}
}

// TestRulesThatStay: a resolved code stays resolved while its rule is the same.
func TestRulesThatStay(t *testing.T) {
	j := newJudge(t, nil)
	d := &device{xids: newXIDs()}
	x := j.find(d, 79, start)
	x.rose, j.memory.at = start, start.Add(time.Hour)
	if j.renew(d); d.xids.latched != 0 {
		t.Error("the code is fatal again")
	}
}

// TestLastCodesAtTheEnds: the last code is a whole number from 1 to 1023.
func TestLastCodesAtTheEnds(t *testing.T) {
	for code, want := range map[float64]uint64{1: 1, 1023: 1, 1024: 0, 0.5: 0, 1.5: 0} {
		j := newJudge(t, nil)
		d := &device{xids: newXIDs()}
		j.observeLast(d, reading{canonical.XIDLast: 0}.row(), start)
		j.observeLast(d, reading{canonical.XIDLast: code}.row(), start.Add(time.Second))
		if d.account.XIDChanges != want {
			t.Errorf("%g: %d changes, want %d", code, d.account.XIDChanges, want)
		}
	}
}

// TestUnknownWitness: counts of an unknown witness, or of what is no code, are ignored.
func TestUnknownWitness(t *testing.T) {
	j := newJudge(t, nil)
	d := &device{xids: newXIDs()}
	j.observeCounts(d, []canonical.XIDCount{{Code: 79, Count: 1, Witness: canonical.NumWitnesses}, {Code: 1024, Count: 1}}, start)
	if len(d.xids.codes) != 0 {
		t.Errorf("%+v", d.xids.codes)
	}
}

// TestIncidentsToTheInstant: lines of a program within ten seconds are one incident, and the same
// code on two boards within a minute is one job's.
func TestIncidentsToTheInstant(t *testing.T) {
	two := func() (*Judge, *device, *device) {
		j := newJudge(t, nil)
		j.Judge(frame(topology(canonical.Device{GPU: "0", UUID: "GPU-0"}, canonical.Device{GPU: "1", UUID: "GPU-1"}), start, reading{}, reading{}), nil)
		return j, j.memory.present[0], j.memory.present[1]
	}
	for gap, want := range map[time.Duration]int{10*time.Second - 1: 1, 10 * time.Second: 2} {
		j, d, _ := two()
		j.incident(d, j.find(d, 13, start), start)
		j.incident(d, j.find(d, 13, start), start.Add(gap))
		if n := j.find(d, 13, start).alone.n; n != want {
			t.Errorf("two within %v: %d incidents, want %d", gap, n, want)
		}
	}
	for gap, want := range map[time.Duration]int{time.Minute: 0, time.Minute + 1: 1} {
		j, d, other := two()
		j.incident(d, j.find(d, 13, start), start)
		j.incident(other, j.find(other, 13, start), start.Add(gap))
		if n, m := j.find(d, 13, start).alone.n, j.find(other, 13, start).alone.n; n != want || m != want {
			t.Errorf("on two boards within %v: %d and %d incidents, want %d", gap, n, m, want)
		}
	}
}

// TestLostBoardIsFound: by its uuid or, if the source does not report that, by host and index.
func TestLostBoardIsFound(t *testing.T) {
	known := []canonical.Device{{Hostname: "a", GPU: "0", UUID: "GPU-0"}, {Hostname: "a", GPU: "1", UUID: "GPU-1", Instance: "7"}}
	for _, c := range []struct {
		lost  canonical.Device
		known bool
	}{
		{canonical.Device{Hostname: "b", GPU: "5", UUID: "GPU-0"}, true},
		{canonical.Device{Hostname: "a", GPU: "0"}, true},
		{canonical.Device{Hostname: "b", GPU: "0"}, false},
		{canonical.Device{Hostname: "a", GPU: "2"}, false},
		{canonical.Device{Hostname: "a", GPU: "1"}, false}, // an instance is no board
		{canonical.Device{Hostname: "a", GPU: "0", UUID: "GPU-9"}, false},
	} {
		if got := len(named([]canonical.Device{c.lost}, known)) == 0; got != c.known {
			t.Errorf("%+v is known: %t", c.lost, got)
		}
	}
	j := newJudge(t, nil)
	lost, stays := canonical.Device{Hostname: "a", GPU: "0", UUID: "GPU-0"}, canonical.Device{Hostname: "a", GPU: "1", UUID: "GPU-1"}
	part := lost
	part.Instance = "7" // which leaves first
	j.Judge(frame(topology(lost, stays, part), start), nil)
	j.Judge(frame(topology(lost, stays), start), nil)
	left := topology(stays)
	left.Generation = 2
	left.Absent = []canonical.Device{{Hostname: "a", GPU: "0"}, {Hostname: "b", GPU: "0"}, {Hostname: "a", GPU: "2"}, {Hostname: "a", GPU: "0", UUID: "GPU-8"}}
	j.Judge(frame(left, start.Add(time.Second), reading{}), nil)
	for i, want := range []string{"GPU-1", "GPU-0", "", "", ""} {
		got := ""
		if d := j.memory.board(left, i); d != nil {
			got = d.UUID + d.Instance
		}
		if got != want {
			t.Errorf("device %d of the topology is %q, want %q", i, got, want)
		}
	}
}

// TestIncidentsKept: the latest twelve are kept.
func TestIncidentsKept(t *testing.T) {
	var s incidents
	for i := range 15 {
		s.add(start.Add(time.Duration(i)))
	}
	if s.n != 12 || !s.at[0].Equal(start.Add(3)) || !s.at[11].Equal(start.Add(14)) {
		t.Errorf("%d are kept, from %v to %v", s.n, s.at[0], s.at[s.n-1])
	}
}

// TestXIDsOfTheDeparted: codes of boards that are away follow those of the present ones, in the
// order of the roster.
func TestXIDsOfTheDeparted(t *testing.T) {
	j := newJudge(t, nil)
	var boards []canonical.Device
	for _, id := range []string{"0", "1", "2"} {
		boards = append(boards, canonical.Device{GPU: id, UUID: "GPU-" + id})
	}
	all := topology(boards...)
	j.Judge(frame(all, start, reading{}, reading{}, reading{}), nil)
	for i, d := range j.memory.present {
		j.find(d, uint32(100+i), start)
	}
	left := topology(boards[1])
	left.Generation = 2
	var l canonical.Ledger
	f := frame(left, start.Add(time.Second), reading{})
	j.Account(&l, f, j.Judge(f, nil), time.Second)
	seen := map[int]bool{}
	for _, x := range l.XIDs {
		d := l.Roster.Devices[x.Device]
		if seen[x.Device] = true; d.GPU != string(rune('0'+x.Code-100)) {
			t.Errorf("code %d is of GPU %s", x.Code, d.GPU)
		}
	}
	if len(l.XIDs) != 3 || len(seen) != 3 {
		t.Errorf("%+v", l.XIDs)
	}
}
