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

// maxFree is how many unreferenced readings are kept for reuse.
const maxFree = 4

// keptReadings are the readings of a source, and its latest events. Pipeline.mu guards it.
type keptReadings struct {
	latest *reading   // the last good reading, nil while the next one reuses it
	last   *reading   // the one published last; judging guards what judge writes of it
	free   []*reading // unreferenced readings, for reuse
	events canonical.EventList
}

// reading is the memory of one reading from its bytes to its verdicts. It is shared read-only until
// its last reference is released, and then reused.
type reading struct {
	refs      int // guarded by Pipeline.mu; being the latest reading counts as one
	batch     raw.Batch
	snapshot  canonical.Snapshot
	rendition translate.Rendition // that of snapshot.Further, if that is set
	period    time.Duration       // the stream's actual period until then
	owner     *Pipeline
}

// Release drops a reference to r. It is the lease of Observer.Observe.
func (r *reading) Release() {
	r.owner.mu.Lock()
	defer r.owner.mu.Unlock()
	r.owner.drop(r)
}

// acquire returns a reading to write into. For a scraped source that is the latest one if it has no
// other reference, as a body may be large. A stream's latest is served until the next is there.
func (p *Pipeline) acquire() *reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := &p.memory
	var r *reading
	if l := m.latest; l != nil && l.refs == 1 && p.caps.Kind == source.Scraped {
		r, m.latest = l, nil
	} else if n := len(m.free); n > 0 {
		r, m.free = m.free[n-1], m.free[:n-1]
	}
	if r == nil || r.outgrown(p.status.state.Samples) {
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
	b, snap, j := &r.batch, &r.snapshot, &p.judging
	j.Lock()
	defer j.Unlock()
	j.apply()
	j.report = translate.Report{}
	j.translator.Translate(&snap.Frame, b, &j.report)
	if snap.Frame.LeftOutAllocations = 0; p.opts.Attribute != nil {
		p.opts.Attribute(&snap.Frame)
		j.report.DroppedAllocations += snap.Frame.LeftOutAllocations
	}
	if p.opts.XIDEvents != nil {
		p.opts.XIDEvents(&snap.Frame)
	}
	snap.Frame.BootID = p.opts.BootID
	snap.Verdicts = j.judge.Judge(&snap.Frame, snap.Verdicts)
	snap.Judgement = j.judge.Judgement()
	if p.opts.Interval != nil {
		j.judge.SetInterval(p.opts.Interval())
	}
	j.judge.Account(&snap.Ledger, &snap.Frame, snap.Verdicts, j.meter.lap(b.At))
	if p.opts.Faults != nil {
		if j.faults[1] = j.judge.Faults(j.faults[1][:0]); j.unsaved || !slices.Equal(j.faults[0], j.faults[1]) {
			j.unsaved = !p.opts.Faults(j.faults[1])
		}
		j.faults[0], j.faults[1] = j.faults[1], j.faults[0]
	}
	if j.events = j.judge.Events(j.events[:0]); len(j.events) > 0 {
		p.mu.Lock()
		p.memory.events.Add(j.events...)
		p.mu.Unlock()
		clear(j.events) // texts
	}
	p.complete(r)
}

// complete adds to the snapshot of r what is not judged.
func (p *Pipeline) complete(r *reading) {
	b, snap := &r.batch, &r.snapshot
	r.period = p.judging.meter.usual()
	snap.Body = b.Body
	snap.Valid = validParts(snap.Valid[:0], b)
	if snap.Text = nil; len(b.Body) == 0 && b.Exposition != nil {
		snap.Text = b
	}
	if snap.Further = nil; p.judging.translator.Render(&r.rendition, &snap.Frame, b) {
		snap.Further = &r.rendition
	}
	if a := &p.accounts; p.opts.Host != nil && p.caps.Local && time.Since(a.hostRead) >= hostEvery {
		host := p.opts.Host()
		a.host, a.hostRead = &host, time.Now()
	}
	snap.Host = p.accounts.host
	snap.Source = p.account(snap, b)
}

// outgrown reports whether r has far more memory than a reading of so many samples needs.
func (r *reading) outgrown(samples int) bool {
	const keep, factor = 1 << 16, 8 // samples, of 16 bytes each and some 200 of text
	return cap(r.batch.Samples) > keep && cap(r.batch.Samples)/factor > samples
}

// drop drops one reference to r, for callers that hold mu.
func (p *Pipeline) drop(r *reading) {
	if r.refs--; r.refs <= 0 && len(p.memory.free) < maxFree && !r.outgrown(p.status.state.Samples) {
		r.refs = 0
		p.memory.free = append(p.memory.free, r)
	}
}

// publish makes r the latest reading, with a reference for that, for each of n waiters, and for the
// goroutine that read it, which must call observe. The caller holds mu.
func (p *Pipeline) publish(r *reading, n int) {
	p.logReading(&r.snapshot.Source)
	p.logLines(&r.batch)
	r.refs = n + 2
	before := p.memory.latest
	p.memory.latest, p.memory.last = r, r
	s := &p.status
	s.state, s.period, s.observing = r.snapshot.Source, r.period, true
	s.good = time.Now()
	s.attempt = s.good
	if before != nil { // now that it shows whether it is far larger than readings are
		p.drop(before)
	}
}

// observe hands r to the observer, with the reference of the reading goroutine if it keeps r.
func (p *Pipeline) observe(r *reading) {
	kept := p.opts.Observer != nil && p.opts.Observer.Observe(&r.snapshot, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.observing = false
	if !kept {
		p.drop(r)
	}
}

// bookkeeping is what the reading goroutine remembers of the readings so far.
type bookkeeping struct {
	missing, unusable []canonical.Field // scratch
	contents          contents          // of the latest reading
	alternates        bool              // as of the state
	longLabel         *canonical.Note   // that of the state on a label that is too long, nil for none
	host              *canonical.Host   // the latest load of this machine, never written to again
	hostRead          time.Time
	drops             [canonical.NumDropReasons]canonical.Birth // of the values left out, by reason
}

// alternating is the note on a source that reads one node and then another.
var alternating = canonical.Note{
	Cause:  "it answers for the boards of one node and then for those of another, as a Service or load balancer in front of several exporters does",
	Remedy: "name the exporter of each node as a source of its own, or find them with --kube.discover",
}

const hostEvery = time.Second // the least time between two reads of the host

// account adds the outcome of b to the totals and returns the source's state. Only the reading
// goroutine changes the totals.
func (p *Pipeline) account(snap *canonical.Snapshot, b *raw.Batch) canonical.Source {
	p.mu.Lock()
	s := p.status.state
	p.mu.Unlock()
	a, report := &p.accounts, &p.judging.report
	s.Failure, s.Streams, s.Version = nil, p.streams(), p.version()
	if alternates := p.judging.judge.Alternates(); a.longLabel != report.LongLabel || alternates != a.alternates {
		if a.longLabel, a.alternates, s.Notes = report.LongLabel, alternates, nil; a.longLabel != nil {
			s.Notes = append(s.Notes, *a.longLabel)
		}
		if alternates {
			s.Notes = append(s.Notes, alternating)
			p.warn("a source alternates between nodes", alternating.Cause, alternating.Remedy)
		}
	}
	s.At, s.Took = b.At, b.Took
	switch now := (contents{b.Dict, b.Dict.Generation(), b.Fingerprint()}); {
	case !moves(&snap.Frame):
		s.ChangedAt = time.Time{}
	case now != a.contents || s.ChangedAt.IsZero():
		a.contents, s.ChangedAt = now, b.At
	}
	s.Samples = len(b.Samples)
	s.Devices, s.Roster = snap.Frame.Len(), snap.Ledger.Roster
	s.UnknownFamilies = report.UnknownFamilies
	s.Further = p.judging.translator.Rendered()
	a.missing = translate.Missing(&snap.Frame, p.judging.judge.Inputs(), a.missing[:0])
	a.unusable = translate.Unusable(&snap.Frame, a.missing, a.unusable[:0])
	if !slices.Equal(s.Missing, a.missing) || !slices.Equal(s.Unusable, a.unusable) {
		s.ConfigFields = p.judging.translator.ConfigFields(slices.DeleteFunc(slices.Clone(a.missing), func(f canonical.Field) bool { return slices.Contains(a.unusable, f) }))
	}
	s.Missing, s.Unusable = published(s.Missing, a.missing), published(s.Unusable, a.unusable)
	s.SkippedLines += uint64(b.Skipped)
	s.DroppedFamilies += uint64(b.OwnFamilies)
	s.DroppedSeries += report.DroppedSeries
	s.DroppedAllocations += report.DroppedAllocations
	s.ClampedValues += report.Clamped
	for reason, n := range report.Dropped {
		if s.DroppedValues[reason] += n; n > 0 {
			s.Drops.Enter(a.drops[:], uint(reason), b.At)
		}
	}
	s.Drops.Grow(a.drops[:], b.At, p.judging.judge.Youth())
	return s
}

// published returns before if it equals now, else a copy of now: published slices are immutable.
func published(before, now []canonical.Field) []canonical.Field {
	if slices.Equal(before, now) {
		return before
	}
	return slices.Clone(now)
}

// contents identifies the values of a reading.
type contents struct {
	dict                    *raw.Dict
	generation, fingerprint uint64
}

// moves reports whether a frame has a reading that changes by itself even on idle boards. Without one,
// as of an idle vGPU guest or an exporter without GPUs, the same values do not mean a frozen source.
func moves(f *canonical.Frame) bool {
	for i := range f.Len() {
		if row := f.Row(i); row[canonical.Power] > 0 || row[canonical.Energy] > 0 || row[canonical.Temperature] > 0 {
			return true
		}
	}
	return false
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
