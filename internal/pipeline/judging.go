package pipeline

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// judging turns batches into frames and verdicts. Its lock is held by the user of the judge.
type judging struct {
	sync.Mutex
	translator *translate.Translator
	judge      *compute.Judge
	next       atomic.Pointer[settings] // of Change, for the next reading
	meter      meter
	report     translate.Report     // of the latest batch
	events     []canonical.Event    // scratch
	faults     [2][]canonical.Fault // of the previous reading and of this one; scratch
	unsaved    bool                 // those of the previous reading
	left       bool                 // the judge was given away
}

// settings are the arguments of Change; a nil translator stays as it is.
type settings struct {
	translator *translate.Translator
	judge      *compute.Judge
}

// Change makes judge judge the next readings, continuing from the state of the present one, and
// translator translate them unless it is nil. Neither may be in use elsewhere, then or later.
func (p *Pipeline) Change(judge *compute.Judge, translator *translate.Translator) {
	p.judging.next.Store(&settings{translator, judge})
}

// apply applies what Change set. The caller holds the lock.
func (j *judging) apply() {
	s := j.next.Swap(nil)
	if s == nil {
		return
	}
	s.judge.Resume(j.judge)
	j.judge = s.judge
	if s.translator != nil {
		j.translator = s.translator
	}
}

// Remains are the state of devices that are no longer read: health, accounts and events.
type Remains struct {
	judge  *compute.Judge
	events []canonical.Event
}

// Leave returns the state of p after its Run has returned. p must not be used any more.
func (p *Pipeline) Leave() *Remains {
	p.judging.Lock()
	defer p.judging.Unlock()
	p.judging.apply()
	p.judging.left = true
	return &Remains{p.judging.judge, p.Events(nil)}
}

// Resume makes p, which has read nothing yet, continue from the state that another pipeline left for
// the same devices, for example if their address changed. It takes ownership of r.
func (p *Pipeline) Resume(r *Remains) {
	p.judging.judge.Resume(r.judge)
	p.memory.events.Add(r.events...)
}

// Resolve marks the fatal XIDs of the board with a UUID as resolved, from the next
// reading on. It reports whether the source knows the board, and whether there were any.
func (p *Pipeline) Resolve(uuid string) (known, resolved bool) {
	state, _ := p.Status()
	if state.Roster == nil || !slices.ContainsFunc(slices.Concat(state.Roster.Devices, state.Roster.Missed), func(d canonical.Device) bool { return d.UUID == uuid }) {
		return false, false
	}
	p.judging.Lock()
	defer p.judging.Unlock()
	if p.judging.left {
		return false, false
	}
	return true, p.judging.judge.Resolve(uuid)
}

// Glance calls see with frame, verdicts, judgement and host of the last good reading, of any age, if there was one.
// see must not keep them, nor read anything else of the snapshot. Meanwhile no reading is judged.
func (p *Pipeline) Glance(see func(*canonical.Snapshot)) {
	p.judging.Lock()
	defer p.judging.Unlock()
	p.mu.Lock()
	last := p.memory.last
	p.mu.Unlock()
	if last != nil {
		see(&last.snapshot)
	}
}
