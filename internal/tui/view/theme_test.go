package view

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// letter names a style in golden frames.
func letter(s screen.Style) byte {
	l := looks[s&^screen.Picked].letter
	if s&screen.Picked == 0 {
		return l
	}
	if l == '.' {
		return ','
	}
	return strings.ToUpper(string(l))[0]
}

func TestStylesHaveLettersOfTheirOwn(t *testing.T) {
	seen := map[byte]screen.Style{}
	for s := range numStyles {
		for _, st := range []screen.Style{s, s | screen.Picked} {
			l := letter(st)
			if other, ok := seen[l]; ok && l > '9' {
				t.Errorf("styles %d and %d are both %q", other, st, l)
			}
			seen[l] = st
			if l <= ' ' || l > '~' {
				t.Errorf("style %d is %q", st, l)
			}
		}
	}
}

// colour finds SGR parameters that choose a colour.
var colour = regexp.MustCompile(`\b(3[0-8]|4[0-8]|9[0-7]|10[0-7])\b`)

func TestThemes(t *testing.T) {
	for _, theme := range Themes {
		p := Palette(theme)
		for s := range numStyles {
			for _, sgr := range []string{p[s], p[s|screen.Picked]} {
				if sgr != "" && !regexp.MustCompile(`^\x1b\[0;[0-9;]*[0-9]m$`).MatchString(sgr) {
					t.Errorf("%s: style %d is no SGR sequence: %q", theme, s, sgr)
				}
				if theme == "mono" && colour.MatchString(sgr) {
					t.Errorf("mono: style %d has a colour: %q", s, sgr)
				}
			}
			if p[s] == p[s|screen.Picked] {
				t.Errorf("%s: style %d looks the same when it is picked", theme, s)
			}
		}
		for _, pair := range [][2]screen.Style{{styleCrit, styleWarn}, {styleCrit, styleOK}, {styleWarn, stylePlain}, {styleTrack, styleUtil3}} {
			if theme != "mono" && p[pair[0]] == p[pair[1]] {
				t.Errorf("%s: styles %d and %d look the same", theme, pair[0], pair[1])
			}
		}
	}
	if got, want := *Palette("no such theme"), *Palette("dark"); got != want {
		t.Error("an unknown theme is not the first one")
	}
}

// TestContrast holds the colours of words and numbers against the background that
// they are for: WCAG's 4.5 for text, and 2 for what is meant to stand back.
func TestContrast(t *testing.T) {
	backgrounds := map[string]float64{"dark": luminance(t, "11141a"), "light": luminance(t, "fbfbfb")}
	least := map[screen.Style]float64{styleTrack: 1.4, styleBorder: 1.8, styleIdle: 2.3, styleFaint: 2.8, styleUtil0: 2, styleUtil1: 3}
	for s := range numStyles {
		for theme, hex := range map[string]string{"dark": looks[s].dark, "light": looks[s].light} {
			if hex == "" {
				continue
			}
			a, b := luminance(t, hex), backgrounds[theme]
			ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05)
			want, ok := least[s]
			if !ok {
				want = 4.5
			}
			if ratio < want {
				t.Errorf("%s: style %d has a contrast of %.1f, want %.1f", theme, s, ratio, want)
			}
		}
	}
}

// luminance is that of WCAG 2, of a colour as RRGGBB.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.03928 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

// TestStatesHaveWords holds that each has a word of its own.
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
	glyphs := map[string]rune{}
	for c := range canonical.NumClasses {
		w := classLabels[c]
		if w.Long == "" || screen.Width(w.Long) > longClass || w.Short == "" || screen.Width(w.Short) > shortClass {
			t.Errorf("class %s is shown as %q and %q", canonical.Classes[c].Name, w.Long, w.Short)
		}
		bound := canonical.Classes[c].Bottleneck
		if g, ok := glyphs[bound]; ok && g != w.glyph {
			t.Errorf("bottleneck %s has the glyphs %q and %q", bound, g, w.glyph)
		}
		glyphs[bound] = w.glyph
	}
	for bound, g := range glyphs {
		for other, o := range glyphs {
			if bound != other && g == o {
				t.Errorf("%s and %s have the same glyph", bound, other)
			}
		}
	}
	for c := range canonical.NumConditions {
		if client.Conditions[c].Name == "" {
			t.Errorf("condition %s has no words", canonical.Conditions[c])
		}
	}
}

// TestProxyDecidesWhatIsWrong holds that a reading stands out if the proxy
// raised a condition about it, and not because it is high.
func TestProxyDecidesWhatIsWrong(t *testing.T) {
	g := state("one").GPUs[0]
	g.Values[canonical.Temperature], g.Values[canonical.TemperatureWarning], g.Values[canonical.PCIeReplays] = 99, 90, 14
	for f := range canonical.NumFields {
		if got := fieldStyle(g, f); got != stylePlain {
			t.Errorf("%s has style %d and nothing is raised", canonical.Fields[f].Name, got)
		}
	}
	g.Raised = []client.RaisedCondition{{Condition: canonical.CondXIDFatal, State: canonical.HealthCrit}, {Condition: canonical.CondMemoryTemperature, State: canonical.HealthHot}}
	want := map[canonical.Field]screen.Style{canonical.XIDLast: styleCrit, canonical.MemoryTemperature: styleWarn, canonical.Temperature: stylePlain, canonical.PCIeReplays: stylePlain}
	for f, st := range want {
		if got := fieldStyle(g, f); got != st {
			t.Errorf("%s has style %d, want %d", canonical.Fields[f].Name, got, st)
		}
	}
	g.Values[canonical.XIDLast], g.Values[canonical.MemoryTemperature] = 79, 97
	if got := string(g.AppendWhy(nil)); got != "fatal XID 79, memory hot 97°C" {
		t.Errorf("why: %q", got)
	}
	g.Raised = []client.RaisedCondition{{Condition: canonical.CondXIDRecent, State: canonical.HealthWarn}}
	g.Values[canonical.XIDLast] = 0
	if got := string(g.AppendWhy(nil)); got != "recent XID" {
		t.Errorf("after a reset: %q", got)
	}
	for _, c := range []struct {
		condition canonical.Condition
		want      string
	}{{canonical.CondXIDFatal, "fatal XID 48 79"}, {canonical.CondXIDRecent, "recent XID 54"}, {canonical.CondXIDRepeated, "repeated XID 13 31 32 …"}} {
		g.XIDs, g.Values[canonical.XIDLast] = []uint32{13, 31, 32, 39, 45, 48, 54, 79}, 45
		g.Raised = []client.RaisedCondition{{Condition: c.condition}}
		if got := string(g.AppendWhy(nil)); got != c.want {
			t.Errorf("%v: %q, want %q", c.condition, got, c.want)
		}
	}
}

// TestCutBoardsAreNotUnknown holds that a board which is known from its instances has
// no class, and the screen shows why.
func TestCutBoardsAreNotUnknown(t *testing.T) {
	g := gpu("0", "")
	if got := classOf(g).Short; got != "unknown" {
		t.Errorf("%q", got)
	}
	if g.Cut = true; classOf(g).Short != "in MIG" {
		t.Errorf("cut: %q", classOf(g).Short)
	}
}
