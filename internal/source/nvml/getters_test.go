//go:build cgo && linux

package nvml

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// TestCallsAreNamed: each reading has the name of the function that it calls, by which a library
// without it is recognized.
func TestCallsAreNamed(t *testing.T) {
	for _, r := range boardReadings {
		b := newBoard(0)
		r.ask(b, make([]float64, len(dcgm.Fields)))
		if len(b.counts) != 1 || b.counts[r.call] != 1 {
			t.Errorf("%s: the calls are %v", r.call, b.counts)
		}
	}
}

// TestSlowCallPeriod: the call that takes 40 ms for PCIe traffic is made from a period of 500 ms on,
// and never for a board with GPM.
func TestSlowCallPeriod(t *testing.T) {
	for _, test := range []struct {
		period time.Duration
		gpm    bool
		want   bool
	}{{499 * time.Millisecond, false, false}, {500 * time.Millisecond, false, true}, {time.Second, true, false}} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(1)
			b := m.boards[0]
			if b.gpm = test.gpm; b.gpm {
				b.metrics = counted
			}
			r := newReader(t, m, func(o *Options) { o.Period = test.period })
			defer r.Close()
			for range 3 {
				r.read()
			}
			if got := b.asked("nvmlDeviceGetPcieThroughput") > 0; got != test.want {
				t.Errorf("period %v, GPM %v: asked is %v", test.period, test.gpm, got)
			}
		})
	}
}
