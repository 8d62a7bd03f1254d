// Package jobinfo reads the directory in which a batch system's prolog describes each job,
// and adds users, accounts and partitions to the allocations of readings.
package jobinfo

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

const (
	// maxFiles is the most jobs to read, far more than run on a node.
	maxFiles = 4096
	// every is how often the directory is read.
	every = time.Second
	// patience is how long the directory may take to answer before State reports it.
	patience = 30 * time.Second
)

// Jobs is the known information about each job, by its id. A published value is not modified.
type Jobs map[string]Info

// Directory is the directory of --hpc-job-info-dir. All methods but Run are safe for
// concurrent use.
type Directory struct {
	name   string
	logger *slog.Logger
	files  diag.Folder[content] // of the goroutine that looks

	jobs  atomic.Pointer[Jobs]
	state atomic.Pointer[State]
	began atomic.Int64 // when the look under way began, in Unix nanoseconds; 0 for none
}

// State is the outcome of the last look.
type State struct {
	Read      int  // jobs that are known
	Malformed int  // files with mistakes
	Full      bool // more files than are read
	// Err is why the directory cannot be read, or the first mistake in a file; nil if all
	// is well.
	Err error
}

// New returns the Directory dir, called name in errors. Nothing is read before Run.
func New(dir fs.FS, name string, logger *slog.Logger) *Directory {
	d := &Directory{name: name, logger: logger, files: diag.Folder[content]{
		Dir: dir, MaxFiles: maxFiles, MaxBytes: maxBytes + 1, Accept: isJob, Parse: parse,
	}}
	d.jobs.Store(&Jobs{})
	d.state.Store(&State{})
	return d
}

// Run reads the directory each second until ctx ends. A look that hangs, as on a network
// file system, delays neither readings nor the return.
func (d *Directory) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		done := make(chan struct{})
		d.began.Store(time.Now().UnixNano())
		go func() {
			d.look(time.Now())
			d.began.Store(0)
			close(done)
		}()
		select {
		case <-ctx.Done():
			return
		case <-done:
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look reads the directory once.
func (d *Directory) look(now time.Time) {
	var s State
	if err := d.files.Look(now); err != nil {
		s.Err = fmt.Errorf("cannot read the job info directory %s: %w; create it and make it readable for this user, or leave out --hpc-job-info-dir", d.name, err)
	}
	jobs, first := Jobs{}, ""
	d.files.Each(func(name string, c content) {
		if c.info != (Info{}) {
			jobs[name] = c.info
		}
		if c.err == nil {
			return
		}
		if s.Malformed++; first == "" || name < first { // name the same file each time
			first, s.Err = name, fmt.Errorf("%s/%w", d.name, c.err)
		}
	})
	outside, err := d.files.Outside(d.name)
	if s.Malformed += outside; s.Err == nil {
		s.Err = err
	}
	s.Read, s.Full = len(jobs), d.files.Full()
	if s.Full && s.Err == nil {
		s.Err = fmt.Errorf("%s has more than %d files; remove those of jobs that ended: kpulse-jobs sweep", d.name, maxFiles)
	}
	if !maps.Equal(jobs, *d.jobs.Load()) {
		d.jobs.Store(&jobs)
	}
	if was := d.state.Swap(&s); s.Err != nil && (was.Err == nil || was.Err.Error() != s.Err.Error()) {
		d.logger.Warn("some users of jobs are unknown", "cause", s.Err)
	}
}

// State returns the outcome of the last look. A look that has not finished is an error too.
func (d *Directory) State() State {
	s := *d.state.Load()
	if began := d.began.Load(); began != 0 && time.Since(time.Unix(0, began)) > patience {
		s.Err = fmt.Errorf("the job info directory %s does not answer; check whether its file system hangs", d.name)
	}
	return s
}

// Feed completes the allocations of one source. It belongs to the goroutine of that source.
type Feed struct {
	from    *Directory
	known   Jobs  // the jobs in out
	jobs    *Jobs // known was made from these
	in, out *canonical.AllocationSet
	was     []int32
}

// Feed returns a new Feed, for one source.
func (d *Directory) Feed() *Feed { return &Feed{from: d} }

// Complete adds users, accounts and partitions to the jobs of f. It allocates nothing while
// neither the allocations nor the files change. A job keeps its information while it holds
// a device, even if its file is removed earlier.
func (a *Feed) Complete(f *canonical.Frame) {
	set, jobs := f.AllocationSet, a.from.jobs.Load()
	if set == nil {
		return
	}
	if set != a.in || jobs != a.jobs {
		a.change(set, jobs)
	}
	if a.out != set {
		f.Reattribute(a.out, a.was)
	}
}

// change sets out from set and jobs.
func (a *Feed) change(set *canonical.AllocationSet, jobs *Jobs) {
	known := Jobs{}
	for i := range set.Allocations {
		job := set.Allocations[i].Job
		if info, ok := (*jobs)[job]; ok {
			known[job] = info
		} else if info, ok := a.known[job]; ok {
			known[job] = info
		}
	}
	same := set == a.in && maps.Equal(known, a.known)
	a.in, a.jobs, a.known = set, jobs, known
	if same {
		return
	}
	if a.out = set; len(known) == 0 {
		return
	}
	a.out = &canonical.AllocationSet{Holders: set.Holders, Allocations: make([]canonical.Allocation, len(set.Allocations))}
	a.was = a.was[:0]
	for i, allocation := range set.Allocations {
		if info, ok := known[allocation.Job]; ok {
			allocation.User, allocation.Account, allocation.Partition = info.User, info.Account, info.Partition
		}
		a.out.Allocations[i] = allocation
		a.was = append(a.was, int32(i))
	}
}
