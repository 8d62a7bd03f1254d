package rules

import (
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// suggest returns the name in known that was probably meant, "" if none is near: more than
// half of the words of both must have a partner. Edit distance is a bad measure for such
// long names: people omit words and shorten others.
func suggest(name string, known []string) string {
	words := strings.Split(name, "_")
	best, most := []string(nil), 0.5
	for _, candidate := range known {
		others := strings.Split(candidate, "_")
		share := 2 * float64(partners(words, others)) / float64(len(words)+len(others))
		switch {
		case share > most:
			best, most = []string{candidate}, share
		case share == most && best != nil:
			best = append(best, candidate)
		}
	}
	if near := diag.Nearest(name, best); near != "" || len(best) == 0 {
		return near
	}
	return best[0]
}

// partners counts the words with a partner in others, at most one each: the same word, a
// prefix or extension of it, or one with the same first letter and few other letters.
func partners(words, others []string) (n int) {
	taken := make([]bool, len(others))
	for _, word := range words {
		for i, other := range others {
			if !taken[i] && alike(word, other) {
				taken[i] = true
				n++
				break
			}
		}
	}
	return n
}

// shortest is the length of a word from which a part of it is recognized.
const shortest = 3

func alike(a, b string) bool {
	if min(len(a), len(b)) < shortest {
		return a == b
	}
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) || a[0] == b[0] && diag.Nearest(a, []string{b}) != ""
}
