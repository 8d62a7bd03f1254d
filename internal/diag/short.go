package diag

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ellipsis ends a text that was cut.
const ellipsis = "…"

// Short returns s if it has at most most bytes, else as many whole characters of its
// beginning as fit, and an ellipsis.
func Short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := max(0, most-len(ellipsis))
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.TrimRight(s[:end], " ") + ellipsis
}

// Line is Short of Text(s), without the blanks around it.
func Line(s string, most int) string { return Short(strings.TrimSpace(Text(s)), most) }

// Count returns n and the noun in singular or plural: "1 GPU", "2 GPUs".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
