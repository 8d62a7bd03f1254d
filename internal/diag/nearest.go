package diag

import "strings"

// Nearest returns the word of known that given was probably meant to be, "" if
// none is near: at most half of its letters may differ.
func Nearest(given string, known []string) string {
	return Within(given, known, len(given)/2)
}

// Instead ends a report of a word that is none of the known ones with what to write.
func Instead(word string, known []string) string {
	switch near := Nearest(word, known); {
	case near != "":
		return "; did you mean " + near + "?"
	case len(known) > 0:
		return "; the ones here are " + strings.Join(known, ", ")
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

// longestWord bounds the work on what is no word at all.
const longestWord = 100

// editDistance is Levenshtein's: the least number of single-letter changes that
// turn a into b.
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
