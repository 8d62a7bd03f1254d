package view

import (
	"strconv"
	"strings"

	"github.com/gdamore/tcell/v2"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// Depth is how many colours a terminal shows.
type Depth uint8

// The depths, from the least.
const (
	NoColors Depth = iota
	Colors8
	Colors16
	Colors256
	TrueColor
)

// tones are the colours of a style on one background. Each was picked by hand for its depth: the
// nearest colour that a terminal finds by itself often has another hue; a bluish gray becomes
// lavender or blue.
type tones struct {
	full    string // RRGGBB; "" for the terminal's own
	indexed uint8  // of xterm's 256, without the first 16, which the user sets; 0 for the terminal's own
	basic   string // SGR parameters of the 16 colours, which the user sets
}

// look is a style in each theme.
type look struct {
	letter      byte // in the golden frames, where a capital means picked
	dark, light tones
	mono        string // SGR parameters
	bold        bool   // for full and indexed colours; basic has its own parameter
}

// looks is indexed by style.
var looks = [numStyles]look{
	stylePlain:      {'.', tones{}, tones{}, "", false},
	styleLabel:      {'l', tones{"8b95a7", 246, "37"}, tones{"5b6472", 241, "90"}, "", false},
	styleStrong:     {'b', tones{"f2f4f8", 255, "1"}, tones{"10141c", 233, "1"}, "1", true},
	styleFaint:      {'f', tones{"626b7c", 242, "90"}, tones{"8a93a2", 245, "90"}, "2", false},
	styleTrack:      {'t', tones{"3c4454", 238, "90"}, tones{"c3c9d3", 251, "90"}, "2", false},
	styleBorder:     {'o', tones{"465064", 240, "90"}, tones{"b3bac6", 249, "90"}, "2", false},
	styleSelected:   {'s', tones{"e6ebf5", 255, "97;1"}, tones{"1c2330", 234, "1"}, "1", false},
	styleAccent:     {'a', tones{"6cb6ff", 75, "94"}, tones{"0b5cad", 25, "34"}, "1", false},
	styleOK:         {'k', tones{"63c987", 78, "32"}, tones{"1b7f43", 28, "32"}, "", false},
	styleWarn:       {'w', tones{"f2c14e", 221, "33;1"}, tones{"8f5b00", 94, "30;43"}, "1", true},
	styleCrit:       {'r', tones{"ff6b6b", 203, "31;1"}, tones{"c4161c", 160, "31;1"}, "1;7", true},
	styleWarnBorder: {'v', tones{"f2c14e", 221, "33"}, tones{"8f5b00", 94, "33"}, "1", false},
	styleCritBorder: {'q', tones{"ff6b6b", 203, "31"}, tones{"c4161c", 160, "31"}, "1", false},
	styleUtil0:      {'0', tones{"47706f", 66, "36"}, tones{"8fb3ae", 109, "36"}, "", false},
	styleUtil1:      {'1', tones{"3f9c92", 73, "36"}, tones{"4a938a", 66, "36"}, "", false},
	styleUtil2:      {'2', tones{"4cc9b0", 79, "96"}, tones{"16796d", 29, "34"}, "", false},
	styleUtil3:      {'3', tones{"7ff0d4", 122, "96;1"}, tones{"00564d", 23, "34;1"}, "1", true},
	styleCompute:    {'c', tones{"4cc9b0", 79, "36"}, tones{"16796d", 29, "34"}, "", false},
	styleMemory:     {'m', tones{"7aa2f7", 111, "94"}, tones{"2f5fc4", 26, "36"}, "", false},
	styleIO:         {'i', tones{"c792ea", 177, "35"}, tones{"7d3fae", 91, "35"}, "", false},
	styleMixed:      {'x', tones{"a3adbf", 248, "37"}, tones{"59626f", 241, "90"}, "", false},
	styleIdle:       {'d', tones{"5b6474", 241, "90"}, tones{"98a1af", 246, "90"}, "2", false},
	styleSeries0:    {'4', tones{"4cc9b0", 79, "36"}, tones{"16796d", 29, "34"}, "", false},
	styleSeries1:    {'5', tones{"7aa2f7", 111, "94"}, tones{"2f5fc4", 26, "36"}, "", false},
	styleSeries2:    {'6', tones{"c792ea", 177, "35"}, tones{"7d3fae", 91, "35"}, "", false},
	styleSeries3:    {'7', tones{"d5dbe6", 253, "97"}, tones{"39414f", 238, "1"}, "1", false},
	styleSeries4:    {'8', tones{"f0a6ca", 218, "95"}, tones{"b03a78", 125, "95"}, "", false},
	styleSeries5:    {'9', tones{"9ccc65", 149, "92"}, tones{"4f7a12", 58, "32"}, "", false},
	styleSeries6:    {'h', tones{"5fd7ff", 81, "96"}, tones{"0087af", 31, "94"}, "", false},
	styleSeries7:    {'j', tones{"c0986c", 137, "32"}, tones{"7c5e3c", 95, "92"}, "", false},
	styleBand:       {'g', tones{"28313f", 237, "90"}, tones{"d8dee8", 253, "90"}, "2", false},
}

// backgrounds are those of a selection or a band, in dark and in light themes. With fewer colours
// the selection is reversed, and only its runes show a band.
type backgrounds map[Depth][2]tcell.Color

var (
	picked = backgrounds{TrueColor: {tcell.NewHexColor(0x252e3f), tcell.NewHexColor(0xdbe6f5)}, Colors256: {tcell.PaletteColor(237), tcell.PaletteColor(254)}}
	shaded = backgrounds{TrueColor: {tcell.NewHexColor(0x28313f), tcell.NewHexColor(0xd8dee8)}, Colors256: {tcell.PaletteColor(237), tcell.PaletteColor(253)}}
)

// Palette returns all styles of one of Themes, or of the first for another name, for a terminal
// of a depth. light is the background for a theme that does not imply one.
func Palette(theme string, light bool, depth Depth) *screen.Palette {
	switch theme {
	case "light":
		light = true
	case "ansi16":
		depth = min(depth, Colors16)
	case "mono":
		depth = NoColors
	default:
		light = false
	}
	p, background := new(screen.Palette), 0
	if light {
		background = 1
	}
	for s := range numStyles {
		st := looks[s].style(light, depth)
		p[s], p[s|screen.Shaded] = st, st
		if colors, ok := shaded[depth]; ok {
			p[s|screen.Shaded] = st.Background(colors[background])
		}
		p[s|screen.Picked] = tcell.StyleDefault.Reverse(true) // without colours, which would become blotches
		if colors, ok := picked[depth]; ok {
			p[s|screen.Picked] = st.Background(colors[background])
		}
		p[s|screen.Picked|screen.Shaded] = p[s|screen.Picked]
	}
	return p
}

// style returns the look of l on a terminal.
func (l *look) style(light bool, depth Depth) tcell.Style {
	t := &l.dark
	if light {
		t = &l.light
	}
	st := tcell.StyleDefault.Bold(l.bold)
	switch {
	case depth == NoColors:
		return sgr(l.mono, depth)
	case depth <= Colors16:
		return sgr(t.basic, depth)
	case t.full == "":
		return st
	case depth == Colors256:
		return st.Foreground(tcell.PaletteColor(int(t.indexed)))
	default:
		return st.Foreground(tcell.GetColor("#" + t.full))
	}
}

// sgr returns the look that SGR parameters set. With 8 colours, the bright ones are bold, and gray is
// dim.
func sgr(parameters string, depth Depth) tcell.Style {
	st := tcell.StyleDefault
	for p := range strings.SplitSeq(parameters, ";") {
		switch n, _ := strconv.Atoi(p); {
		case n == 1:
			st = st.Bold(true)
		case n == 2:
			st = st.Dim(true)
		case n == 7:
			st = st.Reverse(true)
		case n == 90 && depth == Colors8:
			st = st.Dim(true)
		case n >= 90 && depth == Colors8:
			st = st.Foreground(tcell.PaletteColor(n - 90)).Bold(true)
		case n >= 90:
			st = st.Foreground(tcell.PaletteColor(n - 90 + 8))
		case n >= 40:
			st = st.Background(tcell.PaletteColor(n - 40))
		case n >= 30:
			st = st.Foreground(tcell.PaletteColor(n - 30))
		}
	}
	return st
}
