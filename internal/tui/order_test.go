package tui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestOrderIsPinned: F keeps devices in their rows whatever they read, until F is pressed
// again or another order is chosen; new devices come last.
func TestOrderIsPinned(t *testing.T) {
	m, c := fleet(t)
	read := func(boards []string, real ...float64) {
		c.at = c.at.Add(time.Second)
		n := fleetNode(c.at)
		for i, v := range real {
			n.GPUs[i].RealUtilization = v
		}
		kept := n.GPUs[:0:0]
		for _, g := range n.GPUs {
			if strings.Contains(strings.Join(boards, " "), g.GPU) {
				kept = append(kept, g)
			}
		}
		n.GPUs = kept
		m.update(nodeMsg{0, n})
	}
	all := []string{"0", "1", "2", "3"}
	is := func(want string) {
		t.Helper()
		if got := ids(m); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	typed(m, ":sort real", "enter")
	is("3 3.1 3.2 2 1 0")
	read(all, .9, .1, .2, .3)
	is("0 3 3.1 3.2 2 1")
	typed(m, "F")
	if !m.state.Pinned {
		t.Error("the footer does not know that the order is fixed")
	}
	read(all, .1, .9, .8, .2)
	is("0 3 3.1 3.2 2 1")
	read([]string{"0", "1", "2"}, .1, .9, .8)
	is("0 2 1")
	read(all, .1, .9, .8, .2) // board 3 is back at its position
	is("0 3 3.1 3.2 2 1")
	typed(m, "F")
	is("1 2 3 3.1 3.2 0")
	typed(m, "F", "S")
	is("0 3 3.1 3.2 2 1")
	if m.pinned != nil {
		t.Error("another order does not unpin")
	}
}

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

func TestBellIsSaved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tui.json")
	m, _ := fleet(t)
	if err := m.load(file); err != nil {
		t.Fatal(err)
	}
	typed(m, ":bell on", "enter", ":save", "enter")
	other, _ := fleet(t)
	if err := other.load(file); err != nil || !other.state.Bell {
		text, _ := os.ReadFile(file)
		t.Errorf("bell %v, error %v, of %s", other.state.Bell, err, text)
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
