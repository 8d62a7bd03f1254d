package client

import (
	"bytes"
	"errors"
	"strconv"
)

// sample is one line of an exposition. Its slices point into the body, or into
// the scratch of the reader, and live until the next line is read.
type sample struct {
	name   []byte
	labels []label
	value  float64
}

type label struct{ name, value []byte }

// get returns the value of a label, nil where it is not there.
func (s *sample) get(name string) []byte {
	for i := range s.labels {
		if string(s.labels[i].name) == name {
			return s.labels[i].value
		}
	}
	return nil
}

var errNoSample = errors.New("not a sample")

// read takes a line of the text format without its end: name, labels in braces if
// any, value, and a timestamp that is ignored.
func (s *sample) read(line []byte) error {
	s.labels = s.labels[:0]
	end := bytes.IndexAny(line, "{ \t")
	if end <= 0 {
		return errNoSample
	}
	s.name, line = line[:end], line[end:]
	if line[0] == '{' {
		var err error
		if line, err = s.readLabels(line[1:]); err != nil {
			return err
		}
	}
	line = bytes.TrimLeft(line, " \t")
	if end = bytes.IndexAny(line, " \t"); end >= 0 {
		line = line[:end]
	}
	var err error
	s.value, err = strconv.ParseFloat(string(line), 64)
	return err
}

// readLabels reads labels up to the closing brace and returns what is behind it.
func (s *sample) readLabels(rest []byte) ([]byte, error) {
	for {
		rest = bytes.TrimLeft(rest, ", \t")
		if len(rest) > 0 && rest[0] == '}' {
			return rest[1:], nil
		}
		name, after, ok := bytes.Cut(rest, []byte(`="`))
		if !ok || len(name) == 0 || bytes.ContainsAny(name, "{}\", ") {
			return nil, errNoSample
		}
		value, after, ok := quoted(after)
		if !ok {
			return nil, errNoSample
		}
		s.labels = append(s.labels, label{name, value})
		rest = after
	}
}

// quoted returns the label value that b begins with, behind its opening quote, and
// what follows the closing one. Only values with escapes are copied.
func quoted(b []byte) (value, rest []byte, ok bool) {
	i := bytes.IndexAny(b, `"\`)
	if i < 0 {
		return nil, nil, false
	}
	if b[i] == '"' {
		return b[:i], b[i+1:], true
	}
	value = append([]byte(nil), b[:i]...)
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return value, b[i+1:], true
		case c != '\\':
			value = append(value, c)
		case i+1 < len(b):
			i++
			value = append(value, unescaped(b[i])...)
		}
	}
	return nil, nil, false
}

// unescaped returns what a backslash and c stand for.
func unescaped(c byte) []byte {
	switch c {
	case 'n':
		return []byte{'\n'}
	case '\\', '"':
		return []byte{c}
	default:
		return []byte{'\\', c}
	}
}
