package host

import (
	"regexp"
	"strings"
)

var (
	longRun = regexp.MustCompile(`[A-Za-z0-9+/_-]{40,}={0,2}`)
	hexRun  = regexp.MustCompile(`^[0-9A-Fa-f]+$`)
)

// maskBlobs masks long runs of the letters of base64 or hexadecimal that look
// random.
func maskBlobs(text string) string {
	return longRun.ReplaceAllStringFunc(text, func(run string) string {
		if isRandom(run) {
			return masked
		}
		return run
	})
}

// isRandom tells base64 and hexadecimal from the paths, names and UUIDs that people
// write. Of 64 letters two are + and /, or - and _, so random text has about one of
// them in 32; what is made of words has more, or lacks capitals or digits.
func isRandom(run string) bool {
	run = strings.TrimRight(run, "=")
	if hexRun.MatchString(run) {
		return true
	}
	const share = 12
	separators := 0
	for _, c := range run {
		if strings.ContainsRune("+/-_", c) {
			separators++
		}
	}
	return separators <= len(run)/share &&
		strings.ContainsAny(run, "0123456789") &&
		strings.ToLower(run) != run && strings.ToUpper(run) != run
}
