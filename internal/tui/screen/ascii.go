package screen

import "unicode/utf8"

// folded maps runes to the ASCII runes that replace them on a terminal without Unicode. Bars, levels
// and lines keep their shape; the others keep their meaning.
var folded = map[rune]rune{
	'─': '-', '│': '|', '╭': '+', '╮': '+', '╰': '+', '╯': '+', '├': '+',
	'┤': '+', '┬': '+', '┴': '+', '┼': '+', '━': '=', '╸': '-', '═': '#', '╍': '%', '╌': ' ',
	'█': '#', '▉': '#', '▊': '#', '▋': '#', '▌': '#', '▍': '-', '▎': '-', '▏': '-',
	'▁': '_', '▂': '.', '▃': ':', '▄': '-', '▅': '=', '▆': '+', '▇': '*',
	'▓': '%', '▒': '=', '░': '-', '·': '.', '•': '*', '…': '~', '°': ' ', '×': 'x', '≤': '<',
	'↑': '^', '↓': 'v', '←': '<', '→': '>', '▲': '!', '▼': 'v', '✖': 'X', '●': '*', '○': 'o', '▸': '>', '■': '#', '✔': '+', 'Δ': 'd', '⏎': '<', '▶': '>', '‖': '"',
}

// fold returns the ASCII rune that replaces c. Of the dots of a chart it keeps which half of the
// cell they are in.
func fold(c rune) rune {
	const upper, lower = 0x1b, 0xe4
	a, known := folded[c]
	switch {
	case c < utf8.RuneSelf:
		return c
	case known:
		return a
	case c&^0xff != braille:
		return '?'
	case c&upper != 0 && c&lower != 0:
		return ':'
	case c&upper != 0:
		return '\''
	}
	return '.'
}
