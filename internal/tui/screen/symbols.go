package screen

import "slices"

// Symbols is the set of runes that a Grid is drawn with.
type Symbols uint8

// The sets: that of a terminal with Unicode, and the one that every terminal can show.
const (
	Braille Symbols = iota
	ASCII
)

// folded maps runes to the ASCII runes that replace them. Bars, levels and lines keep their
// shape; the others keep their meaning.
var folded = map[rune]rune{
	'─': '-', '│': '|', '╭': '+', '╮': '+', '╰': '+', '╯': '+', '├': '+', '└': '`', '┤': '+', '┬': '+', '┴': '+', '┼': '+', '━': '=', '╸': '-', '═': '#', '╍': '%', '╌': ' ',
	'█': '#', '▉': '#', '▊': '#', '▋': '#', '▌': '#', '▍': '-', '▎': '-', '▏': '-',
	'▁': '_', '▂': '.', '▃': ':', '▄': '-', '▅': '=', '▆': '+', '▇': '*',
	'▓': '%', '▒': '=', '░': '-', '·': '.', '•': '*', '…': '~', '°': ' ', '×': 'x', '≤': '<',
	'↑': '^', '↓': 'v', '←': '<', '→': '>', '▲': '!', '▼': 'v', '✖': 'X', '●': '*', '○': 'o', '▸': '>', '■': '#', '✔': '+', 'Δ': 'd', '⏎': '<', '▶': '>', '‖': '"',
}

// fold returns the ASCII rune that replaces c.
func fold(c rune) rune {
	if a, ok := folded[c]; ok {
		return a
	}
	return '?'
}

// dots is a set of runes that each show a pattern of cols × rows dots. Bit
// row*cols+col of a pattern is the dot at col, row, counted from the top left.
type dots struct {
	cols, rows int
	runes      []rune // indexed by pattern
}

// dotSets is indexed by Symbols.
var dotSets = [...]dots{
	Braille: {2, 4, brailleRunes()},
	ASCII:   {1, 2, []rune(" '.:")},
}

// brailleRunes returns the 256 patterns of Unicode's braille block in our order of bits. In
// Unicode's order, the lowest row comes last.
func brailleRunes() []rune {
	bit := [8]rune{0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80}
	runes := make([]rune, 256)
	for pattern := range runes {
		c := rune(0x2800)
		for i, b := range bit {
			if pattern>>i&1 == 1 {
				c |= b
			}
		}
		runes[pattern] = c
	}
	return runes
}

// pattern returns the dots that c shows, or 0 if c is not in the set.
func (d *dots) pattern(c rune) int {
	return max(0, slices.Index(d.runes, c))
}
