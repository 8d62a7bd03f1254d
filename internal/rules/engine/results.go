package engine

import (
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// block is the results recorded under one name. It is not written to once it is
// published.
type block struct {
	header []byte
	parts  []part
}

// part is the results of one rule as lines of the exposition.
type part struct {
	text []byte
	// until is when they are too old to be served: the next evaluation should have
	// replaced them long before. Well before from they are of the future, as the clock
	// was set back.
	from, until time.Time
}

// Results passes the results of the last evaluations on as an exposition in
// pieces, one block for each name, if they are not too old at an instant. The pieces
// must not be written to. It may be called from any goroutine.
func (e *Engine) Results(now time.Time, pass func([]byte)) {
	for _, b := range *e.served.Load() {
		headed := false
		for _, p := range b.parts {
			if now.After(p.until) || p.from.Sub(now) > leap {
				continue
			}
			if !headed {
				headed = true
				pass(b.header)
			}
			pass(p.text)
		}
	}
}

// publish renders the results that all rules have now, after the evaluation of one
// group, or nil.
func (e *Engine) publish(evaluated *group) {
	var blocks []block
	index := map[string]int{}   // of blocks, by name
	series := map[string]bool{} // of names that several rules record
	sharing := e.sharedNames()
	for _, g := range *e.groups.Load() {
		from, until := g.fresh()
		for _, r := range g.rules {
			if len(r.order) == 0 || e.interest.serves(r.Record) {
				continue
			}
			i, ok := index[r.Record]
			if !ok {
				i = len(blocks)
				index[r.Record] = i
				blocks = append(blocks, block{header: headerOf(g, r)})
			}
			var written map[string]bool
			if sharing[r.Record] > 1 {
				written = series
			}
			lines, duplicates := r.render(written)
			if g == evaluated {
				r.duplicates.Add(duplicates)
			}
			blocks[i].parts = append(blocks[i].parts, part{lines, from, until})
		}
	}
	e.served.Store(&blocks)
}

// sharedNames counts the rules that record under each name.
func (e *Engine) sharedNames() map[string]int {
	names := map[string]int{}
	for _, g := range *e.groups.Load() {
		for _, r := range g.rules {
			names[r.Record]++
		}
	}
	return names
}

// fresh is when the results of g's last evaluation may be served: until the one after
// the next was due, the time that it takes included.
func (g *group) fresh() (from, until time.Time) {
	from = time.UnixMilli(g.evaluated.Load())
	return from, from.Add(2*g.interval + time.Second)
}

// headerOf returns HELP and TYPE of what a rule records. The type of an expression's
// result is not known.
func headerOf(g *group, r *rule) []byte {
	return exposition.AppendHeader(nil, r.Record, "Recorded by the rule group "+g.Name+".", "untyped")
}

// render returns the results as lines. Series that are in written, which may be nil,
// are left out and counted; the others are added to it.
func (r *rule) render(written map[string]bool) (lines []byte, duplicates uint64) {
	size := 0
	for _, x := range r.order {
		size += len(x.text) + 24
	}
	lines = make([]byte, 0, size)
	for _, x := range r.order {
		if written[x.text] {
			duplicates++
			continue
		}
		if written != nil {
			written[x.text] = true
		}
		lines = append(lines, x.text...)
		lines = append(exposition.AppendFloat(lines, x.value), '\n')
	}
	return lines, duplicates
}

// seriesText returns a series in the text format, and a space; "" if a label has a name
// that the format has not.
func seriesText(l labels.Labels) string {
	b := []byte(l.Get(model.MetricNameLabel))
	separator, unknown := byte('{'), false
	l.Range(func(one labels.Label) {
		if one.Name == model.MetricNameLabel {
			return
		}
		unknown = unknown || !model.LegacyValidation.IsValidLabelName(one.Name)
		b = exposition.AppendLabel(append(b, separator), one.Name, one.Value)
		separator = ','
	})
	if unknown {
		return ""
	}
	if separator == ',' {
		b = append(b, '}')
	}
	return string(append(b, ' '))
}
