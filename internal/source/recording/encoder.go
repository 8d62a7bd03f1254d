package recording

import (
	"bytes"
	"hash/maphash"
	"strconv"
	"unicode/utf8"
)

// wrapAt is the length in bytes after which edits continue on the next line,
// for people who page through a recording.
const wrapAt = 100

// encoder writes bodies as edits of earlier ones, in the format of the package
// comment. It allocates nothing for a body no larger than earlier ones.
type encoder struct {
	lines lines
	// index finds a line by the hash of its head, the first of several with the
	// same head. It may miss a line, but never gives a wrong one: fits decides.
	index map[uint64]int
	seed  maphash.Seed

	out  []byte
	open int // where the current line of edits begins in out, or none
	next int // the line that it continues with
	same int // unchanged lines that are not written yet
}

// none is neither a place in the output nor a line.
const none = -1

func newEncoder() *encoder {
	return &encoder{index: map[uint64]int{}, seed: maphash.MakeSeed()}
}

// encode appends body to dst. A full one does not depend on earlier bodies.
func (e *encoder) encode(dst, body []byte, full bool) []byte {
	e.out, e.open, e.same = dst, none, 0
	if full {
		e.lines.reset()
		clear(e.index)
	}
	likely := 0
	for len(body) > 0 {
		text := body
		if n := bytes.IndexByte(body, '\n'); n >= 0 {
			text, body = body[:n], body[n+1:]
		} else {
			body = nil
		}
		n := none
		if !full { // a series that occurs twice needs two lines
			n = e.find(text, likely)
		}
		if n == none {
			e.add(text)
			continue
		}
		e.edit(n, text)
		likely = n + 1
	}
	e.close()
	return e.out
}

// find returns the number of the line that text fits, or none.
func (e *encoder) find(text []byte, likely int) int {
	if likely < len(e.lines.all) && e.lines.all[likely].fits(text) {
		return likely
	}
	if n, ok := e.index[e.hash(text)]; ok && e.lines.all[n].fits(text) {
		return n
	}
	return none
}

func (e *encoder) hash(text []byte) uint64 {
	return maphash.Bytes(e.seed, text[:headLen(text)])
}

// add writes a new line.
func (e *encoder) add(text []byte) {
	e.close()
	if printable(text) {
		e.out = append(append(e.out, '+'), text...)
	} else {
		e.out = appendQuoted(e.out, text)
	}
	e.out = append(e.out, '\n')
	if h := e.hash(text); !e.known(h) {
		e.index[h] = len(e.lines.all)
	}
	e.lines.add(text)
}

func (e *encoder) known(hash uint64) bool {
	_, ok := e.index[hash]
	return ok
}

// edit writes that line n comes next, with the content text.
func (e *encoder) edit(n int, text []byte) {
	if e.open != none && (n != e.next || len(e.out)-e.open > wrapAt) {
		e.close()
	}
	if e.open == none {
		e.open = len(e.out)
		e.out = strconv.AppendInt(append(e.out, '@'), int64(n)+1, 10)
	}
	e.next = n + 1
	s := &e.lines.all[n]
	value := text[s.head:]
	if bytes.Equal(value, s.text[s.head:]) {
		e.same++
		return
	}
	e.flush()
	e.out = append(e.out, ' ')
	if bare(value) {
		e.out = append(e.out, value...)
	} else {
		e.out = appendQuoted(e.out, value)
	}
	s.set(value)
}

// flush writes the number of unchanged lines.
func (e *encoder) flush() {
	if e.same == 0 {
		return
	}
	e.out = append(e.out, " ="...)
	if e.same > 1 {
		e.out = strconv.AppendInt(e.out, int64(e.same), 10)
	}
	e.same = 0
}

// close ends the line of edits.
func (e *encoder) close() {
	if e.open == none {
		return
	}
	e.flush()
	e.out = append(e.out, '\n')
	e.open = none
}

// bare reports whether value can be written between blanks without quotes.
func bare(value []byte) bool {
	if len(value) == 0 || bytes.IndexByte([]byte(`=@"`), value[0]) >= 0 {
		return false
	}
	for _, c := range value {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// printable reports whether a viewer shows text unchanged.
func printable(text []byte) bool {
	for _, c := range text {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
		if c >= utf8.RuneSelf {
			return utf8.Valid(text) && !bytes.ContainsFunc(text, isControl)
		}
	}
	return true
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || 0x7f <= r && r < 0xa0 }

// appendQuoted appends text as a Go string. It allocates, but only for texts
// that no exporter sends.
func appendQuoted(dst, text []byte) []byte { return strconv.AppendQuote(dst, string(text)) }
