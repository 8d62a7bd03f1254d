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

// TestHighIsNotWrong checks that nothing of a fully used, healthy device is yellow or red.
func TestHighIsNotWrong(t *testing.T) {
	s := state("four")
	for _, g := range s.GPUs {
		for f := range g.Values {
			switch canonical.Fields[f].Unit {
			case canonical.Ratio:
				g.Values[f] = 1
			case canonical.Watts:
				g.Values[f] = 700
			case canonical.BytesPerSecond:
				g.Values[f] = 900e9
			}
		}
		g.RealUtilization = 1
	}
	for _, view := range []string{Fleet, Focus, Plot} {
		g, _ := at(s, view, 120, 40)
		styles := stylesIn(g)
		for _, st := range []screen.Style{styleWarn, styleCrit, styleWarnBorder, styleCritBorder} {
			if n := styles[st] + styles[st|screen.Picked]; n > 0 {
				t.Errorf("%s: %d cells have style %d", view, n, st)
			}
		}
	}
}

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
	g.Reset(20, 1, screen.Braille)
	drawArea(g.All(), s, s.GPUs[0], client.MetricPower, 700, func(float64) screen.Style { return stylePlain })
	if got, want := g.Glyphs(), strings.Repeat("▄", 20)+"\n"; got != want {
		t.Errorf("350 W of 700 W is drawn as %q, want %q", got, want)
	}
}

// TestWhatIsReadIsShown checks that XIDs, reasons for low clocks, remapped rows and
// the age of readings are on the screen.
func TestWhatIsReadIsShown(t *testing.T) {
	for _, tc := range []struct {
		scenario, view string
		selected       int
		want           []string
	}{
		{"sick", Focus, 3, []string{"fatal XID 79", "PCIe replays", "Corrected rows", "Bad rows"}},
		{"eight", Focus, 4, []string{"clocks limited by", "sw_power_cap"}},
		{"sick", Fleet, 3, []string{"fatal XID 79", "GPU hot 96°C", "row remap pending", "no longer seen"}},
		{"stale", Fleet, 0, []string{"▲ stale 12s", "▲  12s"}},
		{"mig", Fleet, 0, []string{"1g.18gb+me"}},
	} {
		s := state(tc.scenario)
		s.Selected = s.GPUs[tc.selected].Key
		s.GPUs[tc.selected].ClockEvents = []string{"sw_power_cap"}
		g, _ := at(s, tc.view, 160, 60)
		for _, want := range tc.want {
			if !strings.Contains(g.Glyphs(), want) {
				t.Errorf("%s, %s: %q is not on the screen", tc.scenario, tc.view, want)
			}
		}
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
