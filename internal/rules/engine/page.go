package engine

import (
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/rules"
)

// maxFamilies bounds the names whose selectors an interest remembers. No real page has as
// many families; a page that invents names costs time instead of memory.
const maxFamilies = 1 << 14

// selector selects series of a rule's expression.
type selector struct {
	matchers []*labels.Matcher
	// keep is how long before the last sample, in milliseconds, samples may count for its
	// expression. Of older ones only the newest counts, which an instant selector may see.
	keep int64
}

// interest describes the series that the rules select.
type interest struct {
	selectors []selector
	// families are the selectors that each name seen so far may satisfy.
	families map[string][]selector
	// records are the names that the rules record, true if a source serves a family of
	// that name.
	records map[string]bool
	// changed is set when a source is found to serve a recorded name.
	changed bool
}

// newInterest returns the interest of the rules of groups. Names that old knows as served stay so.
func newInterest(groups []rules.Group, old *interest) *interest {
	in := &interest{families: map[string][]selector{}, records: map[string]bool{}}
	for _, g := range groups {
		for _, r := range g.Rules {
			in.records[r.Record] = old != nil && old.records[r.Record]
			keep := r.Reach.Milliseconds() + g.Offset.Milliseconds()
			for _, matchers := range r.Selects {
				in.selectors = append(in.selectors, selector{matchers, keep})
			}
		}
	}
	return in
}

// serve records that a source serves a family of this name.
func (in *interest) serve(name string) {
	if served, recorded := in.records[name]; recorded && !served {
		in.records[strings.Clone(name)] = true
		in.changed = true
	}
}

// family returns the selectors that series of this name may satisfy, nil if no rule
// selects them. It allocates nothing for a name that it remembers.
func (in *interest) family(name string) []selector {
	if selectors, known := in.families[name]; known {
		return selectors
	}
	if len(in.families) >= maxFamilies {
		clear(in.families)
	}
	var selectors []selector
	for _, sel := range in.selectors {
		may := true
		for _, m := range sel.matchers {
			may = may && (m.Name != model.MetricNameLabel || m.Matches(name))
		}
		if may {
			selectors = append(selectors, sel)
		}
	}
	in.families[strings.Clone(name)] = selectors
	return selectors
}

// keep returns how long samples of a series are needed, in milliseconds, and whether any rule
// selects it.
func (in *interest) keep(series labels.Labels) (millis int64, selected bool) {
	for _, sel := range in.family(series.Get(model.MetricNameLabel)) {
		if matches(sel.matchers, series) {
			millis, selected = max(millis, sel.keep), true
		}
	}
	return millis, selected
}

// page remembers the exposition of one source, so that reading the next costs little: it
// skips lines of families that no rule selects, and parses labels once for each series.
type page struct {
	rank  int              // of the source, as Options.Rank
	lines map[string]*line // by series as written, name and label block
	scan  uint64           // number of the current exposition
}

// line is a series of a selected family as its source writes it.
type line struct {
	series *series // nil if no rule selects it, or the store was full
	scan   uint64  // number of the last exposition that had it
	// stamped is set if the line has a timestamp. As in Prometheus, such a series does
	// not end when its line is gone.
	stamped bool
}

// observe stores the samples of selected series of one exposition, and ends the series that
// the page's last exposition had and this one lacks. parts are whole lines that Prometheus
// accepts; no parts mean a source that could not be read. Of pages that share a series, the
// one with the lowest rank owns it while it has it.
func (p *page) observe(st *store, in *interest, at int64, parts [][]byte) {
	p.scan++
	if p.lines == nil {
		p.lines = map[string]*line{}
	}
	for _, part := range parts {
		r := pageReader{page: p, store: st, interest: in, at: at, text: exposition.View(part)}
		for i := 0; i < len(r.text); {
			i = r.read(i)
		}
	}
	for key, l := range p.lines {
		if l.scan == p.scan {
			continue
		}
		delete(p.lines, key)
		// A series may still be there, spelled differently.
		if l.series != nil && l.series.owner == p && l.series.scan != p.scan {
			l.series.owner = nil
			if !l.stamped {
				st.end(l.series, at)
			}
		}
	}
}

// pageReader reads a part of an exposition.
type pageReader struct {
	page     *page
	store    *store
	interest *interest
	at       int64
	text     string
	// name is that of the previous line, and wanted whether a rule may select it.
	name   string
	wanted bool
}

// read reads the line at i, and returns the start of the next. Series whose name is in quotes are
// skipped: no rule selects them.
func (r *pageReader) read(i int) int {
	text, end := r.text, i+len(r.name)
	if end == i || end >= len(text) || text[end] != '{' || text[i:end] != r.name {
		if end = exposition.NameEnd(text, i); end == i {
			return exposition.Next(text, i).End
		}
		r.name = text[i:end]
		r.wanted = r.interest.family(r.name) != nil
		r.interest.serve(r.name)
	}
	if !r.wanted {
		return exposition.SkipSeries(text, i)
	}
	line := text[i:exposition.NextLine(text, i)]
	if brace := strings.LastIndexByte(line, '}'); brace >= 0 { // a known text ends where its block does
		if l := r.page.lines[line[:brace+1]]; l != nil {
			return r.sample(l, line[:brace+1], i+brace+1)
		}
	}
	if brace := exposition.SkipBlanks(text, end); brace < len(text) && text[brace] == '{' {
		if end = exposition.BlockEnd(text, brace); end < 0 {
			return exposition.NextLine(text, i)
		}
	}
	return r.sample(r.page.lines[text[i:end]], text[i:end], end)
}

// sample reads the value of a series that ends at end, and returns the start of the next line. l is what is known about it,
// nil for nothing.
func (r *pageReader) sample(l *line, written string, end int) int {
	p := r.page
	if l == nil || l.series != nil && l.series.dropped {
		written = strings.Clone(written)
		l = &line{series: selected(r.store, r.interest, written)}
		p.lines[written] = l
	}
	l.scan = p.scan
	if l.series == nil || l.series.owner != nil && l.series.owner != p && l.series.owner.rank <= p.rank {
		return exposition.NextLine(r.text, end)
	}
	l.series.owner, l.series.scan = p, p.scan
	v, t, next, ok := exposition.ReadValue(r.text, end)
	if !ok {
		return exposition.NextLine(r.text, end)
	}
	if l.stamped = t != exposition.NoTimestamp; !l.stamped {
		t = r.at
	}
	r.store.add(l.series, t, v)
	return next
}

// selected returns the series that is written as text, nil if no rule selects it, the store is full,
// or a label is repeated.
func selected(st *store, in *interest, text string) *series {
	name := exposition.NameEnd(text, 0)
	b := labels.NewScratchBuilder(16)
	b.Add(model.MetricNameLabel, text[:name])
	for _, l := range exposition.ParseLabels(text[exposition.SkipBlanks(text, name):], nil) {
		if l.Value != "" {
			b.Add(l.Name, l.Value)
		}
	}
	b.Sort()
	set := b.Labels()
	if _, twice := set.HasDuplicateLabelNames(); twice {
		return nil
	}
	if millis, selected := in.keep(set); selected {
		return st.get(set, millis)
	}
	return nil
}
