package rules

import (
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// source is the text of a file, in which places of its values are looked up.
type source struct {
	body  string
	lines []int // byte at which each line begins; nil until it is asked for
}

// locate returns line and column, in characters from 1, at which byte at of the
// value text of n stands in the file. YAML folds and indents, so the value is
// followed along the file, spaces and line ends being one; where that leads astray,
// such as by escapes, it is the place of n.
func (s *source) locate(n *yaml.Node, text string, at int) (line, column int) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	rest, ok := s.from(n)
	for i := 0; ok; i++ {
		first := i
		for i < at && isSpace(text[i]) {
			i++
		}
		if i == 0 || i > first {
			rest = afterSpace(rest, n.Style)
		}
		if i == at {
			return s.place(len(s.body) - len(rest))
		}
		switch {
		case n.Style == yaml.SingleQuotedStyle && text[i] == '\'', n.Style == yaml.DoubleQuotedStyle && strings.HasPrefix(rest, `\`):
			rest = rest[min(1, len(rest)):]
		}
		ok = rest != "" && rest[0] == text[i]
		rest = rest[min(1, len(rest)):]
	}
	return n.Line, n.Column
}

func isSpace(b byte) bool { return strings.IndexByte(" \t\r\n", b) >= 0 }

// afterSpace returns what follows the space at the beginning of rest, which between
// double quotes may be escaped.
func afterSpace(rest string, style yaml.Style) string {
	for {
		rest = strings.TrimLeft(rest, " \t\r\n")
		if style != yaml.DoubleQuotedStyle || !strings.HasPrefix(rest, `\n`) && !strings.HasPrefix(rest, `\t`) {
			return rest
		}
		rest = rest[2:]
	}
}

// from returns the file from where the value of n begins, behind its anchor and its
// quote or the line of its | or >.
func (s *source) from(n *yaml.Node) (rest string, ok bool) {
	s.split()
	if n.Line < 1 || n.Line > len(s.lines) {
		return "", false
	}
	rest = s.body[s.lines[n.Line-1]:]
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
	}
	if n.Anchor != "" {
		rest = afterSpace(strings.TrimPrefix(rest, "&"+n.Anchor), 0)
	}
	switch n.Style {
	case yaml.LiteralStyle, yaml.FoldedStyle:
		_, rest, ok = strings.Cut(rest, "\n")
		return rest, ok
	case yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle:
		return rest[min(1, len(rest)):], true
	}
	return rest, true
}

// place turns a byte of the file into its line and character.
func (s *source) place(at int) (line, column int) {
	line, found := slices.BinarySearch(s.lines, at)
	if found {
		line++
	}
	return line, utf8.RuneCountInString(s.body[s.lines[line-1]:at]) + 1
}

// split finds the lines.
func (s *source) split() {
	if s.lines != nil {
		return
	}
	s.lines = []int{0}
	for i := range len(s.body) {
		if s.body[i] == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
}
