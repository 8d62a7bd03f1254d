package exposition

import (
	"strings"
	"unicode/utf8"
)

// The grammar of a label block is that of textparse's lexer, oddities and all: a comma may trail
// or be missing, quotes may contain a newline, and NULs are skipped in some places.

// itemKind is the kind of item that blockItem found.
type itemKind int

const (
	badItem    itemKind = iota // the block is malformed
	blockEnd                   // the closing brace
	metricItem                 // a quoted metric name
	labelItem                  // a label
)

// item is one item of a label block. name and value are still escaped, without
// their quotes. next is where the item after it starts.
type item struct {
	kind        itemKind
	name, value string
	next        int
}

// blockItem reads the item of a label block in t at i, which lies after the
// opening brace or at an earlier item's next.
func blockItem(t string, i int) item {
	i = SkipBlanks(t, i)
	if i == len(t) {
		return item{}
	}
	if t[i] == '}' {
		return item{kind: blockEnd, next: i + 1}
	}
	name, i := itemName(t, i)
	if i < 0 {
		return item{}
	}
	quoted := t[i-1] == '"'
	i = SkipBlanks(t, i)
	if i == len(t) {
		return item{}
	}
	switch {
	case t[i] == '=':
		return labelValue(t, i+1, name)
	case quoted && t[i] == ',':
		return item{kind: metricItem, name: name, next: i + 1}
	case quoted && t[i] == '}':
		return item{kind: metricItem, name: name, next: i}
	}
	return item{}
}

// itemName reads the plain or quoted name at i. end is -1 if there is none.
func itemName(t string, i int) (name string, end int) {
	if t[i] == '"' {
		if end = closeQuote(t, i, false); end < 0 {
			return "", -1
		}
		return t[i+1 : end-1], end
	}
	if !isLetter(t[i]) {
		return "", -1
	}
	for end = i + 1; end < len(t) && (isLetter(t[end]) || isDigit(t[end])); {
		end++
	}
	return t[i:end], end
}

// labelValue reads the rest of a label in t after its equals sign: the quoted
// value and the comma that may follow.
func labelValue(t string, i int, name string) item {
	if i < len(t) && isBlank(t[i]) {
		i = len(t) - len(strings.TrimLeft(t[i:], blanksOrNULs))
	}
	if i == len(t) || t[i] != '"' {
		return item{}
	}
	end := closeQuote(t, i, true)
	if end < 0 {
		return item{}
	}
	value := t[i+1 : end-1]
	if end = SkipBlanks(t, end); end < len(t) && t[end] == ',' {
		end++
	}
	return item{kind: labelItem, name: name, value: value, next: end}
}

// blanksOrNULs are skipped after an equals sign with a blank, and after HELP and TYPE.
const blanksOrNULs = " \t\x00"

// closeQuote returns the index after the quote that closes the one at i, or -1. A NUL ends a name;
// in the value of a label it is skipped after a backslash, and after the closing quote, where it
// becomes a part of the token: the "closing quote" that textparse cuts off is then a NUL.
func closeQuote(t string, i int, value bool) int {
	for i++; i < len(t); i++ {
		switch c := t[i]; {
		case c == '"' || c == '\\':
			if i++; value {
				i += len(t[i:]) - len(strings.TrimLeft(t[i:], "\x00"))
			}
			if c == '"' {
				return i
			}
			if i == len(t) || t[i] == '\n' || t[i] == 0 {
				return -1
			}
		case c == 0 && !value:
			return -1
		}
	}
	return -1
}

// BlockEnd returns the index after the label block of t whose brace opens at i, as allowed after
// a metric name. It is -1 if the block is malformed, or has a metric name itself.
func BlockEnd(t string, i int) int {
	if _, named, end := readBlock(t, i); !named {
		return end
	}
	return -1
}

// readBlock checks the label block of t whose brace opens at i. metric is the
// quoted metric name in it, still escaped; named reports whether there is one. end
// is -1 if the block is malformed.
func readBlock(t string, i int) (metric string, named bool, end int) {
	for i++; ; {
		it := blockItem(t, i)
		switch it.kind {
		case blockEnd:
			return metric, named, it.next
		case metricItem:
			if named {
				return "", false, -1
			}
			metric, named = it.name, true
		case labelItem:
			if !utf8.ValidString(it.value) {
				return "", false, -1
			}
		default:
			return "", false, -1
		}
		i = it.next
	}
}
