package view

import (
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// wrap breaks a text at its spaces into lines of at most w cells. A word that is
// longer has a line of its own.
func wrap(text string, w int) []string {
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(text) {
		n := screen.Width(word)
		if used > 0 && used+1+n > w {
			lines, line, used = append(lines, line), "", 0
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	if used > 0 {
		lines = append(lines, line)
	}
	return lines
}
