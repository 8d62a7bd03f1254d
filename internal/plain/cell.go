package plain

import (
	"strconv"
	"strings"
)

// guard is put in front of a text of CSV that a spreadsheet would compute.
const guard = "'"

// IsFormula reports whether a spreadsheet that opens s in CSV would compute it, with what
// that may run or send: it begins with =, +, - or @, or their wide forms, and is not a
// number. Guards and blanks in front do not count, so that a guard can be taken off again.
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

// isNumber reports whether s is one in digits.
func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil && strings.Trim(s, "0123456789+-.eE") == ""
}

// AppendGuard appends what goes in front of s in a cell of CSV.
func AppendGuard(dst []byte, s string) []byte {
	if IsFormula(s) {
		return append(dst, guard...)
	}
	return dst
}

// Unguarded returns the text of a cell of CSV: AppendGuard undone.
func Unguarded(cell string) string {
	if text, guarded := strings.CutPrefix(cell, guard); guarded && IsFormula(text) {
		return text
	}
	return cell
}
