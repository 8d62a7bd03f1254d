package pipeline

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// keepEvents adds what happened in the latest reading to the events. It belongs to the
// reading goroutine.
func (p *Pipeline) keepEvents() {
	p.newEvents = p.opts.Judge.Events(p.newEvents[:0])
	if len(p.newEvents) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events.Add(p.newEvents...)
	clear(p.newEvents) // texts
}

// Events appends to dst the latest events of the source's devices, the newest last.
func (p *Pipeline) Events(dst []canonical.Event) []canonical.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events.AppendTo(dst)
}

// Resolve marks the fatal XIDs of the board with a UUID as resolved, from the next
// reading on. It reports whether the source knows the board, and whether there were any.
func (p *Pipeline) Resolve(uuid string) (known, resolved bool) {
	state, _ := p.Status()
	if state.Roster == nil || !slices.ContainsFunc(state.Roster.Devices, func(d canonical.Device) bool { return d.UUID == uuid }) {
		return false, false
	}
	p.judging.Lock()
	defer p.judging.Unlock()
	if p.left {
		return false, false
	}
	return true, p.opts.Judge.Resolve(uuid)
}
