package engine

import (
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// block is the results recorded under one name. It is not modified once it is published.
type block struct {
	header []byte
	parts  []part
}

// part is the results of one rule, as lines of the exposition.
type part struct {
	text []byte
	// After until the results are too old to serve: the next evaluation should have
	// replaced them. If from is well in the future, the clock was set back.
	from, until time.Time
}

// Results passes the results of the last evaluations that are not too old at now to pass,
// as pieces of an exposition with one block for each name. pass must not modify the pieces.
// Results is safe for concurrent use.
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

// publish renders the current results of all rules. evaluated is the group that was
// evaluated, nil for none.
func (e *Engine) publish(evaluated *group) {
	var blocks []block
	index := map[string]int{}   // of blocks, by name
	series := map[string]bool{} // written, of names that several rules record
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

// fresh returns when the results of g's last evaluation may be served: until the evaluation
// after the next is due, plus a second for its duration.
func (g *group) fresh() (from, until time.Time) {
	from = time.UnixMilli(g.evaluated.Load())
	return from, from.Add(2*g.interval + time.Second)
}

// headerOf returns HELP and TYPE of the series that a rule records. The type of an
// expression's result is unknown.
func headerOf(g *group, r *rule) []byte {
	return exposition.AppendHeader(nil, r.Record, "Recorded by the rule group "+g.Name+".", "untyped")
}

// render returns the results as lines. It omits and counts the series in written, which may
// be nil, and adds the others to it.
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

// seriesText returns a series in the text format, followed by a space; "" if the format
// does not allow the name of a label.
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
