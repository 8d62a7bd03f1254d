package holders

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

const (
	// maxJobs is the most jobs to read, far more than run on a node.
	maxJobs = 4096
	// maxJobBytes and maxJobText bound a file and a value, in bytes, far above real ones;
	// deploy/slurm/README.md states them.
	maxJobBytes = 4096
	maxJobText  = 256
	// jobsEvery is how often the directory is read.
	jobsEvery = time.Second
)

// jobInfo is the information about a job; "" is unknown.
type jobInfo struct{ user, account, partition, uid string }

// jobFile is the content of a file and its first mistake, nil for none.
type jobFile struct {
	info    jobInfo
	mistake *canonical.Failure
}

// jobsByID is the known information about each job, by its id. A published value is not modified.
type jobsByID map[string]jobInfo

// Jobs is the directory of --hpc-job-info-dir, in which a batch system's prolog describes each
// job. All methods but Run are safe for concurrent use.
type Jobs struct {
	name   string
	logger *slog.Logger
	files  diag.Folder[jobFile] // of the goroutine that looks

	jobs  atomic.Pointer[jobsByID]
	state atomic.Pointer[JobsState]
}

// JobsState is the outcome of the last look.
type JobsState struct {
	Read      int  // jobs that are known
	Malformed int  // files with mistakes
	Full      bool // more files than are read
	// Problem is why the directory cannot be read, or the first mistake in a file; nil if all
	// is well.
	Problem *canonical.Failure
}

// NewJobs returns the Jobs of dir, called name in problems. Nothing is read before Run.
func NewJobs(dir fs.FS, name string, logger *slog.Logger) *Jobs {
	d := &Jobs{name: name, logger: logger, files: diag.Folder[jobFile]{
		Dir: dir, MaxFiles: maxJobs, MaxBytes: maxJobBytes + 1, Accept: isJob, Parse: parseJob,
	}}
	d.jobs.Store(&jobsByID{})
	d.state.Store(&JobsState{})
	return d
}

// isJob reports whether name may be the name of a job: temporary files begin with a dot.
func isJob(name string) bool { return isJobText(name) && name[0] != '.' }

// isJobText reports whether a text may be a label of a series.
func isJobText(text string) bool {
	return text != "" && len(text) <= maxJobText && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// parseJob reads a file of lines `key=value`. It skips unknown keys, empty lines, lines that
// begin with #, and malformed lines.
func parseJob(name string, text []byte) (f jobFile) {
	if len(text) > maxJobBytes {
		f.mistake = &canonical.Failure{Cause: fmt.Sprintf("%s: more than %d bytes", name, maxJobBytes), Remedy: "write user, uid, account and partition only"}
		return f
	}
	fields := map[string]*string{"user": &f.info.user, "account": &f.info.account, "partition": &f.info.partition, "uid": &f.info.uid}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		key, value, is := strings.Cut(line, "=")
		value = strings.TrimSpace(value)
		field := fields[strings.TrimSpace(key)]
		switch malformed := !is || field != nil && value != "" && !isJobText(value); {
		case strings.TrimSpace(line) == "" || line[0] == '#':
		case malformed && f.mistake == nil:
			f.mistake = &canonical.Failure{
				Cause:  fmt.Sprintf("%s:%d: no key=value that can be served", name, number),
				Remedy: fmt.Sprintf("write such as user=ada, in at most %d bytes of UTF-8 without control characters", maxJobText),
			}
		case !malformed && field != nil:
			*field = value
		}
	}
	return f
}

// Run reads the directory each second until ctx ends.
func (d *Jobs) Run(ctx context.Context) {
	tick := time.NewTicker(jobsEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		d.Look()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// Look reads the directory once.
func (d *Jobs) Look() {
	var s JobsState
	if err := d.files.Look(); err != nil {
		s.Problem = &canonical.Failure{
			Cause:  fmt.Sprintf("cannot read the job info directory %s: %v", d.name, err),
			Remedy: "create it and make it readable for this user, or leave out --hpc-job-info-dir",
		}
	}
	jobs, first := jobsByID{}, ""
	d.files.Each(func(name string, f jobFile) {
		if f.info != (jobInfo{}) {
			jobs[name] = f.info
		}
		if f.mistake == nil {
			return
		}
		if s.Malformed++; first == "" || name < first { // name the same file each time
			first, s.Problem = name, &canonical.Failure{Cause: d.name + "/" + f.mistake.Cause, Remedy: f.mistake.Remedy}
		}
	})
	outside, err := d.files.Outside(d.name)
	s.Malformed += outside
	s.Read, s.Full = len(jobs), d.files.Full()
	switch {
	case s.Problem != nil:
	case err != nil:
		s.Problem = &canonical.Failure{Cause: err.Error()}
	case s.Full:
		s.Problem = &canonical.Failure{Cause: fmt.Sprintf("%s has more than %d files", d.name, maxJobs), Remedy: "remove those of jobs that ended: kpulse-jobs sweep"}
	}
	if !maps.Equal(jobs, *d.jobs.Load()) {
		d.jobs.Store(&jobs)
	}
	if was := d.state.Load(); s.Problem != nil && (was.Problem == nil || *was.Problem != *s.Problem) {
		d.logger.Warn("some users of jobs are unknown", "cause", s.Problem.Cause, "remedy", s.Problem.Remedy)
	}
	d.state.Store(&s) // last, so that the log has the reason when the state tells of it
}

// State returns the outcome of the last look.
func (d *Jobs) State() JobsState { return *d.state.Load() }

// JobFeed adds users, accounts and partitions to the jobs of one source. It belongs to the
// goroutine that reads the source.
type JobFeed struct {
	from  *Jobs
	jobs  *jobsByID // of the latest Frame
	known jobsByID  // of the jobs in made.in
	made  relabelled
}

// Feed returns a new JobFeed, for one source.
func (d *Jobs) Feed() *JobFeed { return &JobFeed{from: d} }

// Complete sets User, Account, Partition and UID of the Frame's allocations. It allocates nothing while
// neither the allocations nor the files change. A job keeps its information while it holds
// a device, even if its file is removed earlier.
func (a *JobFeed) Complete(f *canonical.Frame) {
	set, jobs := f.AllocationSet, a.from.jobs.Load()
	if set == nil {
		return
	}
	if set != a.made.in || jobs != a.jobs {
		known := jobsByID{}
		for i := range set.Allocations {
			job := set.Allocations[i].Job
			if info, ok := (*jobs)[job]; ok {
				known[job] = info
			} else if info, ok := a.known[job]; ok {
				known[job] = info
			}
		}
		if a.jobs = jobs; set != a.made.in || !maps.Equal(known, a.known) {
			a.known = known
			a.made.relabel(set, func(w *canonical.Allocation) {
				if info, ok := known[w.Job]; ok {
					w.User, w.Account, w.Partition, w.UID = info.user, info.account, info.partition, info.uid
				}
			})
		}
	}
	a.made.apply(f)
}

// relabelled is an AllocationSet with other labels.
type relabelled struct {
	in, out *canonical.AllocationSet // the same if no label differs
	same    []int32                  // each allocation's own index
}

// relabel makes out from in.
func (r *relabelled) relabel(in *canonical.AllocationSet, change func(*canonical.Allocation)) {
	r.in, r.out, r.same = in, in, r.same[:0]
	if in == nil {
		return
	}
	set, differs := *in, false
	set.Allocations = make([]canonical.Allocation, len(in.Allocations))
	for i, a := range in.Allocations {
		change(&a)
		set.Allocations[i], r.same = a, append(r.same, int32(i))
		differs = differs || a != in.Allocations[i]
	}
	if differs {
		r.out = &set
	}
}

// apply replaces in by out.
func (r *relabelled) apply(f *canonical.Frame) {
	if r.out != r.in {
		f.Reattribute(r.out, r.same)
	}
}
