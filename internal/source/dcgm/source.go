// Package dcgmi drives `dcgmi dmon` and produces the exposition that a dcgm-exporter
// would serve. It is the only package that runs other programs.
//
// Two children run side by side, one for the fields that are read through NVML and
// one for the profiling counters, because dmon ends if the host engine refuses a
// single field. Each is restarted with growing pauses when it ends or hangs. Their
// output goes through a bounded, lossy ring to the reader, which joins it into one
// reading per period and writes that as an exporter's page. dmon numbers its
// entities; `dcgmi discovery` and nvidia-smi identify them.
package dcgm

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// MinPeriod is the shortest period that NVIDIA's user guide allows for profiling
// fields. The command line enforces it, New does not.
const MinPeriod = 100 * time.Millisecond

// closeTimeout bounds Close: a child that survives SIGKILL is left to the
// kernel, which ends it with us.
const closeTimeout = 5 * time.Second

// Options configure a Source.
type Options struct {
	// Path of dcgmi; a name without a slash, such as "dcgmi", which is the
	// default, is looked up in PATH.
	Path string
	// Host is the host engine to talk to in the form of dcgmi's --host: a name or an
	// address, with or without a port, or unix://PATH; "" means the one on this
	// machine. A leading dash is refused.
	Host string
	// Period between two samples, in whole milliseconds; 0 means MinPeriod.
	Period time.Duration
	// Fields are the ids of the requested fields, as ParseFields returns them; nil
	// means all.
	Fields []int
	// Choose chooses which devices to watch; nil chooses all. It is called from several
	// goroutines.
	Choose Chooser
	// JobMappingDir is the directory of dcgm-exporter's --hpc-job-mapping-dir,
	// whose jobs become labels; "" means none.
	JobMappingDir string
	// Hostname is the label hostname of all series; "" means none.
	Hostname string
	// Page selects which part of a reading is passed on; nil selects all. All of Fields is read
	// in any case.
	Page *Page
	// Logger logs what no error of Read reports. nil discards it.
	Logger *slog.Logger
	// probes look at the machine; nil ones look at the real one.
	probes probes
}

// The streams of a source, as indices.
const (
	device    = int(DeviceStream)
	profiling = int(ProfilingStream)
)

// Source reads the GPUs of one host engine. A reading consists of samples with the label
// blocks of dcgm-exporter, as a Writer writes them; At is when the last row of a
// sample arrived, and Skipped counts dmon's malformed lines.
type Source struct {
	opts  Options
	local bool   // the host engine is on this machine
	host  string // otherwise its host, without the port
	ring  *ring
	stats source.StreamStats

	// Of the reading goroutine.
	join     join
	shown    *view // the view that out uses
	out      *Writer
	entities entityWatch
	unlisted bool // an entity of the last reading is not in the inventory
	children atomic.Uint64

	streams []*stream
	backoff func(n int) time.Duration // source.Backoff except in tests

	life context.Context
	end  context.CancelFunc

	starting sync.Once
	running  sync.WaitGroup

	view    atomic.Pointer[view] // nil before the first survey; stored under mu
	stale   atomic.Bool          // the view must not be trusted at the next start
	surveys chan struct{}        // has a token if a survey is requested

	version     atomic.Pointer[string]        // nil before it is known
	surveyError atomic.Pointer[source.Error]  // why the last survey failed, nil if it succeeded
	notes       atomic.Pointer[[]source.Note] // nil for none

	surveying    sync.Mutex // locked during a survey, guards what follows
	query        []byte     // nvidia-smi's last answer
	links        []byte     // its last answer about NVLinks
	texts        []byte     // dmon's last sample of texts
	wanted       []bool     // for each device of the last survey; never written to
	extras       []int      // the multiplexed fields that all boards support; never written to
	roundsLogged bool       // that some boards count them in turn
	missing      string     // why chosen devices are missing, as last logged
	surveyLogged string     // the last failure of a survey that was logged
	ask          func(ctx context.Context, path string, args []string) answer

	mu         sync.Mutex
	closed     bool
	unreported bool // a stream has failed since Read last returned an error
	noted      [numNoted][]source.Note
}

var (
	_ source.Source        = (*Source)(nil)
	_ source.Streams       = (*Source)(nil)
	_ source.Checker       = (*Source)(nil)
	_ source.Versioned     = (*Source)(nil)
	_ source.Noted         = (*Source)(nil)
	_ source.ProcessLister = (*Source)(nil)
)

// New returns a source that starts no process before its first Read.
func New(opts Options) *Source {
	if opts.Path == "" {
		opts.Path = "dcgmi"
	}
	if opts.Period <= 0 {
		opts.Period = MinPeriod
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.probes = opts.probes.complete()
	life, end := context.WithCancel(context.Background())
	var commands asker
	s := &Source{
		opts: opts,
		ring: newRing(2),
		out:  NewWriter(opts.Hostname, opts.JobMappingDir, opts.Logger),
		streams: []*stream{
			device:    newStream(device, "device", DeviceStream, opts.Fields, opts.Page.Others()),
			profiling: newStream(profiling, "profiling", ProfilingStream, opts.Fields, opts.Page.Others()),
		},
		surveys: make(chan struct{}, 1),
		ask:     commands.ask,
		life:    life, end: end,
		backoff: func(n int) time.Duration { return source.Backoff(n, rand.Float64()) },
	}
	if opts.Page != nil {
		s.out.Serve(opts.Page)
	}
	for i := range s.ring.counts {
		s.ring.counts[i].Period = opts.Period
	}
	s.local, s.host = hostOf(opts.Host)
	s.join.period = opts.Period
	s.join.expects = func(stream int) bool { return s.expects(s.streams[stream]) }
	return s
}

// Name returns "dcgmi", with the host engine if Options names one.
func (s *Source) Name() string {
	if s.opts.Host == "" {
		return "dcgmi"
	}
	return "dcgmi@" + s.opts.Host
}

// Caps returns the static properties. A reading is a point if the period is the
// shortest; over a longer one the profiling fields are averages.
func (s *Source) Caps() source.Caps {
	aggregation := source.Point
	if s.opts.Period > MinPeriod {
		aggregation = source.Window
	}
	return source.Caps{
		Backend:     "dcgm",
		Kind:        source.Streamed,
		Aggregation: aggregation,
		Period:      s.opts.Period,
		Local:       s.local,
		Host:        s.host,
	}
}

// hostOf reports whether an Options.Host is this machine, and otherwise returns
// its name or address.
func hostOf(option string) (local bool, host string) {
	if option == "" || strings.HasPrefix(option, "unix://") {
		return true, ""
	}
	if host, _, err := net.SplitHostPort(option); err == nil {
		return false, host
	}
	return false, strings.Trim(option, "[]")
}

// Read waits for the next reading. If only the profiling stream fails, readings
// continue without its fields. If no stream works, Read returns the reason, as a
// *source.Error, once for each restart.
func (s *Source) Read(ctx context.Context, b *raw.Batch) error {
	b.Reset()
	s.starting.Do(s.start)
	for {
		if err := s.stopped(ctx); err != nil {
			return err
		}
		if s.next(b) {
			return s.requireNames(b)
		}
		if e := s.failure(); e != nil {
			return e
		}
		select {
		case <-s.ring.news:
		case <-ctx.Done():
		case <-s.life.Done():
		}
	}
}

// next fills b with the next reading, if the ring has one.
func (s *Source) next(b *raw.Batch) bool {
	for {
		epoch := s.follow()
		t := s.ring.next()
		if t == nil {
			break
		}
		whole := t.epoch == epoch && s.join.add(t)
		s.ring.recycle(t)
		if whole {
			s.write(b)
			return true
		}
	}
	if s.join.release() {
		s.write(b)
		return true
	}
	return false
}

// requireNames empties b and returns an error if b has no samples because the UUIDs
// of all GPUs are unknown.
func (s *Source) requireNames(b *raw.Batch) error {
	if len(b.Samples) > 0 || !s.unlisted {
		return nil
	}
	b.Reset()
	e := &source.Error{
		Failure: source.Broken,
		Cause:   "dcgmi discovery -l lists none of the GPUs that dcgmi dmon reads",
		Remedy:  "see what it prints: dcgmi discovery -l; kpulse-proxy asks again automatically",
	}
	if failed := s.surveyError.Load(); failed != nil {
		e.Failure, e.Err = failed.Failure, failed
		e.Cause = "the GPUs are read, but their UUIDs are not known: " + failed.Cause
	}
	return e
}

// follow switches to the current view, and returns its epoch. A new epoch voids
// what was read before.
func (s *Source) follow() uint64 {
	v := s.view.Load()
	if v == nil {
		return 0
	}
	if v != s.shown {
		if s.shown == nil || s.shown.epoch != v.epoch {
			s.join.forget(v.entities)
		}
		s.shown, s.join.view = v, v
		s.out.SetInventory(v.inventory)
	}
	return v.epoch
}

// write writes the joined tick into the emptied b.
func (s *Source) write(b *raw.Batch) {
	var n int
	n, s.unlisted = s.join.write(s.out, b)
	if s.entities.differ(b.At, n, s.unlisted) {
		s.requestSurvey()
	}
}

// start starts the supervision of all streams.
func (s *Source) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for _, st := range s.streams {
		if !st.off {
			s.running.Go(func() { s.supervise(s.life, st) })
		}
	}
	s.running.Go(func() { s.watch(s.life) })
}

// stopped returns an error after Close or the end of ctx.
func (s *Source) stopped(ctx context.Context) error {
	if s.life.Err() != nil {
		return &source.Error{
			Failure: source.Broken,
			Cause:   "the stream of " + s.Name() + " was closed",
			Remedy:  "open it again",
			Err:     fmt.Errorf("dcgmi: %w", os.ErrClosed),
		}
	}
	return ctx.Err()
}

// Streams appends the totals of the streams device and profiling to dst, except a stream
// without any of the requested fields.
func (s *Source) Streams(dst []source.StreamTotals) []source.StreamTotals {
	var buf [2]source.StreamTotals
	totals := s.stats.Totals(buf[:0])
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		if st.off {
			continue
		}
		own := source.StreamTotals{Stream: st.name}
		for _, t := range totals {
			if t.Stream == st.name {
				own = t
			}
		}
		own.Failure = st.failure
		dst = append(dst, own)
	}
	return dst
}

// Notes implements source.Noted: failures of dcgmi discovery, and fields that the host engine
// lacks.
func (s *Source) Notes() []source.Note {
	if notes := s.notes.Load(); notes != nil {
		return *notes
	}
	return nil
}

// The subjects of notes.
const (
	ofDiscovery = iota
	ofFields
	numNoted
)

// setNotes sets the notes about a subject, and reports whether they are new.
func (s *Source) setNotes(of int, notes []source.Note) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Equal(notes, s.noted[of]) {
		return false
	}
	s.noted[of] = notes
	all := slices.Concat(s.noted[:]...)
	s.notes.Store(&all)
	return true
}

// Close ends the children and makes a blocked Read return. It waits until they
// are gone, and may be called more than once.
func (s *Source) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	gone := make(chan struct{})
	go func() {
		s.running.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-time.After(closeTimeout):
		return fmt.Errorf("dcgmi was killed but does not end; look for it in state D: ps -o pid,stat,wchan,args -C dcgmi")
	}
}
