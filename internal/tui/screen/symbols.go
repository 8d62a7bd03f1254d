package screen

// Symbols is the set of runes that a Grid is drawn with.
type Symbols uint8

// The sets, from the finest to the one that every terminal can show. Blocks has no braille;
// ASCII has only ASCII.
const (
	Braille Symbols = iota
	Blocks
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
	Blocks:  {2, 2, []rune(" ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█")},
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
	if len(d.runes) == 256 {
		return brailleBits(c)
	}
	for i, r := range d.runes {
		if r == c {
			return i
		}
	}
	return 0
}

// brailleBits undoes brailleRunes for one rune.
func brailleBits(c rune) int {
	if c < 0x2800 || c > 0x28ff {
		return 0
	}
	b := int(c - 0x2800)
	return b&0x01 | b&0x08>>2 | b&0x02<<1 | b&0x10>>1 | b&0x04<<2 | b&0x20 | b&0xc0
}
