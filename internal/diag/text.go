package diag

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Rune returns the character to show for r: a blank for ASCII control characters and for
// other kinds of space, U+FFFD for characters that do not print, and otherwise r.
func Rune(r rune) rune {
	switch {
	case ' ' <= r && r < 0x7f:
		return r
	case r < ' ', r == 0x7f:
		return ' '
	case r < 0xa0: // C1: U+009B begins a sequence, as ESC [ does
		return utf8.RuneError
	case unicode.IsSpace(r):
		return ' '
	case !unicode.IsPrint(r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return utf8.RuneError
	}
	return r
}

// Text returns s as one line to show. Invalid UTF-8 becomes U+FFFD, one for each byte.
func Text(s string) string { return strings.Map(Rune, s) }

// Lines is Text for several lines.
func Lines(s string) string { return strings.Map(ofLines, s) }

// ofLines is Rune for several lines.
func ofLines(r rune) rune {
	if r == '\n' {
		return r
	}
	return Rune(r)
}

// AppendJSON appends a JSON document, and escapes every character that Rune would replace,
// which keeps its meaning.
func AppendJSON(dst, document []byte) []byte {
	for len(document) > 0 {
		r, size := utf8.DecodeRune(document)
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, `\ufffd`...)
		case r == '\r' || r == '\t' || ofLines(r) == r: // between values, JSON's white space
			dst = append(dst, document[:size]...)
		default:
			dst = appendEscaped(dst, r)
		}
		document = document[size:]
	}
	return dst
}

// appendEscaped appends the JSON escape of r.
func appendEscaped(dst []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return appendEscaped(appendEscaped(dst, high), low)
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', digits[r>>12&0xf], digits[r>>8&0xf], digits[r>>4&0xf], digits[r&0xf])
}

// writer writes to out what form returns.
type writer struct {
	out  io.Writer
	form func(text []byte) []byte
}

// Writer returns a writer that passes text for people on to out, through Lines. Each Write
// must contain whole characters.
func Writer(out io.Writer) io.Writer {
	return writer{out, func(text []byte) []byte { return []byte(Lines(string(text))) }}
}

// JSONWriter is Writer for JSON, through AppendJSON.
func JSONWriter(out io.Writer) io.Writer {
	return writer{out, func(text []byte) []byte { return AppendJSON(nil, text) }}
}

// Write implements io.Writer.
func (w writer) Write(text []byte) (int, error) {
	if _, err := w.out.Write(w.form(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}
