// Package pipeline runs the one loop of a source: read, translate, compute, publish. It owns the
// clock and the goroutine, and decides when a source is read and which reading may be served.
package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"sync"
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
	// Host reads the load of this machine, at most once a second, by the goroutine that reads; nil
	// reads nothing. It is used if the source is local.
	Host func() canonical.Host

	// Attribute completes the holders of a Frame's devices, through its Reattribute; nil adds nothing.
	// It is called by the goroutine that reads, must not block or write to the AllocationSet it finds.
	Attribute func(*canonical.Frame)
	// XIDEvents appends the XIDs in the kernel's log since the previous call to the XIDEvents of a
	// Frame, whose devices are known, and the devices that the log covers to its XIDs; nil adds nothing.
	XIDEvents func(*canonical.Frame)

	// BootID is that of this machine if the source reads it, else "".
	BootID string
	// Faults is called with the faults of the source's boards whenever they change, by the goroutine
	// that reads, and with the next reading again if it returns false; nil means that they need not survive the program. It
	// must not keep them.
	Faults func([]canonical.Fault) bool

	// Interval returns the longest interval of all scrapers, 0 if there is none; nil means that there are none.
	Interval func() time.Duration

	// MinInterval is the age up to which a reading of a scraped source serves
	// further scrapes too.
	MinInterval time.Duration
	// Poll is how long a scraped source may go unread before the pipeline reads
	// it by itself; 0 leaves it to the scrapers.
	Poll time.Duration
	// Timeout limits each read of a scraped source, regardless of the scrapers' deadlines.
	Timeout time.Duration
	// NotGiven names what the user wants passed on but the source cannot give.
	NotGiven []string
	// Observer is called with the outcome of every read; nil means none.
	Observer Observer
}

// Observer receives every reading, not only those that a scrape asked for.
type Observer interface {
	// Observe is called with each good reading once it is published, by one goroutine at a time: the
	// source is not read again before it returns. It must not write to the snapshot. If it returns
	// true, the snapshot stays valid until it calls Release on the lease, once.
	Observe(s *canonical.Snapshot, lease interface{ Release() }) bool
	// Failed is called when a scraped source could not be read at an instant, from any goroutine,
	// perhaps after readings that began later. It must not block. A silent stream shows in Status.
	Failed(source string, at time.Time)
}

// Pipeline reads one source. Run must be running for a stream to flow and for a scraped source to be
// read between scrapes; other methods may be called from any goroutine.
type Pipeline struct {
	opts Options
	caps source.Caps
	// fetcher is the source if it can be asked while a request is under way; else nil.
	fetcher source.Fetcher
	version func() string // of what the source reads with, "" if unknown

	// ctx is the context of every read; cancel ends it with the pipeline.
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex // guards reads, memory and status
	reads  []*sharedRead
	memory keptReadings
	status status

	reader  chan struct{} // a lock: full while a shared read makes its reading, and after stop
	started chan struct{} // closed by begun, once a stream has given its first tick or failure
	begun   func()

	judging  judging
	accounts bookkeeping
}

// New returns a pipeline that has read nothing yet.
func New(opts Options) *Pipeline {
	caps := opts.Source.Caps()
	p := &Pipeline{opts: opts, caps: caps, version: func() string { return "" }, reader: make(chan struct{}, 1), started: make(chan struct{})}
	p.begun = sync.OnceFunc(func() { close(p.started) })
	p.fetcher, _ = opts.Source.(source.Fetcher) // not one behind a wrapper, which would be bypassed
	if v, ok := source.As[source.Versioned](opts.Source); ok {
		p.version = v.Version
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.judging.judge, p.judging.translator = opts.Judge, opts.Translator
	p.judging.meter = meter{longest: maxScrapedGap}
	if caps.Kind == source.Streamed {
		p.judging.meter = meter{period: caps.Period}
	}
	p.status.state = canonical.Source{
		Name: opts.Source.Name(), Backend: caps.Backend, Aggregation: string(caps.Aggregation), Period: caps.Period,
		Content: canonical.Content{NotGiven: opts.NotGiven},
	}
	return p
}

// Name returns the source's name.
func (p *Pipeline) Name() string { return p.opts.Source.Name() }

// Run reads until ctx ends or the source has ended, which gives io.EOF, and then closes the source.
// Reads under way fail. If the source is a source.Checker and its check fails, it is not read: Run
// and all further reads return that error.
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

// Status returns the state of the source after its last reading, without reading it, and nil if a
// reading younger than the staleness limit exists, else the failure that says why not. The totals
// of its streams are current.
func (p *Pipeline) Status() (canonical.Source, error) {
	streams := p.streams()
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.status.state
	state.Streams, state.Late = streams, p.status.late
	if failure := p.notReady(time.Now()); failure != nil {
		return state, failure
	}
	return state, nil
}

// Events appends to dst the latest events of the source's devices, the newest last.
func (p *Pipeline) Events(dst []canonical.Event) []canonical.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.memory.events.AppendTo(dst)
}
