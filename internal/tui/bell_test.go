package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// belled counts how often a screen rings.
type belled struct {
	tcell.Screen
	rings int
}

func (b *belled) Beep() error { b.rings++; return nil }

// TestBell: it rings once for a bad event, not for a good one, and only if it is on.
func TestBell(t *testing.T) {
	for _, on := range []bool{false, true} {
		m, c := fleet(t)
		bell := &belled{Screen: m.screen}
		m.screen = bell
		if on {
			typed(m, ":bell on", "enter")
		}
		rings := func(health canonical.Health) bool {
			c.at = c.at.Add(2 * 10 * time.Second)
			n := fleetNode(c.at)
			n.GPUs[2].Health = health
			before := bell.rings
			m.update(nodeMsg{0, n})
			return bell.rings > before
		}
		if rings(canonical.HealthOK) || rings(canonical.HealthCrit) != on || rings(canonical.HealthCrit) || rings(canonical.HealthOK) || rings(canonical.HealthOK) {
			t.Errorf("on %v: it rings at other times", on)
		}
	}
	m, _ := fleet(t)
	if typed(m, ":bell loud", "enter"); !strings.Contains(m.state.Message, "usage: :bell on|off") {
		t.Errorf("%q", m.state.Message)
	}
}

// TestTroubleIsShownOnce: not with every reading.
func TestTroubleIsShownOnce(t *testing.T) {
	m, c := fleet(t)
	say := func(trouble string) string {
		n := fleetNode(c.at)
		n.Trouble = trouble
		m.update(nodeMsg{0, n})
		return m.state.Message
	}
	if got := say("--gpus=9: not there"); !strings.Contains(got, "--gpus=9: not there") || !m.state.Alarm {
		t.Errorf("the footer says %q", got)
	}
	c.at = c.at.Add(messageTime)
	if got := say("--gpus=9: not there"); got != "" {
		t.Errorf("shown again: %q", got)
	}
}
