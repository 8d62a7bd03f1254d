package dcgm

import (
	"strings"
	"testing"
)

// FuzzTexts: texts of boards stand in what dmon printed, and are fit to be shown.
func FuzzTexts(f *testing.F) {
	f.Add("#Entity         DRVER          DEVBVER\nID              #\nGPU 0           550.163.01     96.00.74.00.09\n", byte(2))
	f.Add("#Entity   DRVER          VBVER\nGPU 1     550.163.01     96.00\nGPU 1 x\nGPU -1  \x1b y\n", byte(2))
	f.Add("# a\nGPU 0", byte(1))
	f.Fuzz(func(t *testing.T, output string, columns byte) {
		var all []int
		for i := range int(columns) % (NumTexts + 1) {
			all = append(all, i)
		}
		boards := parseTexts([]byte(output), all)
		if len(boards) > maxBoards {
			t.Errorf("%d boards", len(boards))
		}
		for _, b := range boards {
			for _, text := range b.Texts {
				if len(text) > maxText || strings.ContainsAny(text, "\x00\x1b\n") || printableASCII(output) && !strings.Contains(output, text) {
					t.Errorf("%q has the text %q", output, text)
				}
			}
		}
	})
}
