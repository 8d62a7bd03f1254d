package expose

import (
	"fmt"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Passthrough says which of the upstream's bytes are served.
type Passthrough uint8

// The ways to pass the upstream through.
const (
	// PassValid serves the lines that a Prometheus server accepts and that are not kpulse_
	// series.
	PassValid Passthrough = iota
	// PassVerbatim serves every byte.
	PassVerbatim
	// PassOff serves only the kpulse_ series.
	PassOff
)

// ParsePassthrough returns the Passthrough named by one of valid, verbatim, off.
func ParsePassthrough(word string) (Passthrough, error) {
	p := slices.Index([]string{"valid", "verbatim", "off"}, word)
	if p < 0 {
		return 0, fmt.Errorf("%q is unknown; use valid, verbatim or off", word)
	}
	return Passthrough(p), nil
}

// writeAll passes through the expositions of all upstreams: the valid lines of several merged by
// family, else one after the other. It reports whether what that takes fits into memory; if not, nothing is written.
func (p Passthrough) writeAll(o *output, readings []outcome) bool {
	several := 0
	for i := range readings {
		if readings[i].snapshot != nil {
			several++
		}
	}
	merges := p == PassValid && several > 1
	for i := range readings {
		switch snap := readings[i].snapshot; {
		case snap == nil:
		case merges:
			o.merger.add(snap)
		default:
			p.write(&o.buffer, snap)
		}
	}
	if o.merger.full {
		return false
	}
	if merges {
		o.merger.write(&o.buffer)
	}
	return true
}

// write passes through the upstream's exposition in snap, and ends its last line.
func (p Passthrough) write(b *buffer, snap *canonical.Snapshot) {
	if snap.Text != nil && p != PassOff {
		b.buf = snap.Text.AppendText(b.buf)
		b.flushIfFull()
	}
	var last []byte
	switch p {
	case PassValid:
		for _, part := range snap.Valid {
			b.pass(part)
			last = part
		}
	case PassVerbatim:
		b.pass(snap.Body)
		last = snap.Body
	}
	if len(last) > 0 && last[len(last)-1] != '\n' {
		b.buf = append(b.buf, '\n')
	}
}
