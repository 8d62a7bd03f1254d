package dmon

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// TestShortcut parses random texts twice, with and without the beginnings of rows that the parser
// remembers: both give the same samples, the same ticks and the same counts.
func TestShortcut(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	taken := 0
	texts := [][]string{
		{ // a header with a narrower column of entities
			"#Entity         F0\n", "GPU-I 1234      0.5\n", "#Entity F0\n", "GPU-I 1234      0.5\n",
		},
	}
	for range 2000 {
		texts = append(texts, randomText(rng))
	}
	for _, text := range texts {
		fast, slow := Parser{}, Parser{}
		quick, full := &raw.Batch{Dict: raw.NewDict()}, &raw.Batch{Dict: raw.NewDict()}
		for n, line := range text {
			for range 2 { // a line that begins a tick comes again
				for i := range slow.entities {
					slow.entities[i].cell = nil
				}
				if e, _ := fast.expect(trimRight([]byte(line)), leadingBlanks([]byte(line))); e != none {
					taken++
				}
				a, b := fast.Line(quick, []byte(line)), slow.Line(full, []byte(line))
				if a != b || quick.Skipped != full.Skipped || !slices.Equal(quick.Samples, full.Samples) || fast.Rows() != slow.Rows() {
					t.Fatalf("line %d of\n%s\nwith the shortcut: %v, %d skipped, %v\nwithout: %v, %d skipped, %v",
						n+1, strings.Join(text, ""), a, quick.Skipped, quick.Samples, b, full.Skipped, full.Samples)
				}
				if a {
					break
				}
				quick.Reset()
				full.Reset()
			}
		}
	}
	if taken < 1000 {
		t.Errorf("the shortcut was taken for %d lines, want at least 1000", taken)
	}
}

// randomText returns the lines of a few ticks, below headers of any layout: most rows look as dmon
// writes them, and others like them.
func randomText(rng *rand.Rand) (text []string) {
	heads := []string{"#Entity", "#Entity", "#Entity", "# Entity", "  #Entity"}
	entities := []string{"GPU 0", "GPU 0", "GPU 1", "GPU-I 7", "GPU-I 10", "GPU-I 1000", "GPU-CI 3", "Switch 0", "GPU 0 LINK 5", "GPU  0", "GPU 00", "GPU 12345678901", "ID"}
	numbers := []string{"0.500", "412.337", "7", "0", "N/A", "", "1..."}
	words := []string{"LINK 5", "LINK", "L", "lost", "0.1", "12 7"}
	pick := func(of []string) string { return of[rng.IntN(len(of))] }
	rarely := func() bool { return rng.IntN(12) == 0 }
	columns := 1 + rng.IntN(3)
	var width, cell int
	for range 4 {
		if len(text) == 0 || rng.IntN(2) == 0 {
			width, cell = []int{8, 9, 10, 16}[rng.IntN(4)], 5+rng.IntN(4)
			head := fmt.Sprintf("%-*s", width, pick(heads))
			for i := range columns {
				head += fmt.Sprintf("%-*s", cell, fmt.Sprintf("F%d", i))
			}
			text = append(text, head+"\n")
		}
		narrow := width
		if rarely() {
			narrow = 6
		}
		for _, e := range []string{"GPU 0", pick(entities), pick(entities)} {
			row := fmt.Sprintf("%-*s", narrow, e)
			switch rng.IntN(36) {
			case 0, 1, 2:
				row = "  " + row
			case 3, 4, 5:
				row = e + pick([]string{" ", "\t", "         "})
			case 6, 7, 8:
				row = row[:narrow-1] + "\t"
			}
			for range columns {
				value := pick(numbers)
				if rarely() {
					value = pick(words)
				}
				row += fmt.Sprintf("%-*s", cell, value)
			}
			text = append(text, row+"\n")
			if rng.IntN(3) == 0 {
				text = append(text, pick(text))
			}
		}
	}
	return text
}
