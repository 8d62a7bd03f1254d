package view

import (
	"fmt"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// The styles, by what they mean. Red is only for what is broken and yellow only for
// warnings; utilization goes from dim to bright in one hue, because high is good.
const (
	stylePlain    screen.Style = iota // numbers and words
	styleLabel                        // names of numbers
	styleStrong                       // the most important
	styleFaint                        // old, missing or unimportant
	styleTrack                        // the empty part of a bar
	styleBorder                       // of a card
	styleSelected                     // of the selected card
	styleAccent                       // keys, the program's name
	styleOK
	styleWarn
	styleCrit
	styleWarnBorder // of a card whose device warns, or is broken
	styleCritBorder
	styleUtil0 // below 10 %
	styleUtil1 // below 40 %
	styleUtil2 // below 75 %
	styleUtil3 // above
	styleCompute
	styleMemory
	styleIO
	styleMixed
	styleIdle
	styleSeries0 // the lines of a chart
	styleSeries1
	styleSeries2
	styleSeries3
	styleSeries4
	styleSeries5
	numStyles
)

// numSeries is the number of lines that can be distinguished.
const numSeries = 6

// look is a style in each theme. Colours are RRGGBB, "" for the terminal's own;
// ansi16 and mono are SGR parameters. Bold applies to dark and light.
type look struct {
	letter       byte // in the golden frames, where a capital is picked
	dark, light  string
	ansi16, mono string
	bold         bool
}

// looks is indexed by style.
var looks = [numStyles]look{
	stylePlain:      {'.', "", "", "", "", false},
	styleLabel:      {'l', "8b95a7", "5b6472", "37", "", false},
	styleStrong:     {'b', "f2f4f8", "10141c", "1", "1", true},
	styleFaint:      {'f', "626b7c", "8a93a2", "90", "2", false},
	styleTrack:      {'t', "3c4454", "c3c9d3", "90", "2", false},
	styleBorder:     {'o', "465064", "b3bac6", "90", "2", false},
	styleSelected:   {'s', "e6ebf5", "1c2330", "97;1", "1", false},
	styleAccent:     {'a', "6cb6ff", "0b5cad", "94", "1", false},
	styleOK:         {'k', "63c987", "1b7f43", "32", "", false},
	styleWarn:       {'w', "f2c14e", "8f5b00", "33;1", "1", true},
	styleCrit:       {'r', "ff6b6b", "c4161c", "31;1", "1;7", true},
	styleWarnBorder: {'v', "f2c14e", "8f5b00", "33", "1", false},
	styleCritBorder: {'q', "ff6b6b", "c4161c", "31", "1", false},
	styleUtil0:      {'0', "47706f", "8fb3ae", "36", "", false},
	styleUtil1:      {'1', "3f9c92", "4a938a", "36", "", false},
	styleUtil2:      {'2', "4cc9b0", "16796d", "96", "", false},
	styleUtil3:      {'3', "7ff0d4", "00564d", "96;1", "1", true},
	styleCompute:    {'c', "4cc9b0", "16796d", "36", "", false},
	styleMemory:     {'m', "7aa2f7", "2f5fc4", "94", "", false},
	styleIO:         {'i', "c792ea", "7d3fae", "35", "", false},
	styleMixed:      {'x', "a3adbf", "59626f", "37", "", false},
	styleIdle:       {'d', "5b6474", "98a1af", "90", "2", false},
	styleSeries0:    {'4', "4cc9b0", "16796d", "36", "", false},
	styleSeries1:    {'5', "7aa2f7", "2f5fc4", "94", "", false},
	styleSeries2:    {'6', "c792ea", "7d3fae", "35", "", false},
	styleSeries3:    {'7', "d5dbe6", "39414f", "97", "1", false},
	styleSeries4:    {'8', "f0a6ca", "b03a78", "95", "", false},
	styleSeries5:    {'9', "9ccc65", "4f7a12", "92", "", false},
}

// reverse is the SGR parameter that swaps the two colours of a cell.
const reverse = "7"

// picked are the SGR parameters that mark what is selected, by theme.
var picked = map[string]string{"dark": "48;2;37;46;63", "light": "48;2;219;230;245", "ansi16": reverse, "mono": reverse}

// Palette returns every style in one of Themes; any other name is the first.
func Palette(theme string) *screen.Palette {
	if _, ok := picked[theme]; !ok {
		theme = Themes[0]
	}
	p := new(screen.Palette)
	for s := range numStyles {
		sgr := looks[s].sgr(theme)
		if sgr != "" {
			p[s] = "\x1b[0;" + sgr + "m"
		}
		if picked[theme] == reverse {
			sgr = "" // reversed colours are blotches
		}
		p[s|screen.Picked] = "\x1b[0;" + strings.TrimPrefix(sgr+";"+picked[theme], ";") + "m"
	}
	return p
}

// sgr returns the SGR parameters of l in a theme, "" for the terminal's own.
func (l *look) sgr(theme string) string {
	switch theme {
	case "ansi16":
		return l.ansi16
	case "mono":
		return l.mono
	case "light":
		return l.color(l.light)
	default:
		return l.color(l.dark)
	}
}

// color returns the SGR parameters of a colour.
func (l *look) color(hex string) string {
	var r, g, b int
	if _, err := fmt.Sscanf(hex, "%02x%02x%02x", &r, &g, &b); err != nil {
		return ""
	}
	sgr := fmt.Sprintf("38;2;%d;%d;%d", r, g, b)
	if l.bold {
		return "1;" + sgr
	}
	return sgr
}

// symbols returns one of SymbolSets.
func symbols(name string) screen.Symbols {
	switch name {
	case "ascii":
		return screen.ASCII
	case "block":
		return screen.Blocks
	default:
		return screen.Braille
	}
}
