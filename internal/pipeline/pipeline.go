// Package pipeline runs the one loop of a source: read, translate, compute, publish. It owns the
// clock and the goroutine, and decides when a source is read and which reading may be served.
package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// Options set what a Pipeline reads and how often.
type Options struct {
	Source     source.Source
	Translator *translate.Translator
	Judge      *compute.Judge
	Logger     *slog.Logger
	// Host reads this machine; nil reads nothing. It is used if
	// the source is local, from one goroutine, at most once a second. Nothing waits
	// for a call that hangs.
	Host func() canonical.Host

	// Attribute completes the holders of a Frame's devices, through its Reattribute; nil adds
	// nothing. It is called with each reading by the goroutine that reads, must not block,
	// and must not write to the AllocationSet that it finds.
	Attribute func(*canonical.Frame)
	// XIDEvents appends the XIDs in the kernel's log since the previous call to the XIDEvents of a
	// Frame, whose devices are known, and the devices that the log covers to its XIDs; nil adds
	// nothing. It is called with each reading, by the goroutine that reads.
	XIDEvents func(*canonical.Frame)

	// MinInterval is the age up to which a reading of a scraped source serves
	// further scrapes too.
	MinInterval time.Duration
	// Poll is how long a scraped source may go unread before the pipeline reads
	// it by itself; 0 leaves it to the scrapers.
	Poll time.Duration
	// Timeout limits each read of a scraped source, regardless of the scrapers' deadlines.
	Timeout time.Duration
	// Turns says when a scraped source may be read if there are others; nil allows any time.
	Turns *Turns
	// NotGiven names what the user wants passed on but the source cannot give.
	NotGiven []string
	// Observer is called with the outcome of every read; nil means none.
	Observer Observer
}

// Observer receives every reading, not only those that a scrape asked for.
type Observer interface {
	// Observe is called with each good reading once it is published, by one goroutine
	// at a time: the source is not read again before it returns. It must not write to
	// the snapshot. If it returns true, the snapshot stays valid until it calls
	// Release on the lease, which it must do once.
	Observe(s *canonical.Snapshot, lease interface{ Release() }) bool
	// Failed is called when a scraped source could not be read at an instant. It may
	// be called from any goroutine, perhaps after readings that began later, and must
	// not block. A silent stream shows in Status.
	Failed(source string, at time.Time)
}

// Pipeline reads one source. Run must be running for a stream to flow and for
// a scraped source to be read between scrapes; Read and Status may be called
// from any goroutine.
type Pipeline struct {
	opts Options
	caps source.Caps
	// fetcher is the source if it can be asked while a request is under way; else nil.
	fetcher source.Fetcher
	// version names the program or library that the source reads with; nil if it
	// does not know.
	version func() string
	// notes returns problems of a source that can be read; nil if it has no such notes.
	notes func() []source.Note

	// ctx is the context of every read; cancel ends it with the pipeline.
	ctx    context.Context
	cancel context.CancelFunc

	mu         sync.Mutex
	flights    []*flight  // the reads under way of a scraped source, in their order
	latest     *reading   // the last good reading, nil while the next one reuses it
	last       *reading   // the one published last; judging guards what judge writes of it
	free       []*reading // unreferenced readings, for reuse
	good       time.Time  // when the last good read ended, zero before the first
	attempt    time.Time  // when the last read ended, good or not
	state      canonical.Source
	late       *canonical.Failure // why a scrape ran out of time; nil if none did
	silent     bool               // a scrape found the stream silent since its last tick
	period     time.Duration      // the actual one of a stream
	malformed  bool               // a malformed line was logged
	unfinished bool               // the latest reading lacks a last line that may be cut short
	events     canonical.EventList
	observing  bool // the observer has not returned from the latest reading

	reader  chan struct{} // a lock: full while a flight takes its reading, and after stop
	start   sync.Once
	started chan struct{} // closed when a stream has given its first tick or failure

	// Used by the reading goroutine alone, of which there is one at a time.
	report            translate.Report
	missing, unusable []canonical.Field // scratch
	meter             meter
	contents          contents // of the latest reading
	host              hostWatch
	noted             []source.Note // those of the state
	// notedLabel is the note of the state on a label that is too long, nil for none.
	notedLabel *canonical.Note

	newEvents []canonical.Event // scratch

	settings atomic.Pointer[settings] // of Change, for the next reading
	// judging is held by the user of the judge: the reading goroutine, Resolve, Leave or Glance.
	judging sync.Mutex
	left    bool // the judge was given away; guarded by judging
}

// settings are the arguments of Change; a nil Translator stays as it is.
type settings struct {
	translator *translate.Translator
	judge      *compute.Judge
}

// Change makes judge judge the next readings, continuing from the state of the present
// judge, and translator translate them unless it is nil. Neither may be in use elsewhere,
// then or later.
func (p *Pipeline) Change(judge *compute.Judge, translator *translate.Translator) {
	p.settings.Store(&settings{translator, judge})
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
	p.applySettings()
	p.left = true
	return &Remains{p.opts.Judge, p.Events(nil)}
}

// Resume makes p, which has read nothing yet, continue from the state that another pipeline
// left for the same devices, for example if their address changed. It takes ownership of r.
func (p *Pipeline) Resume(r *Remains) {
	p.opts.Judge.Resume(r.judge)
	p.events.Add(r.events...)
}

// applySettings applies what Change set. It belongs to the reading goroutine.
func (p *Pipeline) applySettings() {
	s := p.settings.Swap(nil)
	if s == nil {
		return
	}
	s.judge.Resume(p.opts.Judge)
	p.opts.Judge = s.judge
	if s.translator != nil {
		p.opts.Translator = s.translator
	}
}

// New returns a pipeline that has read nothing yet.
func New(opts Options) *Pipeline {
	caps := opts.Source.Caps()
	ctx, cancel := context.WithCancel(context.Background())
	m := meter{longest: maxScrapedGap}
	if caps.Kind == source.Streamed {
		m = meter{period: caps.Period}
	}
	host := hostWatch{}
	if caps.Local {
		host.read = opts.Host
	}
	var version func() string
	if v, ok := source.As[source.Versioned](opts.Source); ok {
		version = v.Version
	}
	var notes func() []source.Note
	if n, ok := source.As[source.Noted](opts.Source); ok {
		notes = n.Notes
	}
	fetcher, _ := opts.Source.(source.Fetcher) // not one behind a wrapper, which would be bypassed
	return &Pipeline{
		opts:    opts,
		caps:    caps,
		fetcher: fetcher,
		version: version,
		notes:   notes,
		meter:   m,
		host:    host,
		ctx:     ctx,
		cancel:  cancel,
		state: canonical.Source{
			Name:        opts.Source.Name(),
			Backend:     caps.Backend,
			Aggregation: string(caps.Aggregation),
			Period:      caps.Period,
			NotGiven:    opts.NotGiven,
		},
		reader:  make(chan struct{}, 1),
		started: make(chan struct{}),
	}
}

// Name returns the source's name.
func (p *Pipeline) Name() string { return p.opts.Source.Name() }

// Run reads until ctx ends or the source has ended, which gives
// io.EOF, and then closes the source. Reads under way fail. If the source is a
// source.Checker and its check fails, it is not read: Run and all further reads return
// that error.
func (p *Pipeline) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, p.opts.Source.Close()) }()
	defer p.stop()
	if p.caps.Kind == source.Streamed {
		if err := p.check(ctx); err != nil {
			return err
		}
		return p.follow(ctx)
	}
	p.poll(ctx)
	return nil
}

// stopTimeout is how long stopping waits for a read that ignores cancellation, such as one of a
// file on a file system that hangs.
const stopTimeout = 5 * time.Second

// stop ends the read under way, waits for it and its observer, and lets no read
// succeed after it.
func (p *Pipeline) stop() {
	p.cancel()
	select {
	case p.reader <- struct{}{}: // permanently
	case <-time.After(stopTimeout):
	}
}

// Glance calls see with frame and verdicts of the last good reading, of any age, without
// reading anything; it does nothing if there was none. see must not keep them, nor read
// anything else of the snapshot. While see runs, no reading is judged.
func (p *Pipeline) Glance(see func(*canonical.Snapshot)) {
	p.judging.Lock()
	defer p.judging.Unlock()
	p.mu.Lock()
	last := p.last
	p.mu.Unlock()
	if last != nil {
		see(&last.snapshot)
	}
}

// Status returns the state of the source after its last reading, without reading it, and nil if a
// reading younger than the staleness limit exists, else the failure that says why not. The totals
// of its streams are current.
func (p *Pipeline) Status() (canonical.Source, error) {
	streams := p.streams()
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.state
	state.Streams = streams
	state.Late = p.late
	if failure := p.notReady(time.Now()); failure != nil {
		return state, failure
	}
	return state, nil
}
