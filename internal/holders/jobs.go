package holders

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
	// maxJobs is the most jobs to read, far more than run on a node.
	maxJobs = 4096
	// jobsEvery is how often the directory is read.
	jobsEvery = time.Second
	// jobsPatience is how long the directory may take to answer before JobsState reports it.
	jobsPatience = 30 * time.Second
)

// jobsByID is the known information about each job, by its id. A published value is not modified.
type jobsByID map[string]jobInfo

// Jobs is the directory of --hpc-job-info-dir. All methods but Run are safe for
// concurrent use.
type Jobs struct {
	name   string
	logger *slog.Logger
	files  diag.Folder[jobFile] // of the goroutine that looks

	jobs  atomic.Pointer[jobsByID]
	state atomic.Pointer[JobsState]
	began atomic.Int64 // when the look under way began, in Unix nanoseconds; 0 for none
}

// JobsState is the outcome of the last look.
type JobsState struct {
	Read      int  // jobs that are known
	Malformed int  // files with mistakes
	Full      bool // more files than are read
	// Err is why the directory cannot be read, or the first mistake in a file; nil if all
	// is well.
	Err error
}

// NewJobs returns the Jobs of dir, called name in errors. Nothing is read before Run.
func NewJobs(dir fs.FS, name string, logger *slog.Logger) *Jobs {
	d := &Jobs{name: name, logger: logger, files: diag.Folder[jobFile]{
		Dir: dir, MaxFiles: maxJobs, MaxBytes: maxJobBytes + 1, Accept: isJob, Parse: parseJob,
	}}
	d.jobs.Store(&jobsByID{})
	d.state.Store(&JobsState{})
	return d
}

// Run reads the directory each second until ctx ends. A look that hangs, as on a network
// file system, delays neither readings nor the return.
func (d *Jobs) Run(ctx context.Context) {
	tick := time.NewTicker(jobsEvery)
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
func (d *Jobs) look(now time.Time) {
	var s JobsState
	if err := d.files.Look(now); err != nil {
		s.Err = fmt.Errorf("cannot read the job info directory %s: %w; create it and make it readable for this user, or leave out --hpc-job-info-dir", d.name, err)
	}
	jobs, first := jobsByID{}, ""
	d.files.Each(func(name string, c jobFile) {
		if c.info != (jobInfo{}) {
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
		s.Err = fmt.Errorf("%s has more than %d files; remove those of jobs that ended: kpulse-jobs sweep", d.name, maxJobs)
	}
	if !maps.Equal(jobs, *d.jobs.Load()) {
		d.jobs.Store(&jobs)
	}
	if was := d.state.Swap(&s); s.Err != nil && (was.Err == nil || was.Err.Error() != s.Err.Error()) {
		d.logger.Warn("some users of jobs are unknown", "cause", s.Err)
	}
}

// JobsState returns the outcome of the last look. A look that has not finished is an error too.
func (d *Jobs) State() JobsState {
	s := *d.state.Load()
	if began := d.began.Load(); began != 0 && time.Since(time.Unix(0, began)) > jobsPatience {
		s.Err = fmt.Errorf("the job info directory %s does not answer; check whether its file system hangs", d.name)
	}
	return s
}

// JobFeed completes the allocations of one source. It belongs to the goroutine of that source.
type JobFeed struct {
	from    *Jobs
	known   jobsByID  // the jobs in out
	jobs    *jobsByID // known was made from these
	in, out *canonical.AllocationSet
	was     []int32
}

// JobFeed returns a new JobFeed, for one source.
func (d *Jobs) Feed() *JobFeed { return &JobFeed{from: d} }

// Complete adds users, accounts and partitions to the jobs of f. It allocates nothing while
// neither the allocations nor the files change. A job keeps its information while it holds
// a device, even if its file is removed earlier.
func (a *JobFeed) Complete(f *canonical.Frame) {
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
func (a *JobFeed) change(set *canonical.AllocationSet, jobs *jobsByID) {
	known := jobsByID{}
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
