package engine

import (
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// page remembers the exposition of one source, so that reading the next costs little: it
// skips lines of families that no rule selects, and parses labels once for each series.
type page struct {
	rank  int              // of its source; the lowest rank owns a shared series
	lines map[string]*line // by series as written, name and label block
	scan  uint64           // number of the current exposition
	seen  int              // its lines so far
	first *line            // its first line
	// reset is set if the page has forgotten lines and not been read since.
	reset bool
}

// line is a series of a selected family as its source writes it.
type line struct {
	text   string
	series *series // nil if no rule selects it, or the store was full
	scan   uint64  // number of the last exposition that had it
	next   *line   // the line that followed there
	gone   bool    // the page has forgotten it
	// stamped is set if the line has a timestamp. As in Prometheus, such a series does
	// not end when its line is gone.
	stamped bool
}

// observation is the state of reading one exposition.
type observation struct {
	page     *page
	store    *store
	interest *interest
	at       int64
	text     string // the part being read
	previous *line
	// name and selectors are those of the previous line.
	name      string
	selectors []*selector
}

// observe stores the samples of selected series of one exposition, and ends the series that
// the page's last exposition had and this one lacks. parts are whole lines that Prometheus
// accepts; no parts mean a source that could not be read.
func (p *page) observe(st *store, in *interest, at int64, parts [][]byte) {
	p.scan++
	p.seen = 0
	o := observation{page: p, store: st, interest: in, at: at}
	for _, part := range parts {
		o.text, o.name = exposition.View(part), ""
		o.read()
	}
	if p.seen == len(p.lines) {
		return
	}
	for _, l := range p.lines {
		if l.scan == p.scan {
			continue
		}
		// A series may still be there, spelled differently.
		if l.series != nil && l.series.owner == p && l.series.scan != p.scan {
			l.series.owner = nil
			if !l.stamped {
				st.end(l.series, at)
			}
		}
		p.drop(l)
	}
}

// owns reports whether the samples of s are the page's: the page of the lowest rank that
// has a series owns it.
func (p *page) owns(s *series) bool {
	if s.owner == nil || p.rank < s.owner.rank {
		s.owner = p
	}
	return s.owner == p
}

// forget drops the lines whose series was dropped, and those that no rule selected so far.
// The next exposition is read line by line again.
func (p *page) forget() {
	for _, l := range p.lines {
		if l.next = nil; l.series == nil || l.series.dropped {
			p.drop(l)
		}
	}
	p.first, p.reset = nil, true
}

// drop forgets a line; others may still refer to it as their next.
func (p *page) drop(l *line) {
	l.gone = true
	delete(p.lines, l.text)
}

// read reads the lines of a part. Series whose name is in quotes are skipped: no
// rule selects them.
func (o *observation) read() {
	for i := 0; i < len(o.text); {
		if next := o.repeat(i); next > i {
			i = next
		} else if end := o.nameEnd(i); end > i {
			i = o.sample(i, end)
		} else {
			i = exposition.Next(o.text, i).End
		}
	}
}

// repeat reads the line at i if it is of the series that followed the previous line in the
// last exposition. It returns the start of the next line, or i.
func (o *observation) repeat(i int) int {
	expected := o.page.first
	if o.previous != nil {
		expected = o.previous.next
	}
	if expected == nil || expected.gone || !strings.HasPrefix(o.text[i:], expected.text) {
		return i
	}
	end := i + len(expected.text)
	value := exposition.SkipBlanks(o.text, end)
	if value == end || value == len(o.text) || o.text[value] == '{' {
		return i // another name, perhaps, or the name before other labels
	}
	return o.value(expected, end)
}

// nameEnd returns the end of the metric name at i, i if there is none.
func (o *observation) nameEnd(i int) int {
	if end := i + len(o.name); end > i && end < len(o.text) && o.text[end] == '{' && o.text[i:end] == o.name {
		return end
	}
	return exposition.NameEnd(o.text, i)
}

// sample reads the line of a series at i, whose name ends at end, and returns the start of
// the next line.
func (o *observation) sample(i, end int) int {
	if name := o.text[i:end]; name != o.name {
		o.name, o.selectors = name, o.interest.family(name)
		o.interest.serve(name)
	}
	if o.selectors == nil {
		return exposition.SkipSeries(o.text, i)
	}
	if brace := exposition.SkipBlanks(o.text, end); brace < len(o.text) && o.text[brace] == '{' {
		if end = exposition.BlockEnd(o.text, brace); end < 0 {
			return exposition.NextLine(o.text, i)
		}
	}
	l := o.page.lines[o.text[i:end]]
	if l == nil {
		l = o.page.add(strings.Clone(o.text[i:end]))
		if set, ok := parse(l.text); ok {
			if millis, selected := keep(o.selectors, set); selected {
				l.series = o.store.get(set, millis)
			}
		}
	}
	return o.value(l, end)
}

// add adds a line to the page.
func (p *page) add(text string) *line {
	if p.lines == nil {
		p.lines = map[string]*line{}
	}
	l := &line{text: text}
	p.lines[text] = l
	return l
}

// value reads the value and the timestamp of l, whose text ends at i, and returns the
// start of the next line.
func (o *observation) value(l *line, i int) int {
	if o.previous == nil {
		o.page.first = l
	} else {
		o.previous.next = l
	}
	o.previous = l
	if l.scan != o.page.scan {
		l.scan = o.page.scan
		o.page.seen++
	}
	if l.series == nil || !o.page.owns(l.series) {
		return exposition.NextLine(o.text, i)
	}
	l.series.scan = o.page.scan
	v, t, next, ok := exposition.ReadValue(o.text, i)
	if !ok {
		return exposition.NextLine(o.text, i)
	}
	if l.stamped = t != exposition.NoTimestamp; !l.stamped {
		t = o.at
	}
	o.store.add(l.series, t, v)
	return next
}

// parse returns the labels of a series as written, including its name; not ok if a label
// is repeated.
func parse(text string) (set labels.Labels, ok bool) {
	name := exposition.NameEnd(text, 0)
	b := labels.NewScratchBuilder(16)
	b.Add(model.MetricNameLabel, text[:name])
	for _, l := range exposition.ParseLabels(text[exposition.SkipBlanks(text, name):], nil) {
		if l.Value != "" {
			b.Add(l.Name, l.Value)
		}
	}
	b.Sort()
	set = b.Labels()
	_, twice := set.HasDuplicateLabelNames()
	return set, !twice
}
