package dcgm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
)

// Bounds of a mapping: far above a node's.
const (
	maxMappingFiles = 4096
	maxMappingBytes = 64 << 10
	maxJobs         = 64
)

// refreshEvery is how often a Mapping looks at its directory, whoever asks.
const refreshEvery = time.Second

// settled is the age from which a file's time of change can be trusted to be
// another after the next change: kernels and network file systems keep it in
// steps of up to two seconds.
const settled = 2 * time.Second

// JobDevice is what jobs run on: a whole board, or an instance of it.
type JobDevice struct {
	GPU      string // the exporter's label gpu
	Instance string // its GPU_I_ID; "" for a whole board
}

// Jobs are the ids of the jobs on each device.
type Jobs map[JobDevice][]string

// Of returns the jobs on an instance, or, with "", on a board. An instance that has no
// file of its own has the jobs of the board.
func (j Jobs) Of(gpu, instance string) []string {
	if ids := j[JobDevice{gpu, instance}]; len(ids) > 0 {
		return ids
	}
	return j[JobDevice{GPU: gpu}]
}

// Mapping reads the directory of dcgm-exporter's --hpc-job-mapping-dir, which a
// scheduler's prolog and epilog keep: a file for each GPU in use, named by its
// index (`0`) or by index and MIG instance (`2.1`), with a job id on each line.
// An empty file is a GPU without a job; other files are no business of ours. It
// belongs to one goroutine.
type Mapping struct {
	dir   fs.FS
	name  string
	files map[string]mappingFile
	jobs  Jobs
	last  time.Time // when the directory was looked at
	err   error     // what came of it
}

// mappingFile is a file as it was when it was read.
type mappingFile struct {
	device   JobDevice
	modified time.Time
	size     int64
	read     time.Time
	jobs     []string
}

// NewMapping returns a Mapping of dir, which errors call name. Nothing is read
// before the first Refresh.
func NewMapping(dir fs.FS, name string) *Mapping { return &Mapping{dir: dir, name: name} }

// Jobs returns what the last Refresh found. It is never written to again.
func (m *Mapping) Jobs() Jobs { return m.jobs }

// Refresh looks at the directory if the last look, by the same clock as now, is a
// second old, and reads the files that changed. It reports whether Jobs changed.
// While the directory cannot be read there are no jobs, and it returns why, every
// time. A single file that cannot be read is as one that is not there.
func (m *Mapping) Refresh(now time.Time) (changed bool, err error) {
	if age := now.Sub(m.last); !m.last.IsZero() && age >= 0 && age < refreshEvery {
		return false, m.err
	}
	m.last = now
	files, err := m.look(now)
	m.files, m.err = files, err
	jobs := Jobs{}
	for _, f := range files {
		if len(f.jobs) > 0 {
			jobs[f.device] = f.jobs
		}
	}
	if maps.EqualFunc(jobs, m.jobs, slices.Equal) {
		return false, m.err
	}
	m.jobs = jobs
	return true, m.err
}

// look returns the files of the directory, those that did not change as they are
// known.
func (m *Mapping) look(now time.Time) (map[string]mappingFile, error) {
	names, err := m.list()
	if err != nil {
		return nil, fmt.Errorf("cannot read the job mapping directory %s: %w; create it and make it readable for this user, "+
			"or leave out --hpc-job-mapping-dir", m.name, reason(err))
	}
	files := map[string]mappingFile{}
	for _, name := range names {
		device, ok := deviceOf(name)
		if !ok {
			continue
		}
		// Stat follows links, and keeps us from opening a pipe without a
		// writer.
		info, err := fs.Stat(m.dir, name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		f, known := m.files[name]
		if !known || !f.modified.Equal(info.ModTime()) || f.size != info.Size() || f.read.Sub(f.modified) < settled {
			jobs, err := m.read(name)
			if err != nil {
				continue
			}
			f = mappingFile{device, info.ModTime(), info.Size(), now, jobs}
		}
		files[name] = f
	}
	return files, nil
}

// list returns the names in the directory, up to the bound.
func (m *Mapping) list() ([]string, error) {
	d, err := m.dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	dir, ok := d.(fs.ReadDirFile)
	if !ok {
		return nil, errors.New("not a directory")
	}
	entries, err := dir.ReadDir(maxMappingFiles)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// reason removes the path from an error that names it.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// read returns the jobs of a file.
func (m *Mapping) read(name string) ([]string, error) {
	f, err := m.dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxMappingBytes))
	if err != nil {
		return nil, err
	}
	if len(text) == maxMappingBytes { // half an id is another id
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	return parseJobs(text), nil
}

// parseJobs returns the job ids of a file, each once, as several series of one
// device and job would be one too many.
func parseJobs(file []byte) []string {
	var jobs []string
	for line := range lines(file) {
		if job := clean(line); job != "" && len(job) <= maxText && len(jobs) < maxJobs && !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// deviceOf reads the name of a file, `0` or `2.1`.
func deviceOf(name string) (JobDevice, bool) {
	gpu, instance, cut := strings.Cut(name, ".")
	return JobDevice{gpu, instance}, id(gpu) != Unknown && cut == (id(instance) != Unknown)
}
