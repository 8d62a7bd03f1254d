package diag

import "strings"

// Nearest returns the word of known that given probably means, "" if all differ from it in
// more than half of its letters.
func Nearest(given string, known []string) string {
	return Within(given, known, len(given)/2)
}

// Instead returns the end of a report of an unknown word: what to write instead.
func Instead(word string, known []string) string {
	switch near := Nearest(word, known); {
	case near != "":
		return "; did you mean " + near + "?"
	case len(known) > 0:
		return "; the known ones are " + strings.Join(known, ", ")
	}
	return "; see the documentation"
}

// Within returns the first of known's words that differ from given in the fewest
// letters, "" if that is more than letters.
func Within(given string, known []string, letters int) string {
	best, distance := "", letters+1
	for _, word := range known {
		if d := editDistance(given, word); d < distance {
			best, distance = word, d
		}
	}
	return best
}

// longestWord bounds the work on long input, in bytes.
const longestWord = 100

// editDistance returns Levenshtein's distance: the least number of single-letter changes
// that turn a into b.
func editDistance(a, b string) int {
	if len(a) > longestWord {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
