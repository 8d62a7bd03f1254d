package compute

import (
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// metered returns the row that a meter reads.
func metered(joules, watts float64) []float64 {
	return reading{canonical.Energy: joules, canonical.Power: watts}.row()
}

// TestMeterAtItsEdges reads a counter twice, a second apart, to the microjoule.
func TestMeterAtItsEdges(t *testing.T) {
	const byPower = 300e6 // of 300 W in a second
	for _, c := range []struct {
		what            string
		from, to, watts float64 // J, J, W
		energy          int64   // µJ
		works           bool
	}{
		{"rises by the least", 1, 1.000001, 300, 1, true},
		{"falls by as much as rounding can make it", 1000, 999, 300, 0, true},
		{"falls by more", 1000, 998.999999, 300, byPower, true},
		{"falls to next to nothing, by rounding", 0.5, 0.000001, 300, 0, true},
		{"restarts at 0", 0.5, 0, 300, byPower, true},
		{"stays at 0", 0, 0, 300, 0, true},
		{"stays at 0, and power is not read", 0, 0, absent, 0, true},
		{"was 0 and is not read", 0, absent, 300, byPower, true},
		{"was not read and is 0", absent, 0, 300, byPower, true},
		{"rises by what the greatest power gives", 0, 1e6, 300, 1e12, true},
		{"rises faster", 0, 1e6 + 1, 300, byPower, true},
		{"is not read, nor is power", absent, absent, absent, 0, false},
		{"is not read, power is 0", absent, absent, 0, 0, true},
		{"is not read, power is next to nothing", absent, absent, 0.5, 500_000, true},
		{"is not read, power is below 0", absent, absent, -0.5, 0, false},
		{"is not read, power is the greatest", absent, absent, 1e6, 1e12, true},
		{"is not read, power is above that", absent, absent, 1e6 + 1, 0, false},
	} {
		m := newMeter()
		m.begin(microjoules(c.from))
		energy, span := m.read(metered(c.to, c.watts), sec, sec)
		if works := m.works(c.watts); energy != c.energy || span != sec || works != c.works {
			t.Errorf("%s: %d µJ in %v, works: %v; want %d µJ in 1s, %v", c.what, energy, span, works, c.energy, c.works)
		}
	}
}

// TestFallenMeterGoesOn: what rounding took away is not counted twice.
func TestFallenMeterGoesOn(t *testing.T) {
	m := newMeter()
	m.begin(1000e6)
	m.read(metered(999.5, 300), sec, sec)
	if energy, span := m.read(metered(1001, 300), sec, sec); energy != 1e6 || span != 2*sec {
		t.Errorf("%d µJ in %v, want 1 J in 2s", energy, span)
	}
}

// TestStuckMeter: power is used once the counter has stood still for more than five minutes since
// it was first read, or restarted.
func TestStuckMeter(t *testing.T) {
	for _, c := range []struct {
		what   string
		still  time.Duration
		watts  float64
		energy int64
	}{
		{"not yet", 5*time.Minute - sec, 300, 0},
		{"longer", 5 * time.Minute, 300, 300e6},
		{"next to nothing", 5 * time.Minute, 0.5, 500_000},
		{"nothing", 5 * time.Minute, 0, 0},
		{"less", 5 * time.Minute, -5, 0},
		{"absent", 5 * time.Minute, absent, 0},
		{"the greatest", 5 * time.Minute, 1e6, 1e12},
		{"above", 5 * time.Minute, 1e6 + 1, 0},
	} {
		for _, before := range []float64{50, 60} {
			m := newMeter()
			m.begin(microjoules(before))
			if before != 50 {
				m.read(metered(50, c.watts), sec, sec)
			}
			m.read(metered(50, c.watts), c.still, c.still)
			if energy, span := m.read(metered(50, c.watts), sec, sec); energy != c.energy || span != sec {
				t.Errorf("%s, from %v J: %d µJ in %v; want %d µJ in 1s", c.what, before, energy, span, c.energy)
			}
		}
	}
}

// TestMeterCatchesUp: what power counted ahead of the counter is subtracted from its rise, and
// the next rise covers only its own time.
func TestMeterCatchesUp(t *testing.T) {
	m := newMeter()
	m.begin(50e6)
	m.read(metered(50, 300), 5*time.Minute, 5*time.Minute)
	m.read(metered(50, 300), sec, sec) // 300 J by power
	for i, c := range []struct {
		joules float64
		energy int64
		span   time.Duration
	}{{350, 0, 5*time.Minute + 2*sec}, {650, 300e6, sec}, {650, 0, sec}, {651, 1e6, 2 * sec}} {
		if energy, span := m.read(metered(c.joules, 300), sec, sec); energy != c.energy || span != c.span {
			t.Errorf("reading %d: %d µJ in %v, want %d in %v", i, energy, span, c.energy, c.span)
		}
	}
}

// TestMeterMissesAReading: a counter that stood still, was not read once and then rises covers the
// time from when it stood still, except for what power counted meanwhile.
func TestMeterMissesAReading(t *testing.T) {
	m := newMeter()
	m.begin(1000e6)
	m.read(metered(1000, 300), 20*sec, 20*sec)
	if energy, span := m.read(metered(absent, 300), sec, sec); energy != 300e6 || span != sec {
		t.Errorf("%d µJ in %v by power, want 300 J in 1s", energy, span)
	}
	if energy, span := m.read(metered(7600, 300), sec, sec); energy != 6300e6 || span != 21*sec { // 22 s at 300 W
		t.Errorf("%d µJ in %v, want 6300 J in 21s", energy, span)
	}
}

// TestFloor: the floor is the least power of an idle board, and never more than the energy used.
func TestFloor(t *testing.T) {
	m := newMeter()
	for i, c := range []struct {
		energy, floor int64
		watts         float64
		idle          bool
	}{
		{500e6, 0, 500, false},            // not known yet
		{80e6, 80e6, 80, true},            // learned
		{500e6, 80e6, 500, false},         // the same
		{60e6, 60e6, 60, false},           // no more than all
		{90e6, 80e6, 90, true},            // the least stays
		{0, 0, 0, true},                   // 0 is no board's power
		{70e6, 70e6, absent, true},        // by the counter
		{500e6, 70e6, 500, false},         // of that
		{500e6, 500_000, 0.5, true},       // a lower floor
		{500e6, 500_000, absent, false},   // of that
		{500e6, 500_000, -1, true},        // not a power
		{500e6, 500_000, absent, true},    // not lower
		{400_000, 400_000, absent, false}, // no more than all
	} {
		if got := m.floor(c.energy, sec, c.watts, c.idle); got != c.floor {
			t.Errorf("reading %d: the floor is %d µJ, want %d", i, got, c.floor)
		}
	}
}
