package pipeline

import (
	"context"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// maxFree is how many unreferenced readings are kept: one being served, one being
// read, and two that slow clients may just have released.
const maxFree = 4

// reading is the memory of one reading from its bytes to its verdicts. The reading goroutine
// writes it; then it is shared read-only until its last reference is released, and reused.
type reading struct {
	refs      int // guarded by Pipeline.mu; being the latest reading counts as one
	batch     raw.Batch
	snapshot  canonical.Snapshot
	rendition translate.Rendition // that of snapshot.Further, if that is set
	host      canonical.Host      // that of snapshot.Host, if that is set
	period    time.Duration       // the stream's actual period until then
	owner     *Pipeline
}

// Release drops one reference to r. It is the lease of Observer.Observe.
func (r *reading) Release() {
	r.owner.mu.Lock()
	defer r.owner.mu.Unlock()
	r.owner.drop(r)
}

// acquire returns a reading to write into. For a scraped source that is the latest
// one if it has no other reference: it is too old to be served again, and a body may
// be large. A stream's latest is served until the next is there.
func (p *Pipeline) acquire() *reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	var r *reading
	if l := p.latest; l != nil && l.refs == 1 && p.caps.Kind == source.Scraped {
		r, p.latest = l, nil
	} else if n := len(p.free); n > 0 {
		r, p.free = p.free[n-1], p.free[:n-1]
	}
	if r == nil || r.outgrown(p.state.Samples) {
		return &reading{owner: p}
	}
	return r
}

// read reads the source once. Only one goroutine may run it at a time.
func (p *Pipeline) read(ctx context.Context) (*reading, error) {
	r := p.acquire()
	if err := p.opts.Source.Read(ctx, &r.batch); err != nil {
		r.Release()
		return nil, err
	}
	p.conclude(r)
	return r, nil
}

// conclude makes a snapshot of the batch of r: translate, compute, account. Only one goroutine
// may run it at a time.
func (p *Pipeline) conclude(r *reading) {
	b, snap := &r.batch, &r.snapshot
	p.judge(snap, b)
	r.period = p.meter.usual()
	snap.Body = b.Body
	snap.Valid = validParts(snap.Valid[:0], b)
	if snap.Text = nil; len(b.Body) == 0 && b.Exposition != nil {
		snap.Text = b
	}
	if snap.Further = nil; p.opts.Translator.Render(&r.rendition, &snap.Frame, b) {
		snap.Further = &r.rendition
	}
	if snap.Host = nil; p.host.look(p.ctx, &r.host) {
		snap.Host = &r.host
	}
	p.missing = translate.Missing(&snap.Frame, p.opts.Judge.Inputs(), p.missing[:0])
	p.unusable = translate.Unusable(&snap.Frame, p.missing, p.unusable[:0])
	snap.Source = p.account(b)
	snap.Source.Devices, snap.Source.Roster = snap.Frame.Len(), snap.Ledger.Roster
}

// judge translates b and judges it.
func (p *Pipeline) judge(snap *canonical.Snapshot, b *raw.Batch) {
	p.judging.Lock()
	defer p.judging.Unlock()
	p.applySettings()
	p.report = translate.Report{}
	p.opts.Translator.Translate(&snap.Frame, b, &p.report)
	if snap.Frame.LeftOutAllocations = 0; p.opts.Attribute != nil {
		p.opts.Attribute(&snap.Frame)
		p.report.DroppedAllocations += snap.Frame.LeftOutAllocations
	}
	if p.opts.XIDEvents != nil {
		p.opts.XIDEvents(&snap.Frame)
	}
	snap.Verdicts = p.opts.Judge.Judge(&snap.Frame, snap.Verdicts)
	snap.Judgement = p.opts.Judge.Judgement()
	p.opts.Judge.Account(&snap.Ledger, &snap.Frame, snap.Verdicts, p.meter.lap(b.At))
	p.keepEvents()
}

// outgrown reports whether r has far more memory than a reading of so many samples needs: one
// huge body must not pin its size permanently.
func (r *reading) outgrown(samples int) bool {
	const keep, factor = 1 << 16, 8 // samples, of 16 bytes each and some 200 of text
	return cap(r.batch.Samples) > keep && cap(r.batch.Samples)/factor > samples
}

// drop drops one reference to r, for callers that hold mu.
func (p *Pipeline) drop(r *reading) {
	if r.refs--; r.refs <= 0 && len(p.free) < maxFree && !r.outgrown(p.state.Samples) {
		r.refs = 0
		p.free = append(p.free, r)
	}
}

// publish makes r the latest reading. It gets a reference for that, one for each of n waiters,
// and one for the goroutine that read it, which must call observe. The caller holds mu.
func (p *Pipeline) publish(r *reading, n int) {
	p.logReading(&r.snapshot.Source)
	p.logLines(&r.batch)
	r.refs = n + 2
	p.observing = true
	if p.latest != nil {
		p.drop(p.latest)
	}
	p.latest, p.last = r, r
	p.state = r.snapshot.Source
	p.period = r.period
	p.good = time.Now()
	p.attempt = p.good
}

// observe hands r to the observer, and with it the reference of the reading goroutine
// if the observer keeps it.
func (p *Pipeline) observe(r *reading) {
	kept := p.opts.Observer != nil && p.opts.Observer.Observe(&r.snapshot, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observing = false
	if !kept {
		p.drop(r)
	}
}

// account adds the outcome of b to the totals and returns the source's state. Only the reading
// goroutine changes the totals.
func (p *Pipeline) account(b *raw.Batch) canonical.Source {
	p.mu.Lock()
	s := p.state
	p.mu.Unlock()
	s.Failure = nil
	s.Streams = p.streams()
	if p.version != nil {
		s.Version = p.version()
	}
	p.note(&s)
	s.At, s.Took = b.At, b.Took
	if p.changed(b) {
		s.ChangedAt = b.At
	}
	s.Samples = len(b.Samples)
	s.UnknownFamilies = p.report.UnknownFamilies
	s.Further = p.opts.Translator.Rendered()
	// Published slices are immutable.
	if !slices.Equal(s.Missing, p.missing) {
		s.Missing = slices.Clone(p.missing)
	}
	if !slices.Equal(s.Unusable, p.unusable) {
		s.Unusable = slices.Clone(p.unusable)
	}
	s.SkippedLines += uint64(b.Skipped)
	s.DroppedFamilies += uint64(b.OwnFamilies)
	s.DroppedSeries += p.report.DroppedSeries
	s.DroppedAllocations += p.report.DroppedAllocations
	s.ClampedValues += p.report.Clamped
	for reason, n := range p.report.Dropped {
		s.DroppedValues[reason] += n
	}
	return s
}

// note makes the notes of s: those of the source, and one on a label that is too long. They are
// copied only if they changed.
func (p *Pipeline) note(s *canonical.Source) {
	var notes []source.Note
	if p.notes != nil {
		notes = p.notes()
	}
	long := p.report.LongLabel
	if slices.Equal(notes, p.noted) && long == p.notedLabel {
		return
	}
	p.noted, p.notedLabel, s.Notes = notes, long, nil
	if long != nil {
		s.Notes = append(s.Notes, *long)
	}
	for _, n := range notes {
		s.Notes = append(s.Notes, canonical.Note(n))
	}
}

// contents identifies the values of a reading.
type contents struct {
	dict        *raw.Dict
	generation  uint64
	fingerprint uint64
}

// changed reports whether anything in b differs from the previous reading.
func (p *Pipeline) changed(b *raw.Batch) bool {
	before := p.contents
	p.contents = contents{b.Dict, b.Dict.Generation(), b.Fingerprint()}
	return p.contents != before
}

// validParts returns the parts of the body that b does not omit.
func validParts(dst [][]byte, b *raw.Batch) [][]byte {
	from := 0
	for _, o := range b.Omit {
		if o.Start > from {
			dst = append(dst, b.Body[from:o.Start])
		}
		from = o.End
	}
	if from < len(b.Body) {
		dst = append(dst, b.Body[from:])
	}
	return dst
}
