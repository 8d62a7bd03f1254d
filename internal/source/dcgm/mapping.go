package dcgm

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// Bounds of a mapping, far above what a node needs.
const (
	maxMappingFiles = 4096
	maxMappingBytes = 64 << 10
	maxJobs         = 64
)

// refreshEvery is the shortest time between a Mapping's looks at its directory.
const refreshEvery = time.Second

// Jobs are the ids of the jobs on each device, by the names of files: that of a board is its index, as in the exporter's
// label gpu, that of an instance `2.1`, with the exporter's GPU_I_ID.
type Jobs map[string][]string

// Of returns the jobs on an instance, or, with "", on a board. An instance that has no file has the jobs of the board.
func (j Jobs) Of(gpu, instance string) []string {
	if ids := j[gpu+"."+instance]; len(ids) > 0 {
		return ids
	}
	return j[gpu]
}

// Mapping reads the directory of dcgm-exporter's --hpc-job-mapping-dir, which a scheduler's prolog and epilog keep: a
// file for each GPU in use, named by its index (`0`) or by index and MIG instance (`2.1`), with a job id on each line.
// An empty file is a GPU without a job; other files are ignored. It belongs to one goroutine.
type Mapping struct {
	dir  diag.Folder[[]string]
	name string
	jobs Jobs      // that the last Refresh found; never written to again
	last time.Time // of the last look at the directory
	err  error     // of that look
}

// NewMapping returns a Mapping of dir; name is the directory's name in errors. Nothing is read before the first Refresh.
func NewMapping(dir fs.FS, name string) *Mapping {
	return &Mapping{name: name, dir: diag.Folder[[]string]{
		Dir: dir, MaxFiles: maxMappingFiles, MaxBytes: maxMappingBytes,
		Accept: isDevice,
		Parse:  func(_ string, text []byte) []string { return parseJobs(text) },
	}}
}

// Refresh reads the directory if the last look, by the same clock as now, is a second old. It reports whether Jobs changed.
// While the directory cannot be read, there are no jobs, and every call returns the reason. A link that leads out of the
// directory is an error too, beside the jobs of other files. A file that cannot be read counts as missing.
func (m *Mapping) Refresh(now time.Time) (changed bool, err error) {
	if age := now.Sub(m.last); age >= 0 && age < refreshEvery {
		return false, m.err
	}
	m.last = now
	if m.err = m.dir.Look(); m.err != nil {
		m.err = fmt.Errorf("cannot read the job mapping directory %s: %w; create it and make it readable for this user, "+
			"or leave out --hpc-job-mapping-dir", m.name, m.err)
	} else {
		_, m.err = m.dir.Outside(m.name)
	}
	jobs := Jobs{}
	m.dir.Each(func(name string, ids []string) {
		if len(ids) > 0 {
			jobs[name] = ids
		}
	})
	if maps.EqualFunc(jobs, m.jobs, slices.Equal) {
		return false, m.err
	}
	m.jobs = jobs
	return true, m.err
}

// parseJobs returns the job ids of a file, each once: a repeated id would repeat its series.
func parseJobs(file []byte) []string {
	if len(file) == maxMappingBytes { // the last id may be cut short
		file = file[:bytes.LastIndexByte(file, '\n')+1]
	}
	var jobs []string
	for line := range lines(file) {
		if job := known(line); job != "" && len(jobs) < maxJobs && !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// isDevice reports whether a file is named as a device is.
func isDevice(name string) bool {
	gpu, instance, cut := strings.Cut(name, ".")
	return id(gpu) != Unknown && cut == (id(instance) != Unknown)
}
