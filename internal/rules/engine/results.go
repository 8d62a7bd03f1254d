package engine

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// block is the results recorded under one name. Nobody writes to it once it is
// published.
type block struct {
	header []byte
	parts  []part
}

// part is the results of one rule as lines of the exposition.
type part struct {
	text []byte
	// until is when they are too old to be served: the next evaluation should have
	// replaced them long before.
	until time.Time
}

// Results passes the results of the last evaluations on as an exposition in
// pieces, one block for each name, if they are not too old at an instant. Nobody may
// write to the pieces. It may be called from any goroutine.
func (e *Engine) Results(now time.Time, pass func([]byte)) {
	for _, b := range *e.served.Load() {
		headed := false
		for _, p := range b.parts {
			if now.After(p.until) {
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
	places := map[string]int{}
	lines := map[string]bool{} // of names that several rules record
	sharing := e.sharedNames()
	for _, g := range *e.groups.Load() {
		until := g.freshUntil()
		for _, r := range g.rules {
			if len(r.order) == 0 || e.interest.serves(r.Record) {
				continue
			}
			i, ok := places[r.Record]
			if !ok {
				i = len(blocks)
				places[r.Record] = i
				blocks = append(blocks, block{header: headerOf(g, r)})
			}
			var taken map[string]bool
			if sharing[r.Record] > 1 {
				taken = lines
			}
			lines, duplicates := r.render(taken)
			if g == evaluated {
				r.duplicates.Add(duplicates)
			}
			blocks[i].parts = append(blocks[i].parts, part{lines, until})
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

// freshUntil is when the results of g's last evaluation are too old: two intervals
// later, the evaluation of the next ones included.
func (g *group) freshUntil() time.Time {
	return time.UnixMilli(g.evaluated.Load()).Add(2*g.interval + time.Second)
}

// headerOf returns HELP and TYPE of what a rule records. What type the result of an
// expression has nobody knows.
func headerOf(g *group, r *rule) []byte {
	help := strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace("Recorded by the rule group " + g.Name + ".")
	return []byte("# HELP " + r.Record + " " + help + "\n# TYPE " + r.Record + " untyped\n")
}

// render returns the results as lines. Those that are in taken, which may be nil, are
// left out and counted; the others are added to it.
func (r *rule) render(taken map[string]bool) (lines []byte, duplicates uint64) {
	size := 0
	for _, x := range r.order {
		size += len(x.text) + 24
	}
	lines = make([]byte, 0, size)
	for _, x := range r.order {
		if taken[x.text] {
			duplicates++
			continue
		}
		if taken != nil {
			taken[x.text] = true
		}
		lines = append(lines, x.text...)
		lines = append(appendValue(lines, x.value), '\n')
	}
	return lines, duplicates
}

// appendValue appends a value in the text format.
func appendValue(dst []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(dst, "+Inf"...)
	case v == math.Trunc(v) && math.Abs(v) < 1<<53 && !math.Signbit(v):
		return strconv.AppendInt(dst, int64(v), 10)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64) // -Inf and NaN are written so too
}

// seriesText returns a series in the text format, and a space.
func seriesText(l labels.Labels) string {
	var b strings.Builder
	b.WriteString(l.Get(model.MetricNameLabel))
	separator := byte('{')
	l.Range(func(one labels.Label) {
		if one.Name == model.MetricNameLabel {
			return
		}
		b.WriteByte(separator)
		separator = ','
		writeName(&b, one.Name)
		b.WriteString(`="`)
		b.WriteString(escape(one.Value))
		b.WriteByte('"')
	})
	if separator == ',' {
		b.WriteByte('}')
	}
	b.WriteByte(' ')
	return b.String()
}

// escape returns a label's value as the text format wants it between quotes.
func escape(value string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value)
}

// writeName writes the name of a label, in quotes where it needs them: an upstream
// can have such.
func writeName(b *strings.Builder, name string) {
	if model.LegacyValidation.IsValidLabelName(name) {
		b.WriteString(name)
		return
	}
	b.WriteString(`"` + escape(name) + `"`)
}
