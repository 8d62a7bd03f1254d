// Package dcgm drives `dcgmi dmon` and produces the exposition that a dcgm-exporter would serve. It also has what
// the source nvml shares with it: the table of DCGM's fields, the inventory of a node's GPUs, the jobs that run on
// them, and the form in which dcgm-exporter serves a reading. It is the only package that runs other programs.
//
// Two children run side by side, one for the fields that are read through NVML and one for the profiling counters,
// because dmon ends if the host engine refuses a single field. Each is restarted with growing pauses when it ends or
// hangs. Their output goes through a bounded, lossy ring to the reader, which joins it into one reading per period and
// writes that as an exporter's page. dmon numbers its entities; `dcgmi discovery` and nvidia-smi identify them: what
// these do not print is unknown, an empty string or Unknown, never a guess.
package dcgm

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// MinPeriod is the shortest period that NVIDIA's user guide allows for profiling fields. New does not enforce it.
const MinPeriod = 100 * time.Millisecond

// closeTimeout bounds Close: a child that survives SIGKILL is left to the kernel, which ends it with us.
const closeTimeout = 5 * time.Second

// Options configure a Source.
type Options struct {
	// Path of dcgmi; a name without a slash, such as "dcgmi", which is the default, is looked up in PATH.
	Path string
	// Host is the host engine to talk to in the form of dcgmi's --host: a name or an address, with or without a port,
	// or unix://PATH; "" means the one on this machine.
	Host string
	// Period between two samples, in whole milliseconds; 0 means MinPeriod.
	Period time.Duration
	// Fields are the ids of the requested fields, as ParseFields returns them; nil means all.
	Fields []int
	// Choose chooses which devices to watch; nil chooses all. It is called from several goroutines.
	Choose Chooser
	// JobMappingDir is the directory of dcgm-exporter's --hpc-job-mapping-dir, whose jobs become labels; "" means none.
	JobMappingDir string
	// Hostname is the label hostname of all series; "" means none.
	Hostname string
	// Page selects which part of a reading is passed on; nil selects all. All of Fields is read in any case.
	Page *Page
	// Logger logs what no error of Read reports. nil discards it.
	Logger *slog.Logger
	// lookPath finds a command, and exporter reports whether a dcgm-exporter of this machine answers; tests replace both.
	lookPath func(file string) (string, error)
	exporter func() bool
}

// Name returns "dcgmi", with the host engine if Options names one.
func (s *node) Name() string {
	if s.opts.Host == "" {
		return "dcgmi"
	}
	return "dcgmi@" + s.opts.Host
}

// The streams of a source, as indices.
const (
	device    = int(DeviceStream)
	profiling = int(ProfilingStream)
)

// Source reads the GPUs of one host engine. A reading consists of samples with the label blocks of dcgm-exporter, as a
// Writer writes them; At is when the last row of a sample arrived, and Skipped counts dmon's malformed lines.
type Source struct {
	node
	streams
	host string // of the host engine, without the port, unless it is local

	// Of the reading goroutine.
	join  join
	shown *view // the view that out uses
	out   *Writer

	end      context.CancelFunc
	starting sync.Once
	running  sync.WaitGroup
}

var (
	_ source.Source        = (*Source)(nil)
	_ source.Streams       = (*Source)(nil)
	_ source.Checker       = (*Source)(nil)
	_ source.Versioned     = (*Source)(nil)
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
	if opts.lookPath == nil {
		opts.lookPath, opts.exporter = exec.LookPath, func() bool { return isExporter(exporterURL, exporterPatience) }
	}
	s := &Source{out: NewWriter(opts.Hostname, opts.JobMappingDir, opts.Logger)}
	s.life, s.end = context.WithCancel(context.Background())
	s.local, s.host = hostOf(opts.Host)
	s.opts, s.ask = opts, (&asker{}).ask
	s.ring = newRing(opts.Period)
	s.backoff = func(n int) time.Duration { return source.Backoff(n, rand.Float64()) }
	s.streams.all = [2]*stream{newStream(device, "device", &opts), newStream(profiling, "profiling", &opts)}
	if opts.Page != nil {
		s.out.Serve(opts.Page)
	}
	s.join.period = opts.Period
	s.join.expects = func(stream int) bool { return s.expects(s.all[stream]) }
	return s
}

// Installed reports whether dcgmi is in PATH.
func Installed() bool {
	_, err := exec.LookPath("dcgmi")
	return err == nil
}

// Caps returns the static properties. A reading is a point if the period is the shortest; over a longer one the
// profiling fields are averages.
func (s *Source) Caps() source.Caps {
	caps := source.Caps{Backend: "dcgm", Kind: source.Streamed, Aggregation: source.Point, Period: s.opts.Period, Local: s.local, Host: s.host}
	if s.opts.Period > MinPeriod {
		caps.Aggregation = source.Window
	}
	return caps
}

// hostOf reports whether an Options.Host is this machine, and otherwise returns its name or address.
func hostOf(option string) (local bool, host string) {
	if option == "" || strings.HasPrefix(option, "unix://") {
		return true, ""
	}
	if host, _, err := net.SplitHostPort(option); err == nil {
		return false, host
	}
	return false, strings.Trim(option, "[]")
}

// Read waits for the next reading. If only the profiling stream fails, readings continue without its fields. If no
// stream works, Read returns the reason, as a *source.Error, once for each restart.
func (s *Source) Read(ctx context.Context, b *raw.Batch) error {
	b.Reset()
	s.starting.Do(s.start)
	for {
		if s.life.Err() != nil {
			return fmt.Errorf("dcgmi: %w", os.ErrClosed)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.next(b) {
			return nil
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

// next fills the emptied b with the next reading, if there is one.
func (s *Source) next(b *raw.Batch) (whole bool) {
	for !whole {
		epoch := s.follow()
		t := s.ring.next()
		if t == nil {
			if whole = s.join.release(); !whole {
				return false
			}
			break
		}
		whole = t.epoch == epoch && s.join.add(t)
		s.ring.recycle(t)
	}
	if s.join.write(s.out, b) {
		s.wanted.Store(true)
	}
	return true
}

// follow switches to the current view, and returns its epoch. A new epoch voids what was read before.
func (s *Source) follow() uint64 {
	v := s.view.Load()
	if v == nil {
		return 0
	}
	if v != s.shown {
		if s.shown == nil || s.shown.epoch != v.epoch {
			s.join.forget()
		}
		s.shown, s.join.view = v, v
		s.out.SetInventory(v.inventory)
	}
	return v.epoch
}

// start starts the supervision of all streams.
func (s *Source) start() {
	for _, st := range s.all {
		if !st.off {
			s.running.Go(func() { s.supervise(s.life, st) })
		}
	}
	s.running.Go(func() { s.watch(s.life) })
}

// Streams appends the totals of the streams device and profiling to dst, except a stream without any of the requested
// fields.
func (s *Source) Streams(dst []source.StreamTotals) []source.StreamTotals {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.all {
		if st.off {
			continue
		}
		own := s.ring.counts[st.index].Totals(st.name)
		own.Failure = st.failure
		dst = append(dst, own)
	}
	return dst
}

// Close ends the children and makes a blocked Read return. It waits until they are gone, and may be called more than
// once.
func (s *Source) Close() error {
	s.starting.Do(func() {}) // a later Read starts nothing
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
