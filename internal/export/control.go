package export

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// safe returns what stands in text for a rune of what we were told: control characters
// would break the line, or be orders to a terminal. Those of ASCII become blanks. Those
// of C1, U+0080 to U+009F, become U+FFFD, as a byte that is no UTF-8 does.
func safe(r rune) rune {
	switch {
	case r < ' ' || r == 0x7f:
		return ' '
	case 0x80 <= r && r < 0xa0:
		return utf8.RuneError
	}
	return r
}

// printable returns s without control characters.
func printable(s string) string { return strings.Map(safe, s) }

// escapeControls appends JSON with the control characters escaped that package json
// leaves as they are: DEL and C1.
func escapeControls(dst, text []byte) []byte {
	isControl := func(r rune) bool { return r == 0x7f || 0x80 <= r && r < 0xa0 }
	for {
		at := bytes.IndexFunc(text, isControl)
		if at < 0 {
			return append(dst, text...)
		}
		r, size := utf8.DecodeRune(text[at:])
		dst = append(append(dst, text[:at]...), `\u00`...)
		dst = append(dst, "0123456789abcdef"[r>>4], "0123456789abcdef"[r&0xf])
		text = text[at+size:]
	}
}
