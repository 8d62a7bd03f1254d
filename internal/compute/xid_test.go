package compute

import (
	"reflect"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestXIDAccount(t *testing.T) {
	xid := func(code float64) reading { return reading{canonical.XIDLast: code} }
	type step struct {
		r       reading // nil: the board is not there
		changes uint64
		changed int // the number of the step with the last change, -1 for none
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"never", []step{{reading{}, 0, -1}, {reading{}, 0, -1}, {xid(0), 0, -1}}},
		{"old when it was first read", []step{{xid(79), 0, -1}, {xid(79), 0, -1}}},
		{"from absent", []step{{reading{}, 0, -1}, {xid(79), 1, 1}, {xid(79), 1, 1}}},
		{"from absent to the least", []step{{reading{}, 0, -1}, {xid(1), 1, 1}}},
		{"from 0", []step{{xid(0), 0, -1}, {xid(13), 1, 1}}},
		{"from one to the next", []step{{xid(31), 0, -1}, {xid(13), 1, 1}, {xid(79), 2, 2}}},
		{"back to none and again", []step{{xid(31), 0, -1}, {xid(0), 0, -1}, {xid(31), 1, 2}, {reading{}, 1, 2}, {xid(31), 1, 2}}},
		{"unreadable in between", []step{{xid(31), 0, -1}, {reading{}, 0, -1}, {reading{}, 0, -1}, {xid(31), 0, -1}}},
		{"another one after that", []step{{xid(31), 0, -1}, {reading{}, 0, -1}, {xid(79), 1, 2}}},
		{"long absent, then one", []step{{reading{}, 0, -1}, {reading{}, 0, -1}, {xid(31), 1, 2}, {reading{}, 1, 2}, {xid(31), 1, 2}}},
		{"none, unreadable, one", []step{{xid(0), 0, -1}, {reading{}, 0, -1}, {xid(31), 1, 2}}},
		{"unreadable, then it was away", []step{{xid(31), 0, -1}, {reading{}, 0, -1}, {nil, 0, -1}, {xid(31), 0, -1}}},
		{"while it was away", []step{{xid(0), 0, -1}, {nil, 0, -1}, {xid(79), 1, 2}}},
		{"not while it was away", []step{{xid(79), 0, -1}, {nil, 0, -1}, {xid(79), 0, -1}}},
	} {
		b := newAccounts(t, nil)
		for i, s := range c.steps {
			if s.r == nil {
				b.devices(gpu2)
				b.read(sec, sec, reading{canonical.XIDLast: float64(i)})
			} else {
				b.devices(gpu2, gpu1)
				b.read(sec, sec, reading{canonical.XIDLast: float64(i)}, s.r)
			}
			var when time.Time
			if s.changed >= 0 {
				when = start.Add(time.Duration(s.changed+1) * sec)
			}
			if a := b.of("GPU-1", ""); a.XIDChanges != s.changes || !a.XIDChanged.Equal(when) {
				t.Errorf("%s: reading %d: %d changes, last at %v, want %d at %v", c.name, i, a.XIDChanges, a.XIDChanged, s.changes, when)
			}
		}
	}
}

// xidsAt returns XIDs with all their times set to at.
func xidsAt(at time.Time) *xids {
	alone := incidents{n: remembered, seen: at}
	for i := range alone.at {
		alone.at[i] = at
	}
	return &xids{warned: at, resolved: at, asked: at, codes: []xid{{born: at, rose: at, fatal: at, warned: at, recorded: at, alone: alone}}}
}

// TestXIDsRewind: if the clock is set back, no time is later than the new one.
func TestXIDsRewind(t *testing.T) {
	before, after := start.Add(-time.Hour), start.Add(time.Hour)
	wantTimes(t, reflect.ValueOf(xidsAt(start)).Elem())
	for then, want := range map[time.Time]time.Time{before: before, start: start, after: start} {
		x := xidsAt(then)
		if x.rewind(start); !reflect.DeepEqual(x, xidsAt(want)) {
			t.Errorf("from %v to %v: %+v", then, start, x)
		}
	}
}

// wantTimes checks that all times in a value are set.
func wantTimes(t *testing.T, v reflect.Value) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		if v.IsZero() {
			t.Error("a time is not set")
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			wantTimes(t, v.Field(i))
		}
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		for i := range v.Len() {
			wantTimes(t, v.Index(i))
		}
	}
}
