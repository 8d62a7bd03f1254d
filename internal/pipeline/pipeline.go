// Package pipeline is the one loop of a source: read, translate, compute,
// publish. It owns the clock and the goroutine, and decides when a source is
// read and which reading may be served.
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

const (
	// scrapedStaleAfter is the age from which the last reading of a scraped
	// source no longer counts as ready. It is Prometheus' own lookback.
	scrapedStaleAfter = 5 * time.Minute
	// A stream that is silent for staleTicks periods, and at least
	// streamStaleAfter, is down.
	staleTicks       = 10
	streamStaleAfter = time.Second
)

// Options say what a Pipeline reads and how often.
type Options struct {
	Source     source.Source
	Translator *translate.Translator
	Judge      *compute.Judge
	Logger     *slog.Logger
	// Host reads the machine that we run on; nil is not at all. It is used where
	// the source is local, from one goroutine, at most once a second. Of a call
	// that hangs nothing waits for the end.
	Host func() canonical.Host

	// MinInterval is the age up to which a reading of a scraped source serves
	// further scrapes too.
	MinInterval time.Duration
	// Poll is how long a scraped source may go unread before the pipeline reads
	// it by itself; 0 leaves it to the scrapers.
	Poll time.Duration
	// Timeout bounds a read that no scraper set a deadline for.
	Timeout time.Duration
	// Observer is told what reading came to; nil is nobody.
	Observer Observer
}

// Observer is who wants to know of every reading, not just of those that are asked
// for.
type Observer interface {
	// Observe is given each good reading once it is published, by one goroutine at a
	// time: the source is not read again before it returns. It must not write to the
	// snapshot. Where it returns true it may read on in it until it has called
	// held's Release, which it must do once.
	Observe(s *canonical.Snapshot, held interface{ Release() }) bool
	// Failed is told that a scraped source could not be read at an instant, by any
	// goroutine, which must not wait, perhaps after readings that began later. That a
	// stream falls silent shows in Status.
	Failed(source string, at time.Time)
}

// Pipeline reads one source. Run must be running for a stream to flow and for
// a scraped source to be read between scrapes; Read and Status may be called
// from any goroutine.
type Pipeline struct {
	opts Options
	caps source.Caps
	// version tells what the source is read with; nil where it does not.
	version func() string

	// life ends every read when the pipeline is closed.
	life context.Context
	end  context.CancelFunc

	mu      sync.Mutex
	flight  *flight    // the read under way of a scraped source
	latest  *reading   // the last good reading, nil while its memory takes the next
	spare   []*reading // readings that nobody holds, for reuse
	good    time.Time  // when the last good read ended, zero before the first
	attempt time.Time  // when the last read ended, good or not
	state   canonical.Source
	usual   time.Duration // the period that a stream keeps
	watched bool          // the latest reading is before the observer

	turn    chan struct{} // held by the flight that reads, and by the end
	settle  sync.Once
	settled chan struct{} // closed when a stream has given its first tick or failure

	// Used by the reading goroutine alone, of which there is one at a time.
	report   translate.Report
	missing  []canonical.Field // scratch
	meter    meter
	contents contents // of the latest reading
	host     hostWatch

	settings atomic.Pointer[settings] // to be taken over by the next reading
}

// settings are what Change brings; a nil Translator stays as it is.
type settings struct {
	translator *translate.Translator
	judge      *compute.Judge
}

// Change has readings from the next one on judged by judge, which goes on where the
// one before stands, and translated by translator unless that is nil. Neither may be
// in use elsewhere, then or later.
func (p *Pipeline) Change(judge *compute.Judge, translator *translate.Translator) {
	p.settings.Store(&settings{translator, judge})
}

// takeSettings takes over what Change brought. It belongs to the reading goroutine.
func (p *Pipeline) takeSettings() {
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
	life, end := context.WithCancel(context.Background())
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
	return &Pipeline{
		opts:    opts,
		caps:    caps,
		version: version,
		meter:   m,
		host:    host,
		life:    life,
		end:     end,
		state: canonical.Source{
			Name:        opts.Source.Name(),
			Backend:     caps.Backend,
			Aggregation: string(caps.Aggregation),
			Period:      caps.Period,
		},
		turn:    make(chan struct{}, 1),
		settled: make(chan struct{}),
	}
}

// Name returns the source's name.
func (p *Pipeline) Name() string { return p.opts.Source.Name() }

// Run reads until ctx ends or the source has come to its end, which gives
// io.EOF, and then closes the source. Reads under way fail. A source that is a
// source.Checker and says that it cannot be read is not: Run returns that, and so
// do all further reads.
func (p *Pipeline) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, p.opts.Source.Close()) }()
	defer p.land()
	if p.caps.Kind == source.Streamed {
		if err := p.check(ctx); err != nil {
			return err
		}
		return p.follow(ctx)
	}
	p.poll(ctx)
	return nil
}

// landTimeout is how long the end waits for a read that ignores that it is over,
// such as one of a file on a file system that hangs.
const landTimeout = 5 * time.Second

// land ends the read under way, waits for it and whoever observes it, and lets none
// succeed after it.
func (p *Pipeline) land() {
	p.end()
	select {
	case p.turn <- struct{}{}: // for good
	case <-time.After(landTimeout):
	}
}

// Read returns a snapshot fit to be served now, and the function that gives it
// back, to be called once. Of a scraped source it is a fresh reading, one shared
// with overlapping scrapes, or one younger than the minimum interval; of a
// stream it is the latest tick that is not stale. Errors are *canonical.Failure.
func (p *Pipeline) Read(ctx context.Context) (*canonical.Snapshot, func(), error) {
	read := p.share
	if p.caps.Kind == source.Streamed {
		read = p.tick
	}
	r, failure := read(ctx)
	if failure != nil {
		return nil, nil, failure
	}
	return &r.snapshot, func() { p.release(r) }, nil
}

// Status returns the state of the source after its last reading without reading
// it, and nil if a reading younger than the staleness limit exists, else the
// failure that says why not.
func (p *Pipeline) Status() (canonical.Source, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if failure := p.notReady(time.Now()); failure != nil {
		return p.state, failure
	}
	return p.state, nil
}

// notReady says why no reading is young enough, nil if one is. The caller holds mu.
func (p *Pipeline) notReady(now time.Time) *canonical.Failure {
	switch {
	case !p.good.IsZero() && now.Sub(p.good) <= p.staleAfter():
		return nil
	case p.state.Failure != nil:
		return p.state.Failure
	case !p.good.IsZero():
		return p.stale(now)
	default:
		return &canonical.Failure{
			Kind:   kindNotRead,
			Cause:  p.Name() + " has not been read yet",
			Remedy: "wait for the first reading, or scrape /metrics",
		}
	}
}

func (p *Pipeline) staleAfter() time.Duration {
	if p.caps.Kind == source.Scraped {
		return scrapedStaleAfter
	}
	return max(staleTicks*max(p.caps.Period, p.usual), streamStaleAfter)
}
