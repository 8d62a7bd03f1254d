// Package plain makes text of others fit to be shown to people. Labels, errors, logs and
// files of others may hold what a terminal obeys, what turns a line around, what has no
// width, and bytes that are no text. Data stays as it is: only what a page, a terminal or a
// log shows goes through here.
package plain

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Rune returns what is shown for r: a blank for control characters of ASCII and for blanks
// of other kinds, U+FFFD for what does not print, and r itself for the rest.
func Rune(r rune) rune {
	switch {
	case ' ' <= r && r < 0x7f:
		return r
	case r < ' ', r == 0x7f:
		return ' '
	case r < 0xa0: // C1, of which U+009B begins a sequence as ESC [ does
		return utf8.RuneError
	case unicode.IsSpace(r):
		return ' '
	case !unicode.IsPrint(r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return utf8.RuneError
	}
	return r
}

// Text returns s as it is shown on one line. A byte that is no UTF-8 is shown as U+FFFD.
func Text(s string) string { return strings.Map(Rune, s) }

// Lines is Text for what may have several lines.
func Lines(s string) string { return strings.Map(ofLines, s) }

// ofLines is Rune for what may have several lines.
func ofLines(r rune) rune {
	if r == '\n' {
		return r
	}
	return Rune(r)
}

// AppendJSON appends a JSON document, in which every character that Rune would replace is
// escaped: it means the same.
func AppendJSON(dst, document []byte) []byte {
	for len(document) > 0 {
		r, size := utf8.DecodeRune(document)
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, `\ufffd`...)
		case r == '\r' || r == '\t' || ofLines(r) == r: // between values, they are blanks of JSON
			dst = append(dst, document[:size]...)
		default:
			dst = appendEscaped(dst, r)
		}
		document = document[size:]
	}
	return dst
}

// appendEscaped appends r as JSON escapes it.
func appendEscaped(dst []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return appendEscaped(appendEscaped(dst, high), low)
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', digits[r>>12&0xf], digits[r>>8&0xf], digits[r>>4&0xf], digits[r&0xf])
}

// writer is the Writer of out.
type writer struct {
	out  io.Writer
	form func(text []byte) []byte
}

// Writer returns a writer to out of what people read: each call of Write writes whole
// characters, and what is shown of them arrives.
func Writer(out io.Writer) io.Writer {
	return writer{out, func(text []byte) []byte { return []byte(Lines(string(text))) }}
}

// JSONWriter is Writer for JSON, which keeps its meaning.
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
