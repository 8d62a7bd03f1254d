package view

import (
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// letter names a style in golden frames.
func letter(s screen.Style) byte {
	s &^= screen.Shaded
	l := looks[s&^screen.Picked].letter
	if s&screen.Picked == 0 {
		return l
	}
	if l == '.' {
		return ','
	}
	return strings.ToUpper(string(l))[0]
}

// TestStatesHaveWords checks that each state has its own word, and each bottleneck its own glyphs.
func TestStatesHaveWords(t *testing.T) {
	seen := map[string]bool{goneBadge.text: true, instanceBadge.text: true}
	for h, b := range healthBadges {
		if b.text == "" || screen.Width(b.text) > badgeWidth || seen[b.text] {
			t.Errorf("state %d is shown as %q", h, b.text)
		}
		seen[b.text] = true
		if h != int(canonical.HealthUnknown) && !strings.Contains(strings.ToLower(b.text), canonical.HealthStates[h]) {
			t.Errorf("state %s is shown as %q", canonical.HealthStates[h], b.text)
		}
	}
	strips := map[string]rune{}
	for c := range canonical.NumClasses {
		w := classLabels[c]
		if w.Long == "" || screen.Width(w.Long) > longClass || w.Short == "" || screen.Width(w.Short) > shortClass {
			t.Errorf("class %s is shown as %q and %q", canonical.Classes[c].Name, w.Long, w.Short)
		}
		bound := canonical.Classes[c].Bottleneck
		if g, ok := strips[bound]; ok && g != w.strip {
			t.Errorf("bottleneck %s has the glyphs %q and %q", bound, g, w.strip)
		}
		strips[bound] = w.strip
	}
	for bound, g := range strips {
		for other, o := range strips {
			if bound != other && (g == o || ascii(t, g) == ascii(t, o)) {
				t.Errorf("%s and %s have the same glyph", bound, other)
			}
		}
	}
}

// ascii returns what a terminal without Unicode shows for a rune.
func ascii(t *testing.T, c rune) string {
	on := tcell.NewSimulationScreen("US-ASCII")
	if err := on.Init(); err != nil {
		t.Fatal(err)
	}
	on.SetSize(1, 1)
	var g screen.Grid
	g.Reset(1, 1)
	g.All().Set(0, 0, c, stylePlain)
	g.Show(on, &screen.Palette{})
	shown, _, _ := on.Get(0, 0)
	if len(shown) != 1 {
		t.Errorf("%q is shown as %q", c, shown)
	}
	return shown
}

// TestProxyDecidesWhatIsWrong checks that a reading stands out if the proxy raised a condition
// about it, and not because it is high.
func TestProxyDecidesWhatIsWrong(t *testing.T) {
	g := state("one").GPUs[0]
	g.Values[canonical.Temperature], g.Values[canonical.TemperatureWarning], g.Values[canonical.PCIeReplays] = 99, 90, 14
	for m := client.MetricNVML; m < client.NumMetrics; m++ {
		if got := readingStyle(g, m); got != stylePlain {
			t.Errorf("%s has style %d and nothing is raised", client.Metrics[m].Name, got)
		}
	}
	g.Raised = []client.RaisedCondition{{Condition: canonical.CondXIDFatal, State: canonical.HealthCrit}, {Condition: canonical.CondMemoryTemperature, State: canonical.HealthHot}}
	want := map[client.Metric]screen.Style{client.MetricXID: styleCrit, client.MetricMemoryTemperature: styleWarn, client.MetricTemperature: stylePlain, client.MetricReplays: stylePlain}
	for m, st := range want {
		if got := readingStyle(g, m); got != st {
			t.Errorf("%s has style %d, want %d", client.Metrics[m].Name, got, st)
		}
	}
	g.Values[canonical.XIDLast], g.Values[canonical.MemoryTemperature] = 79, 97
	if got := g.Why(); got != "fatal XID 79, memory hot 97°C" {
		t.Errorf("why: %q", got)
	}
	g.Raised = []client.RaisedCondition{{Condition: canonical.CondXIDRecent, State: canonical.HealthWarn}}
	g.Values[canonical.XIDLast] = 0
	if got := g.Why(); got != "recent XID" {
		t.Errorf("after a reset: %q", got)
	}
	for _, c := range []struct {
		condition canonical.Condition
		want      string
	}{{canonical.CondXIDFatal, "fatal XID 48 79"}, {canonical.CondXIDRecent, "recent XID 54"}, {canonical.CondXIDRepeated, "repeated XID 13 31 32 …"}} {
		g.XIDs, g.Values[canonical.XIDLast] = []uint32{13, 31, 32, 39, 45, 48, 54, 79}, 45
		g.Raised = []client.RaisedCondition{{Condition: c.condition}}
		if got := g.Why(); got != c.want {
			t.Errorf("%v: %q, want %q", c.condition, got, c.want)
		}
	}
}

// TestCutBoardsAreNotUnknown checks that the screen shows why a board with instances has no class.
func TestCutBoardsAreNotUnknown(t *testing.T) {
	g := gpu("0", "")
	if got := classOf(g).Short; got != "unknown" {
		t.Errorf("%q", got)
	}
	if g.Cut = true; classOf(g).Short != "in MIG" {
		t.Errorf("cut: %q", classOf(g).Short)
	}
}
