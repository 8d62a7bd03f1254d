package engine

import (
	"bytes"
	"strconv"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// page remembers the exposition of one source, so that its next one costs little:
// the lines of families that nobody selects are passed over, and labels are parsed
// once for each series.
type page struct {
	place int              // of its source among all: lower ones come first
	lines map[string]*line // by series as written, name and label block
	turn  uint64           // number of the exposition
	met   int              // lines of this one
	// unread pages have forgotten lines, and were not read since.
	unread bool
	first  *line // that the last one began with
}

// line is a series of a selected family as its source writes it.
type line struct {
	text   string
	series *series // nil if nobody selects it, or it was one too many
	turn   uint64  // the last exposition that it was in
	next   *line   // the one that followed there
	gone   bool    // the page has forgotten it
	// stamped lines carry a time of their own. As in Prometheus, such series do not
	// end with their line.
	stamped bool
}

// observation is one exposition being read.
type observation struct {
	page     *page
	store    *store
	interest *interest
	at       int64
	previous *line
	// name and wants are those of the line before.
	name  []byte
	wants []*want
}

// observe takes over what one exposition says of selected series: those that were in
// the page's last one and are not in this end. parts are whole lines that Prometheus
// accepts. None is a source that could not be read.
func (p *page) observe(st *store, in *interest, at int64, parts [][]byte) {
	p.turn++
	p.met = 0
	o := observation{page: p, store: st, interest: in, at: at}
	for _, part := range parts {
		o.read(part)
	}
	if p.met == len(p.lines) {
		return
	}
	for text, l := range p.lines {
		if l.turn == p.turn {
			continue
		}
		if l.series != nil && l.series.owner == p {
			l.series.owner = nil
			if !l.stamped {
				st.end(l.series, at)
			}
		}
		p.drop(text, l)
	}
}

// owns tells whether the page tells of s: the first that has it does.
func (p *page) owns(s *series) bool {
	if s.owner == nil || p.place < s.owner.place {
		s.owner = p
	}
	return s.owner == p
}

// forget drops the lines whose series is not kept any more, and those that nobody
// wanted until now. The next exposition is looked at line by line again.
func (p *page) forget() {
	for text, l := range p.lines {
		if l.next = nil; l.series == nil || l.series.dropped {
			p.drop(text, l)
		}
	}
	p.first, p.unread = nil, true
}

// drop forgets a line; others may still say that it follows them.
func (p *page) drop(text string, l *line) {
	l.gone = true
	delete(p.lines, text)
}

// read goes through whole lines.
func (o *observation) read(body []byte) {
	for len(body) > 0 {
		if n := o.repeat(body); n > 0 {
			body = body[n:]
			continue
		}
		switch body[0] {
		case '#', '\n', ' ', '\t', '{', '\r':
			body = body[endOfLine(body):]
		default:
			body = body[o.sample(body):]
		}
	}
}

// repeat reads the line that followed the one before last time, if it is there
// again, and returns its length, else 0.
func (o *observation) repeat(body []byte) int {
	expected := o.page.first
	if o.previous != nil {
		expected = o.previous.next
	}
	if expected == nil || expected.gone || len(body) <= len(expected.text) || string(body[:len(expected.text)]) != expected.text {
		return 0
	}
	if c := body[len(expected.text)]; c != ' ' && c != '\t' {
		return 0
	}
	return o.take(expected, body)
}

// sample reads a line that begins with the name of a series, and returns its length.
func (o *observation) sample(body []byte) int {
	end := len(o.name)
	if end == 0 || len(body) <= end || body[end] != '{' || string(body[:end]) != string(o.name) {
		end = nameEnd(body)
		o.name, o.wants = body[:end], o.interest.family(body[:end])
		o.interest.meet(o.name)
	}
	if o.wants == nil {
		return skip(body)
	}
	end = seriesEnd(body, end)
	l := o.page.lines[string(body[:end])]
	if l == nil {
		l = o.page.add(string(body[:end]))
		if set, ok := parse(l.text); ok {
			if millis, wanted := keep(o.wants, set); wanted {
				l.series = o.store.get(set, millis)
			}
		}
	}
	return o.take(l, body)
}

// add begins to remember a line.
func (p *page) add(text string) *line {
	if p.lines == nil {
		p.lines = map[string]*line{}
	}
	l := &line{text: text}
	p.lines[text] = l
	return l
}

// take reads value and time of a line that begins with l's text, and returns the
// length of the line.
func (o *observation) take(l *line, body []byte) int {
	if o.previous == nil {
		o.page.first = l
	} else {
		o.previous.next = l
	}
	o.previous = l
	if l.turn != o.page.turn {
		l.turn = o.page.turn
		o.page.met++
	}
	end := len(l.text)
	end += endOfLine(body[end:])
	if l.series == nil || !o.page.owns(l.series) {
		return end
	}
	value, stamp, stamped := fields(body[len(l.text):end])
	v, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return end
	}
	t := o.at
	if l.stamped = stamped; stamped {
		if t, err = strconv.ParseInt(string(stamp), 10, 64); err != nil {
			return end
		}
	}
	o.store.add(l.series, t, v)
	return end
}

// fields returns the value and the timestamp of what follows a series.
func fields(rest []byte) (value, stamp []byte, stamped bool) {
	rest = bytes.TrimSpace(rest)
	i := bytes.IndexAny(rest, " \t")
	if i < 0 {
		return rest, nil, false
	}
	return rest[:i], bytes.TrimSpace(rest[i:]), true
}

// parse returns the labels of a series as it is written, its name among them; not
// ok if a label is there twice.
func parse(text string) (set labels.Labels, ok bool) {
	name := nameEnd([]byte(text))
	b := labels.NewScratchBuilder(16)
	b.Add(model.MetricNameLabel, text[:name])
	for _, l := range exposition.ParseLabels(text[name:], nil) {
		if l.Value != "" {
			b.Add(l.Name, l.Value)
		}
	}
	b.Sort()
	set = b.Labels()
	_, twice := set.HasDuplicateLabelNames()
	return set, !twice
}

// nameEnd returns where the name that a line begins with ends. A sign of the value may
// stand right behind it.
func nameEnd(line []byte) int {
	for i, c := range line {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != ':' {
			return i
		}
	}
	return len(line)
}

// seriesEnd returns where the series of a line ends whose name ends at i: behind
// its label block, if it has one.
func seriesEnd(line []byte, i int) int {
	if i == len(line) || line[i] != '{' {
		return i
	}
	quoted := false
	for ; i < len(line); i++ {
		switch {
		case quoted && line[i] == '\\':
			i++
		case line[i] == '"':
			quoted = !quoted
		case !quoted && line[i] == '}':
			return i + 1
		}
	}
	return len(line)
}

// skip returns the length of a line. A newline in a label's value does not end it.
func skip(body []byte) int {
	end := endOfLine(body)
	brace := bytes.LastIndexByte(body[:end], '}')
	if brace < 3 {
		if bytes.IndexByte(body[:end], '{') < 0 {
			return end
		}
	} else if body[brace-1] == '"' && body[brace-2] != '\\' && body[brace-2] != '=' {
		return end // the quote closes a value, and so the brace the block
	}
	series := seriesEnd(body, nameEnd(body))
	return series + endOfLine(body[series:])
}

// endOfLine returns the length of body up to its first newline, which is included.
func endOfLine(body []byte) int {
	if i := bytes.IndexByte(body, '\n'); i >= 0 {
		return i + 1
	}
	return len(body)
}
