package compute

import (
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestStreaksOutliveAReload: three readings in a row count across a reload, and a board's links
// are still known.
func TestStreaksOutliveAReload(t *testing.T) {
	top := topology(canonical.Device{UUID: "GPU-1"})
	well, ill := reading{canonical.NVLinksActive: 18, canonical.FabricHealth: 1}, reading{canonical.NVLinksActive: 17, canonical.FabricHealth: 2}
	var j *Judge
	for i, r := range []reading{well, well, well, ill, ill, ill, ill} {
		next := newJudge(t, nil)
		if j != nil {
			next.Resume(j)
		}
		j = next
		v := j.Judge(frame(top, start.Add(time.Duration(i)*time.Second), r), nil)[0]
		for _, c := range []canonical.Condition{canonical.CondNVLinkDown, canonical.CondFabric} {
			if raised := v.Findings.Of(c) == canonical.Raised; raised != (i >= 5) {
				t.Errorf("reading %d: %v raised is %t", i, c, raised)
			}
		}
	}
}

// TestStreaksEndWithTheirBoard: the board is away for a reading, and then trains its links.
func TestStreaksEndWithTheirBoard(t *testing.T) {
	here, away := topology(canonical.Device{UUID: "GPU-1"}), topology()
	j := newJudge(t, nil)
	at := start
	// read returns the findings of a reading.
	read := func(top *canonical.Topology, links, fabric float64) (down, sick canonical.Finding) {
		at = at.Add(15 * time.Second)
		f := frame(top, at)
		for i := range top.Devices {
			copy(f.Row(i), reading{canonical.NVLinksActive: links, canonical.FabricHealth: fabric}.row())
		}
		for _, v := range j.Judge(f, nil) {
			return v.Findings.Of(canonical.CondNVLinkDown), v.Findings.Of(canonical.CondFabric)
		}
		return canonical.NotRead, canonical.NotRead
	}
	for range 3 {
		read(here, 18, 1)
	}
	read(here, 17, 2)
	read(here, 17, 2)
	read(away, 0, 0)
	for i := range 45 {
		down, sick := read(here, 17, 2)
		if (sick == canonical.Raised) != (i >= 2) {
			t.Errorf("reading %d after it was away: fabric %v", i, sick)
		}
		if (down == canonical.Raised) != (i >= 42) { // ten minutes and three readings
			t.Errorf("reading %d after it was away: links %v", i, down)
		}
	}
}

// TestLinksOfACutBoard: links are not checked, nor for a while after the board is whole again.
func TestLinksOfACutBoard(t *testing.T) {
	whole := topology(canonical.Device{UUID: "GPU-1"})
	cut := topology(canonical.Device{UUID: "GPU-1"}, canonical.Device{UUID: "GPU-1", Instance: "7", Board: 0})
	j := newJudge(t, nil)
	for i := range 140 {
		top, links, want := cut, 0., canonical.Clear
		switch {
		case i < 3:
			top, links = whole, 12
		case i >= 90:
			top = whole
			if i >= 132 {
				want = canonical.Raised
			}
		}
		f := frame(top, start.Add(time.Duration(i)*15*time.Second), reading{canonical.NVLinksActive: links})
		if got := j.Judge(f, nil)[0].Findings.Of(canonical.CondNVLinkDown); got != want {
			t.Errorf("reading %d: %v, want %v", i, got, want)
		}
	}
}
