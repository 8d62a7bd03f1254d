package engine

import (
	"time"

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
			if now.After(p.until) || p.from.Sub(now) > tolerance {
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

// publish renders the current results of all rules. Of rules that record the same series, the first
// has it. Results are served until the evaluation after the next is due, plus a second for its
// duration.
func (e *Engine) publish() {
	var blocks []block
	index := map[string]int{} // of blocks, by name
	sharing := map[string]int{}
	for _, g := range *e.groups.Load() {
		for _, r := range g.rules {
			sharing[r.Record]++
		}
	}
	written := map[string]bool{} // series, of names that several rules record
	for _, g := range *e.groups.Load() {
		from := time.UnixMilli(g.evaluated.Load())
		until := from.Add(2*g.Interval + time.Second)
		for _, r := range g.rules {
			if len(r.results) == 0 || e.interest.records[r.Record] {
				continue
			}
			i, ok := index[r.Record]
			if !ok {
				i = len(blocks)
				index[r.Record] = i
				// The type of an expression's result is unknown.
				header := exposition.AppendHeader(nil, r.Record, "Recorded by the rule group "+g.Name+".", "untyped")
				blocks = append(blocks, block{header: header})
			}
			size := 0
			for _, x := range r.results {
				size += len(x.text) + 24 // of the value
			}
			text := make([]byte, 0, size)
			for _, x := range r.results {
				if sharing[r.Record] > 1 {
					if written[x.text] {
						continue
					}
					written[x.text] = true
				}
				text = append(exposition.AppendFloat(append(text, x.text...), x.value), '\n')
			}
			blocks[i].parts = append(blocks[i].parts, part{text, from, until})
		}
	}
	e.served.Store(&blocks)
}
