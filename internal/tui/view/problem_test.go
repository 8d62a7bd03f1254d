package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// TestXIDIsExplainedOnTheCard checks that a card shows the code, its meaning, what to do and since
// when, even if the exporter no longer reports a code.
func TestXIDIsExplainedOnTheCard(t *testing.T) {
	for _, test := range []struct {
		w, h int
		view string
		want []string
	}{
		{160, 60, Fleet, []string{"fatal XID 79", "The driver lost the board:", "→ reboot node", "since 3m", "no longer seen", "XID 79: The driver lost"}},
		{120, 40, Fleet, []string{"fatal XID 79", "→ reboot node", "since 3m"}},
		{160, 45, Focus, []string{"Last XID                     79"}},
		{100, 30, Fleet, []string{"fatal XID 79, PCIe", "│ → reboot node                    "}},
		{100, 30, Focus, []string{"│ → reboot node ", "│ ✖ fatal XID 79  since 3m  The driver lost the board: it no longer answers on PCIe. ", "│ ▲ PCIe replays  for over 15m  The PCIe link repeated packets."}},
	} {
		s := state("sick")
		s.GPUs[3].Values[canonical.XIDLast], s.GPUs[3].XIDs = 0, []uint32{31, 79}
		s.GPUs[3].XIDAt = noon.Add(-3 * time.Minute)
		g, _ := at(s, test.view, test.w, test.h)
		for _, want := range test.want {
			if !strings.Contains(g.Glyphs(), want) {
				t.Errorf("%s at %d × %d: no %q in\n%s", test.view, test.w, test.h, want, g.Glyphs())
			}
		}
	}
}

// TestConditionsSayForHowLong checks that a condition that was raised at the first reading is shown
// as at least that old, and a later one with its exact age.
func TestConditionsSayForHowLong(t *testing.T) {
	s := state("sick")
	if p, _ := problemOf(s, s.GPUs[1]); p != (problem{"GPU hot 96°C", "", "check hardware", "for over 15m", styleWarn}) {
		t.Errorf("from the start: %+v", p)
	}
	n := scenarioNamed("eight").nodes(noon)[0]
	s = state("eight")
	n.At, n.FetchedAt = noon.Add(time.Minute), noon.Add(time.Minute)
	n.GPUs[2].Raised = []client.RaisedCondition{{Condition: canonical.CondGPUTemperature, State: canonical.HealthHot}}
	fresh := scenarioNamed("eight").nodes(noon)[0]
	s.History = (&scenario{name: "condition", nodes: oneNode(8)}).history()
	s.History.Add(fresh)
	s.History.Add(n)
	s.Now = noon.Add(3 * time.Minute)
	if p, _ := problemOf(s, n.GPUs[2]); p.since != "since 2m" {
		t.Errorf("later: %+v", p)
	}
	var explained strings.Builder
	s.Nodes, s.GPUs = client.Nodes{n}, n.GPUs
	s.Selected, n.GPUs[2].Action = n.GPUs[2].Key, canonical.ActionCheckHardware
	for _, l := range explainLines(s) {
		explained.WriteString(l.word + " " + l.text + "\n")
	}
	if !strings.Contains(explained.String(), "what to do check hardware\nGPU hot since 2m. Too hot for this model.") {
		t.Errorf("explained:\n%s", explained.String())
	}
	if _, sick := problemOf(s, n.GPUs[1]); sick {
		t.Error("a healthy GPU has a problem")
	}
}

// TestGoneAsksForAReboot checks that a board that is gone asks for at least a reboot of its node,
// and names an XID only if it may explain the loss.
func TestGoneAsksForAReboot(t *testing.T) {
	for _, test := range []struct {
		xids []uint32
		want problem
	}{
		{nil, problem{action: "reboot node"}},
		{[]uint32{31}, problem{action: "reboot node"}},                      // a page fault of a program
		{[]uint32{95}, problem{meaning: "XID 95: ", action: "reboot node"}}, // a present board would ask for a reset
		{[]uint32{31, 79}, problem{meaning: "XID 79: ", action: "reboot node"}},
	} {
		g := &client.GPU{Gone: true, Verdict: client.Verdict{Health: canonical.HealthCrit, XIDs: test.xids, Action: canonical.NumActions}}
		got, ok := problemOf(&State{History: history.NewHistory()}, g)
		if !ok || got.action != test.want.action || !strings.HasPrefix(got.meaning, test.want.meaning) || test.want.meaning == "" && got.meaning != "" {
			t.Errorf("after XIDs %v: %+v, want %+v", test.xids, got, test.want)
		}
	}
}

// TestMissingIsNotGone: a board that the latest reading lacks asks for nothing, and has no badge of a
// fault, until its proxy says that it is gone.
func TestMissingIsNotGone(t *testing.T) {
	g := &client.GPU{Gone: true, Verdict: client.Verdict{Health: canonical.HealthUnknown, XIDs: []uint32{79}, Action: canonical.NumActions}}
	got, ok := problemOf(&State{History: history.NewHistory()}, g)
	if !ok || got.what != "missing from the latest reading" || got.action != "" || got.meaning != "" || got.style == styleCrit {
		t.Errorf("%+v, %t", got, ok)
	}
	if b := badgeOf(g); b == goneBadge || b.style == styleCrit {
		t.Errorf("the badge %+v", b)
	}
	s := state("eight")
	s.GPUs[0].Gone, s.GPUs[0].Health = true, canonical.HealthUnknown
	if totals := sums(s); totals.Gone != 0 || totals.Health[canonical.HealthUnknown] != 1 {
		t.Errorf("%+v", totals)
	}
}

// TestOldReadingsHaveTheirAge checks that stale readings are on the screen only with their age, in
// all views and at all sizes.
func TestOldReadingsHaveTheirAge(t *testing.T) {
	for _, name := range []string{"one", "eight", "mig", "sick"} {
		for _, age := range []time.Duration{7 * time.Second, 13 * time.Second, 19 * time.Second} {
			for _, size := range [][2]int{{40, 10}, {80, 24}, {120, 40}, {240, 67}} {
				for _, view := range []string{Fleet, Focus} {
					s := state(name)
					s.Now = noon.Add(age)
					g, _ := at(s, view, size[0], size[1])
					if want := AgeText(age); !strings.Contains(g.Glyphs(), want) {
						t.Errorf("%s of %s at %v: no %s in\n%s", view, name, size, want, g.Glyphs())
					}
				}
			}
		}
	}
}

// TestStoppedNodeIsDimmedAtOnce checks that a node that does not answer is marked from its first
// failure on: its readings are dim, its warnings are gone, and the age is shown.
func TestStoppedNodeIsDimmedAtOnce(t *testing.T) {
	s := state("sick")
	n := *s.Nodes[0]
	n.Up, n.Err = false, "connection refused"
	for i, g := range n.GPUs {
		n.GPUs[i] = g.Silent()
	}
	s.Nodes, s.Now = client.Nodes{&n}, noon.Add(time.Second)
	s.GPUs, s.Devices = Arrange(s.Nodes, nil, s.Sort)
	for _, view := range []string{Fleet, Focus} {
		g, _ := at(s, view, 160, 45)
		for _, not := range []string{"HOT", "WARN", "CRIT", "fatal", "live"} {
			if strings.Contains(g.Glyphs(), not) {
				t.Errorf("%s still says %s:\n%s", view, not, g.Glyphs())
			}
		}
		if want := "stopped answering 1s ago"; !strings.Contains(g.Glyphs(), "✖ down 1s") || !strings.Contains(g.Glyphs(), "│ "+want) {
			t.Errorf("%s: no %q in\n%s", view, want, g.Glyphs())
		}
		if n := stylesIn(g)[styleUtil2] + stylesIn(g)[styleCompute]; n > 60 { // the header's bar
			t.Errorf("%s: %d cells are bright", view, n)
		}
	}
	if text := fmt.Sprint(n.Freshness(s.Now)); !strings.HasPrefix(text, fmt.Sprint(client.Stale)) {
		t.Errorf("freshness %s", text)
	}
}
