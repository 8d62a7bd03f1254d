package exposition

import (
	"strings"
	"unicode/utf8"
)

// maxUnescaped bounds the labels that ReadUnescaped reads. Exporters write about 20, and as
// many of a pod; each is compared with all before it.
const maxUnescaped = 64

// ReadUnescaped reads a line that Next finds malformed because the value of a label has
// an unescaped quote or backslash, as dcgm-exporter up to 4.8.2 writes them, or is not
// UTF-8. It appends the label block to dst, with such a label empty. ok is false if
// something else is wrong with the line, or a label occurs twice.
//
// A value ends at the first quote that another label or the end of the block follows. A
// malformed value with a brace is refused: it is more likely to be parts of two lines.
func ReadUnescaped(dst []byte, line string) (name string, block []byte, value float64, millis int64, ok bool) {
	end := NameEnd(line, 0)
	open, shut := SkipBlanks(line, end), strings.LastIndexByte(line, '}')
	if end == 0 || shut < open || line[open] != '{' {
		return "", dst, 0, NoTimestamp, false
	}
	if value, millis, _, ok = ReadValue(line, shut+1); !ok {
		return "", dst, 0, NoTimestamp, false
	}
	begun := len(dst)
	dst, ok = appendSound(append(dst, '{'), line[open+1:shut])
	if !ok {
		return "", dst[:begun], 0, NoTimestamp, false
	}
	return line[:end], append(dst, '}'), value, millis, true
}

// appendSound appends the labels between braces, with malformed values empty. ok is false if
// the labels cannot be read, or no value is malformed.
func appendSound(dst []byte, labels string) (block []byte, ok bool) {
	begun, lost, n := len(dst), false, 0
	for i := SkipBlanks(labels, 0); i < len(labels); i = SkipBlanks(labels, i) {
		if n++; n > maxUnescaped {
			return dst, false
		}
		equals := labelNameEnd(labels, i)
		if equals < 0 {
			return dst, false
		}
		quote := looseQuote(labels, equals+2)
		if quote < 0 {
			return dst, false
		}
		name, value := labels[i:equals], labels[equals+2:quote]
		if hasLabel(dst[begun:], name) {
			return dst, false
		}
		if !isSound(value) {
			if strings.ContainsAny(value, "{}") {
				return dst, false
			}
			value, lost = "", true
		}
		dst = append(append(append(dst, name...), `="`...), value...)
		dst = append(dst, `",`...)
		if i = SkipBlanks(labels, quote+1); i < len(labels) {
			i++ // the comma
		}
	}
	return dst, lost
}

// labelNameEnd returns the index of the equals sign after the label name of t at i, if a
// quote follows it; else -1.
func labelNameEnd(t string, i int) int {
	if i == len(t) || !isLetter(t[i]) {
		return -1
	}
	for i < len(t) && (isLetter(t[i]) || isDigit(t[i])) {
		i++
	}
	if strings.HasPrefix(t[i:], `="`) {
		return i
	}
	return -1
}

// looseQuote returns the index of the first quote of t from i on that can close a value,
// -1 if there is none.
func looseQuote(t string, i int) int {
	for i < len(t) {
		n := strings.IndexByte(t[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		next := SkipBlanks(t, i+1)
		if next == len(t) {
			return i
		}
		if t[next] == ',' {
			if next = SkipBlanks(t, next+1); next == len(t) || labelNameEnd(t, next) > 0 {
				return i
			}
		}
		i++
	}
	return -1
}

// isSound reports whether a value can be quoted without escapes.
func isSound(value string) bool {
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '"', 0:
			return false
		case '\\':
			if i++; i == len(value) || value[i] == 0 {
				return false
			}
		}
	}
	return utf8.ValidString(value)
}

// hasLabel reports whether a label of that name is in a part of a block that appendSound
// wrote.
func hasLabel(block []byte, name string) bool {
	for rest := View(block); rest != ""; {
		it := blockItem(rest, 0)
		if it.kind != labelItem {
			return false
		}
		if it.name == name {
			return true
		}
		rest = rest[it.next:]
	}
	return false
}
