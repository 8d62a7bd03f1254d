package exposition

import "strings"

// Label is one label of a series, its value unescaped.
type Label struct{ Name, Value string }

// ParseLabels appends the labels of a label block to dst, in the order in which
// they are written. A quoted metric name in the block is left out. Text that needs
// no unescaping is a part of block, not a copy. Of a malformed block it gives the
// labels before the flaw.
func ParseLabels(block string, dst []Label) []Label {
	if block == "" || block[0] != '{' {
		return dst
	}
	for i := 1; ; {
		it := blockItem(block, i)
		switch it.kind {
		case labelItem:
			dst = append(dst, Label{Unescape(it.name), Unescape(it.value)})
		case metricItem:
		default:
			return dst
		}
		i = it.next
	}
}

// Unescape returns s with \\, \" and \n replaced. Any other backslash stands
// for itself, as in textparse.
func Unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	return string(AppendUnescaped(make([]byte, 0, len(s)), s))
}

// AppendUnescaped appends Unescape(s) to dst.
func AppendUnescaped(dst []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 == len(s) {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		switch s[i+1] {
		case '\\', '"':
			dst = append(dst, s[i+1])
		case 'n':
			dst = append(dst, '\n')
		default:
			// The byte after a lone backslash starts no escape of its own.
			dst = append(dst, '\\', s[i+1])
		}
		s = s[i+2:]
	}
}
