package recording

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// errTooLong reports edits that give more text than the reading announced.
var errTooLong = errors.New("the edits give more text than the opening line announces")

// decoder turns edits back into bodies.
type decoder struct{ lines lines }

// decode appends to dst the lines that one line of edits gives, each with a
// line feed, as long as dst does not exceed max bytes.
func (d *decoder) decode(dst, edit []byte, max int) ([]byte, error) {
	switch {
	case len(edit) == 0:
		return dst, errors.New("the line is empty")
	case edit[0] == '+':
		return d.add(dst, edit[1:], max)
	case edit[0] == '"':
		text, rest, err := unquote(edit)
		if err == nil && len(rest) > 0 {
			err = errors.New("there is more after the quoted text")
		}
		if err != nil {
			return dst, err
		}
		return d.add(dst, text, max)
	case edit[0] == '@':
		return d.run(dst, edit[1:], max)
	}
	return dst, fmt.Errorf("%q does not begin an edit", edit[0])
}

// add appends a new line.
func (d *decoder) add(dst, text []byte, max int) ([]byte, error) {
	if bytes.IndexByte(text, '\n') >= 0 {
		return dst, errors.New("the quoted text contains a line feed")
	}
	d.lines.add(text)
	return appendLine(dst, text, max)
}

// run appends the lines of the edits after an @.
func (d *decoder) run(dst, edit []byte, max int) ([]byte, error) {
	word, edit, _ := bytes.Cut(edit, []byte(" "))
	n, err := strconv.Atoi(string(word))
	if err != nil || n < 1 {
		return dst, fmt.Errorf("@%s is not a line number", word)
	}
	for n--; err == nil && len(edit) > 0; {
		if edit[0] == '=' {
			word, edit, _ = bytes.Cut(edit, []byte(" "))
			dst, n, err = d.copy(dst, n, word[1:], max)
			continue
		}
		var value []byte
		if value, edit, err = cutValue(edit); err == nil {
			dst, err = d.change(dst, n, value, max)
			n++
		}
	}
	return dst, err
}

// copy appends count lines beginning with n, one if count is empty, and returns
// the line after them.
func (d *decoder) copy(dst []byte, n int, count []byte, max int) ([]byte, int, error) {
	k, err := 1, error(nil)
	if len(count) > 0 {
		k, err = strconv.Atoi(string(count))
	}
	if err != nil || k < 1 {
		return dst, n, fmt.Errorf("=%s is not a number of lines", count)
	}
	if n > len(d.lines.all) || k > len(d.lines.all)-n {
		return dst, n, fmt.Errorf("there are only %d lines", len(d.lines.all))
	}
	for i := n; i < n+k && err == nil; i++ {
		dst, err = appendLine(dst, d.lines.all[i].text, max)
	}
	return dst, n + k, err
}

// change appends line n with another value.
func (d *decoder) change(dst []byte, n int, value []byte, max int) ([]byte, error) {
	if n >= len(d.lines.all) {
		return dst, fmt.Errorf("there are only %d lines", len(d.lines.all))
	}
	s := &d.lines.all[n]
	if s.fixed || bytes.IndexByte(value, '\n') >= 0 {
		return dst, fmt.Errorf("line %d cannot have the value %q", n+1, value)
	}
	s.set(value)
	return appendLine(dst, s.text, max)
}

// cutValue cuts a value, quoted or not, and the blank after it off edit.
func cutValue(edit []byte) (value, rest []byte, err error) {
	if edit[0] != '"' {
		value, rest, _ = bytes.Cut(edit, []byte(" "))
		if len(value) == 0 || value[0] == '@' {
			return nil, nil, fmt.Errorf("%q is not a value", value)
		}
		return value, rest, nil
	}
	if value, rest, err = unquote(edit); err != nil {
		return nil, nil, err
	}
	if len(rest) > 0 && rest[0] != ' ' {
		return nil, nil, errors.New("there is no blank after a quoted value")
	}
	return value, bytes.TrimPrefix(rest, []byte(" ")), nil
}

// unquote cuts a Go string off text.
func unquote(text []byte) (value, rest []byte, err error) {
	quoted, err := strconv.QuotedPrefix(string(text))
	if err != nil || quoted[0] != '"' {
		return nil, nil, errors.New("the quotes do not match")
	}
	s, err := strconv.Unquote(quoted)
	return []byte(s), text[len(quoted):], err
}

// appendLine appends text and a line feed.
func appendLine(dst, text []byte, max int) ([]byte, error) {
	if len(dst)+len(text)+1 > max {
		return dst, errTooLong
	}
	return append(append(dst, text...), '\n'), nil
}
