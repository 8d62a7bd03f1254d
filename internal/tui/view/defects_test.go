package view

import (
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// This file tests for defects of KempnerPulse that no other test covers. Others: numbers
// that are cut (TestNumbersAreWhole), GPUs off the screen (TestEveryGPUIsOnTheScreen), lost keys
// (TestBurst), an invented history (TestPlotShowsGaps), lines that hide each other
// (TestPlotKeepsLinesApart).

// TestFlatPowerIsNotFull checks that the history of power is drawn against its limit, and not
// against its own maximum.
func TestFlatPowerIsNotFull(t *testing.T) {
	s := state("one")
	s.History = history.NewHistory()
	for i := range 300 {
		n := node("dgx-03", 1, noon.Add(time.Duration(i-299)*2*time.Second))
		n.GPUs[0].Values[canonical.Power] = 350
		s.History.Add(n)
	}
	var g screen.Grid
	g.Reset(20, 1)
	drawTrend(g.All(), s, s.GPUs[0], client.MetricPower)
	if got, want := g.Glyphs(), strings.Repeat("▄", 20)+"\n"; got != want {
		t.Errorf("350 W of 700 W is drawn as %q, want %q", got, want)
	}
}

// TestKeysScrollOnlyWhatIsLonger checks that up and down move the selection if there is nothing
// to scroll.
func TestKeysScrollOnlyWhatIsLonger(t *testing.T) {
	for _, tc := range []struct {
		view string
		w, h int
		want bool
	}{
		{Focus, 80, 24, true}, {Focus, 240, 67, false}, {Plot, 80, 24, true}, {Plot, 320, 90, false},
	} {
		s := state("four")
		s.View = tc.view
		v := New(nil, nil)[tc.view]
		at(s, tc.view, tc.w, tc.h)
		if got := v.Key("down", s); got != tc.want || (s.Scroll > 0) != tc.want {
			t.Errorf("%s at %d × %d takes down: %v, want %v; scrolled to %d", tc.view, tc.w, tc.h, got, tc.want, s.Scroll)
		}
	}
}
