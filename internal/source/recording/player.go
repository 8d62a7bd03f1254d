package recording

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// Reading is one record: an answer of the source, or a failed read.
type Reading struct {
	Asked time.Duration // time of the request, since the recording's Start
	Took  time.Duration // time to the answer or failure
	// Missed counts the readings before this one that were not written.
	Missed int
	// Failure is "" for a reading; else Cause says in one line what went wrong.
	Failure source.Failure
	Cause   string
	// Body is the text, byte for byte. It belongs to the caller, and the next
	// call of Next reuses its memory.
	Body []byte
}

// Player reads a recording record by record. It belongs to one goroutine.
type Player struct {
	rec *Recording
	position
	record  position // where the current record begins
	decoder decoder
	table   *crc32.Table
}

// position is a place in a recording.
type position struct {
	at   int
	line int // lines before it
}

// Next reads the next record into r, keeping the memory of r.Body, or returns
// io.EOF. Any other error is a *Damage; after Parse there is none.
func (p *Player) Next(r *Reading) error {
	l, err := p.opening()
	if err != nil {
		return err
	}
	*r = Reading{Body: r.Body[:0]}
	crc := crc32.Update(0, p.table, p.rec.text[p.at-len(l)-1:p.at])
	word, rest, _ := bytes.Cut(l, []byte(" "))
	switch string(word) {
	case "reading":
		err = p.reading(r, rest)
	case "failed":
		err = p.failed(r, rest)
	default:
		err = fmt.Errorf("%.40q does not begin a record", l)
	}
	if err != nil {
		return p.damage(err)
	}
	return p.end(crc32.Update(crc, p.table, r.Body))
}

// Rewind returns to the first reading.
func (p *Player) Rewind() {
	p.position = p.rec.from
	p.decoder.lines.reset()
}

// opening returns the next line that is not a comment.
func (p *Player) opening() ([]byte, error) {
	for p.at < len(p.rec.text) {
		p.record = p.position
		l, err := p.nextLine()
		if err != nil {
			return nil, p.damage(err)
		}
		if len(l) == 0 || l[0] != '#' {
			return l, nil
		}
	}
	return nil, io.EOF
}

// nextLine returns the next line without its line feed.
func (p *Player) nextLine() ([]byte, error) {
	rest := p.rec.text[p.at:]
	p.line++
	n := bytes.IndexByte(rest, '\n')
	if n < 0 {
		return nil, errors.New("the recording ends within a record")
	}
	p.at += n + 1
	return rest[:n], nil
}

// end reads the line that ends the record.
func (p *Player) end(crc uint32) error {
	begun := p.record.line + 1
	l, err := p.nextLine()
	if err != nil {
		return p.damage(err)
	}
	switch want, ok := endOf(l); {
	case !ok:
		return p.damage(fmt.Errorf("%.40q is not the end of the record of line %d", l, begun))
	case want != crc:
		return p.damage(fmt.Errorf("the record of line %d was changed: its checksum is %08x", begun, crc))
	}
	return nil
}

// damage places err at the line that was read last.
func (p *Player) damage(err error) error { return &Damage{p.line, err.Error()} }

// source reads the first record.
func (p *Player) source(rec *Recording) error {
	l, err := p.opening()
	if err != nil {
		return err
	}
	crc := crc32.Update(0, p.table, p.rec.text[p.at-len(l)-1:p.at])
	rest, ok := bytes.CutPrefix(l, []byte("source "))
	if !ok {
		return p.damage(fmt.Errorf("%.40q does not describe the source", l))
	}
	var words [6]string
	for i := range words {
		var word []byte
		if word, rest, err = unquote(rest); err != nil {
			return p.damage(err)
		}
		words[i], rest = string(word), bytes.TrimPrefix(rest, []byte(" "))
	}
	rec.Source = words[0]
	rec.Caps.Backend, rec.Caps.Aggregation, rec.Caps.Host = words[1], source.Aggregation(words[2]), words[4]
	if rec.Caps.Period, err = time.ParseDuration(words[3]); err != nil {
		return p.damage(err)
	}
	if rec.Start, err = time.Parse(time.RFC3339Nano, words[5]); err != nil {
		return p.damage(err)
	}
	return p.end(crc)
}

// reading reads the rest of the opening line of a reading, and its text.
func (p *Player) reading(r *Reading, rest []byte) error {
	rest, err := times(r, rest)
	if err != nil {
		return err
	}
	word, rest, _ := bytes.Cut(rest, []byte(" "))
	size, err := strconv.Atoi(string(word))
	if err != nil || size < 0 || size == math.MaxInt {
		return fmt.Errorf("%q is not a length", word)
	}
	if more, ok := bytes.CutPrefix(rest, []byte("full")); ok {
		p.decoder.lines.reset()
		rest = bytes.TrimPrefix(more, []byte(" "))
	}
	if n, ok := bytes.CutPrefix(rest, []byte("missed ")); ok {
		if r.Missed, err = strconv.Atoi(string(n)); err != nil || r.Missed < 1 {
			return fmt.Errorf("%q is not a number of readings", n)
		}
		rest = nil
	}
	if len(rest) > 0 {
		return fmt.Errorf("%q is not expected here", rest)
	}
	return p.text(r, size)
}

// text reads the edits that give size bytes, or one more if the text does not
// end in a line feed.
func (p *Player) text(r *Reading, size int) error {
	for len(r.Body) < size {
		l, err := p.nextLine()
		if err == nil {
			r.Body, err = p.decoder.decode(r.Body, l, size+1)
		}
		if err != nil {
			return err
		}
	}
	r.Body = r.Body[:size]
	return nil
}

// failed reads the rest of the opening line of a failure.
func (p *Player) failed(r *Reading, rest []byte) error {
	rest, err := times(r, rest)
	if err != nil {
		return err
	}
	kind, rest, _ := bytes.Cut(rest, []byte(" "))
	if len(kind) == 0 {
		return errors.New("the kind of the failure is missing")
	}
	cause, rest, err := unquote(rest)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%q is not expected here", rest)
	}
	r.Failure, r.Cause = source.Failure(kind), string(cause)
	return err
}

// times reads WHEN and TOOK, and returns what follows them.
func times(r *Reading, l []byte) (rest []byte, err error) {
	asked, l, _ := bytes.Cut(l, []byte(" "))
	took, rest, _ := bytes.Cut(l, []byte(" "))
	if r.Asked, err = parseSeconds(asked); err == nil {
		r.Took, err = parseSeconds(took)
	}
	return rest, err
}

// parseSeconds reads what appendSeconds wrote.
func parseSeconds(text []byte) (time.Duration, error) {
	d, err := time.ParseDuration(string(text) + "s")
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a time in seconds", text)
	}
	return d, nil
}
