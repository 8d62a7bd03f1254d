package view

import (
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// readFor returns a state whose device was read every second for a time, and changed between idle
// and busy every 14 s.
func readFor(read, window time.Duration) *State {
	s := state("one")
	s.History, s.Window = history.NewHistory(), window
	for at := noon.Add(-read); !at.After(noon); at = at.Add(time.Second) {
		n := node("dgx-03", 1, at)
		n.Period = time.Second
		g := n.GPUs[0]
		if g.RealUtilization, g.Class = 0, canonical.Idle; at.Unix()/14%2 == 0 {
			g.RealUtilization, g.Class = 1, canonical.TensorCompute
		}
		s.History.Add(n)
	}
	return s
}

// TestRasterDoesNotShimmer draws a line and a strip as time goes on, with columns of several
// widths, and checks that they change exactly where the device did.
func TestRasterDoesNotShimmer(t *testing.T) {
	for _, r := range []raster{{120, 1, 2 * time.Second, 1}, {120, 1, 2 * time.Second, 2}, {120, 1, 2 * time.Second, 4}, {240, 2, 2 * time.Second, 2}, {240, 2, 2 * time.Second, 4}, {240, 2, 2 * time.Second, 1}} {
		s := readFor(10*time.Minute, 5*time.Minute)
		s.Now = noon.Add(-time.Minute)
		g := s.GPUs[0]
		for step := range 90 {
			now := s.Now.Add(time.Duration(step) * 333 * time.Millisecond)
			later := *s
			later.Now = now
			line := later.line(g, client.MetricReal, r)
			classes := later.strip(g, r.cells())
			if len(line) != r.units || len(classes) != r.units/r.perCell {
				t.Fatalf("%+v: %d values and %d classes", r, len(line), len(classes))
			}
			unit := r.cell() / time.Duration(r.perCell)
			end := (now.UnixMilli()/r.cell().Milliseconds() + 1) * r.cell().Milliseconds()
			for i, v := range line[:len(line)-4*r.perCell*r.wide] { // the latest columns are not full yet
				at := time.UnixMilli(end - int64(r.units-i)*unit.Milliseconds()).Truncate(r.step)
				want := 0.0
				if at.Unix()/14%2 == 0 { // steps are of 2 s, and 14 s are seven of them
					want = 1
				}
				if v != want {
					t.Fatalf("%+v after %v: unit %d of %v is %v", r, now.Sub(s.Now), i, at, v)
				}
				if i%r.perCell == 0 && r.cell() <= r.step && (classes[i/r.perCell] == canonical.TensorCompute) != (want == 1) {
					t.Fatalf("%+v after %v: cell %d of %v has class %v", r, now.Sub(s.Now), i/r.perCell, at, classes[i/r.perCell])
				}
			}
		}
	}
}
