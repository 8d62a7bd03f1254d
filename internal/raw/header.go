package raw

import (
	"strings"
	"unicode/utf8"
)

// headerKind says what a line that starts with # is.
type headerKind int

const (
	badHeader headerKind = iota // textparse rejects it, or stops there for good
	comment
	helpHeader
	typeHeader
)

// header is a line that starts with #. name is still escaped, without quotes.
// next is the start of the following line, or len(t).
type header struct {
	kind   headerKind
	name   string
	quoted bool
	text   string
	next   int
}

// parseHeader reads the header line of t from behind its #.
func parseHeader(t string, i int) header {
	if i == len(t) || !isBlank(t[i]) {
		// Without a blank behind the #, a NUL ends textparse's reading.
		next := nextLine(t, i)
		if strings.IndexByte(t[i:next], 0) >= 0 {
			return header{}
		}
		return header{kind: comment, next: next}
	}
	i = skipBlanks(t, i)
	if i < len(t) && t[i] == 0 {
		return header{}
	}
	if end := keyword(t, i, "HELP"); end > 0 {
		h := namedHeader(t, end)
		if h.next == 0 || !utf8.ValidString(h.text) {
			return header{}
		}
		h.kind = helpHeader
		return h
	}
	if end := keyword(t, i, "TYPE"); end > 0 {
		h := namedHeader(t, end)
		if h.next == 0 || !isType(h.text) {
			return header{}
		}
		h.kind = typeHeader
		return h
	}
	return header{kind: comment, next: nextLine(t, i)}
}

// keyword returns the index behind word and the blanks that must follow it, or
// -1. NUL bytes between these count for nothing.
func keyword(t string, i int, word string) int {
	for k := range len(word) {
		if i == len(t) || t[i] != word[k] {
			return -1
		}
		i = skipNULs(t, i+1)
	}
	if i == len(t) || !isBlank(t[i]) {
		return -1
	}
	for i < len(t) && (isBlank(t[i]) || t[i] == 0) {
		i++
	}
	return i
}

// namedHeader reads the name and text of a header of t from i on. next is 0
// where the name is malformed.
func namedHeader(t string, i int) header {
	if i == len(t) {
		return header{}
	}
	var h header
	var end int
	if h.quoted = t[i] == '"'; h.quoted {
		if end = closeName(t, i); end < 0 {
			return header{}
		}
		h.name = t[i+1 : end-1]
	} else {
		if end = metricNameEnd(t, i); end == i {
			return header{}
		}
		h.name = t[i:end]
	}
	if end < len(t) && t[end] == 0 {
		return header{}
	}
	h.next = nextLine(t, end)
	h.text = headerText(strings.TrimSuffix(t[end:h.next], "\n"))
	return h
}

// headerText cuts the text of a header from what follows its name: textparse
// drops the first byte, whatever it is, and takes mere blanks (and NULs among
// them) for nothing.
func headerText(rest string) string {
	if rest == "" {
		return ""
	}
	if isBlank(rest[0]) {
		i := 1
		for i < len(rest) && (isBlank(rest[i]) || rest[i] == 0) {
			i++
		}
		if i == len(rest) {
			return ""
		}
	}
	return rest[1:]
}

// isType reports whether text is a metric type of the text format.
func isType(text string) bool {
	switch text {
	case "gauge", "counter", "untyped", "histogram", "summary":
		return true
	}
	return false
}

// metricNameEnd returns the index behind the unquoted metric name at i, which
// is i where there is none.
func metricNameEnd(t string, i int) int {
	if i == len(t) || !isLetter(t[i]) && t[i] != ':' {
		return i
	}
	for i < len(t) && (isLetter(t[i]) || isDigit(t[i]) || t[i] == ':') {
		i++
	}
	return i
}

// nextLine returns the index behind the first newline of t from i on, or
// len(t).
func nextLine(t string, i int) int {
	if n := strings.IndexByte(t[i:], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(t)
}

// header reads the line that starts at i, from behind its #.
func (s *Scanner) header(i, j int) int {
	if next := s.knownHeader(i); next > i {
		return next
	}
	h := parseHeader(s.text, j)
	switch {
	case h.kind == badHeader:
		return s.reject(i)
	case h.kind == comment:
		return h.next
	case strings.HasPrefix(h.name, ownPrefix):
		return s.leaveOut(i, h.next, h.name)
	}
	s.out.Meaningful++
	line := s.text[i:h.next]
	if h.kind == typeHeader {
		if h.name == s.name && s.name != "" { // a quoted name may be empty
			remember(&s.families[s.family].typeLine, line)
		}
		return h.next
	}
	if h.quoted || h.name != s.name {
		s.startFamily(h.name, h.quoted)
	}
	note := &s.families[s.family]
	if note.help == s.scan {
		return h.next // the first HELP of a scan counts, as the first sample does
	}
	note.help = s.scan
	if f := s.dict.Family(s.family); f.Help != h.text {
		f.Help = strings.Clone(h.text)
	}
	if !h.quoted {
		remember(&note.helpLine, line)
		s.noteHelp()
	}
	return h.next
}

// knownHeader reads the header line at i if it is, to the byte, the HELP line
// that stood in this place in the last scan, or the TYPE line that the current
// family had then. It returns the start of the next line, or i.
func (s *Scanner) knownHeader(i int) int {
	if s.name != "" {
		if line := s.families[s.family].typeLine; line != "" && strings.HasPrefix(s.text[i:], line) {
			s.out.Meaningful++
			return i + len(line)
		}
	}
	if s.helps == len(s.helped) {
		return i
	}
	id := s.helped[s.helps]
	line := s.families[id].helpLine
	if line == "" || !strings.HasPrefix(s.text[i:], line) {
		return i
	}
	if id != s.family || s.name == "" {
		s.enter(id)
		s.name = s.dict.families[id].Name
	}
	s.out.Meaningful++
	s.families[id].help = s.scan
	s.noteHelp()
	return i + len(line)
}

// noteHelp notes that the current family has a HELP line here.
func (s *Scanner) noteHelp() {
	if s.helps == len(s.helped) {
		s.helped = append(s.helped, 0)
	}
	s.helped[s.helps] = s.family
	s.helps++
}

// remember keeps a whole line in dst.
func remember(dst *string, line string) {
	if *dst != line && line[len(line)-1] == '\n' {
		*dst = strings.Clone(line)
	}
}

// dropOldHelp forgets the HELP of families that had one in an earlier scan only:
// what a text says must hold for the scan that it is read with.
func (s *Scanner) dropOldHelp() {
	for id := range s.families {
		if f := &s.families[id]; f.help != s.scan {
			f.helpLine, s.dict.families[id].Help = "", ""
		}
	}
}
