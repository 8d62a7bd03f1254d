package diag

import (
	"strconv"
	"strings"
)

// guard precedes a text in CSV that a spreadsheet would compute.
const guard = "'"

// IsFormula reports whether a spreadsheet would compute the CSV cell s, which may run
// programs or send data: s begins with =, +, - or @, or their wide forms, and is not a
// number. Leading guards and blanks do not count, so that Unguarded can remove a guard.
func IsFormula(s string) bool {
	for _, r := range s {
		switch Rune(r) {
		case ' ', '\'':
			continue
		case '=', '+', '-', '@', '＝', '＋', '－', '＠':
			return !isNumber(s)
		}
		return false
	}
	return false
}

// isNumber reports whether s is a number in digits.
func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil && strings.Trim(s, "0123456789+-.eE") == ""
}

// AppendGuard appends the guard that s needs in a CSV cell, if any.
func AppendGuard(dst []byte, s string) []byte {
	if IsFormula(s) {
		return append(dst, guard...)
	}
	return dst
}

// Unguarded returns the text of a CSV cell without the guard of AppendGuard.
func Unguarded(cell string) string {
	if text, guarded := strings.CutPrefix(cell, guard); guarded && IsFormula(text) {
		return text
	}
	return cell
}
