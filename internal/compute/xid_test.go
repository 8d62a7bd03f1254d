package compute

import (
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
