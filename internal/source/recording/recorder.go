package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// backlog is how many readings may wait for the disk.
	backlog = 4
	// patience is how long Close waits for the disk.
	patience = 2 * time.Second
)

// Recorder is a source that records what another source reads. It passes the readings on
// unchanged, and the recording neither delays a reading nor makes it fail: readings that the disk
// is too slow or too full for are left out and counted.
type Recorder struct {
	source.Source
	logger  *slog.Logger
	file    io.WriteCloser // of the goroutine write
	header  header
	free    chan *entry
	queue   chan *entry // has room for all entries
	written chan struct{}

	mu     sync.Mutex
	closed bool
	state  State
}

var _ source.Source = (*Recorder)(nil)

// State is the state of a recording.
type State struct {
	File string
	// Failure is why the last reading could not be written, "" if it was; Remedy is what to do.
	Failure, Remedy string
	// Failures counts the failed writes, Missed the readings that were not written.
	Failures, Missed int
}

// entry is a reading to write.
type entry struct {
	at   time.Time
	took time.Duration
	body []byte
}

// Record returns a source that reads src and appends its readings to the file at path, which it
// creates if necessary. It refuses a file that is no recording, and one that another Recorder
// writes. The source is a *Recorder or wraps one, and is a source.Fetcher if src is one. It owns
// src: Close closes both. After an error src is unchanged. logger may be nil.
func Record(src source.Source, path string, logger *slog.Logger) (source.Source, error) {
	file, err := openForAppend(path)
	if err != nil {
		return nil, err
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	r := newRecorder(src, file, path, logger)
	if fetcher, is := src.(source.Fetcher); is {
		return &fetched{Recorder: r, fetcher: fetcher}, nil
	}
	return r, nil
}

// openForAppend opens and locks a recording, or a new file.
func openForAppend(path string) (*os.File, error) {
	refuse := func(err error, remedy string) (*os.File, error) {
		return nil, &source.Error{Failure: source.Broken, Cause: fmt.Sprintf("cannot record in %s: %v", path, err), Remedy: remedy, Err: err}
	}
	// Without O_NONBLOCK, opening a named pipe would wait.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return refuse(err, "name a file that can be written")
	}
	info, err := file.Stat()
	begin := make([]byte, 4096)
	n, _ := file.ReadAt(begin, 0)
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("it is not a regular file")
	case n > 0 && !isRecording(begin[:n]):
		err = errors.New("it exists and is no recording")
	case errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK):
		err = errors.New("another process records in it")
	default:
		return file, nil
	}
	_ = file.Close()
	return refuse(err, "name another file")
}

func newRecorder(src source.Source, file io.WriteCloser, path string, logger *slog.Logger) *Recorder {
	caps := src.Caps()
	if name, err := os.Hostname(); caps.Local && err == nil {
		caps.Host = name
	}
	r := &Recorder{
		Source: src, logger: logger, file: file, state: State{File: path},
		header: header{Version: version, Backend: caps.Backend, Aggregation: caps.Aggregation, Period: caps.Period, Host: caps.Host},
		free:   make(chan *entry, backlog), queue: make(chan *entry, backlog), written: make(chan struct{}),
	}
	for range backlog {
		r.free <- &entry{}
	}
	go r.write()
	return r
}

// Unwrap returns the recorded source.
func (r *Recorder) Unwrap() source.Source { return r.Source }

// State returns the state of the recording. It may be called from any goroutine.
func (r *Recorder) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Read reads the source and records the reading.
func (r *Recorder) Read(ctx context.Context, b *raw.Batch) error {
	err := r.Source.Read(ctx, b)
	if err == nil {
		r.record(b)
	}
	return err
}

// record queues a reading. It does not wait.
func (r *Recorder) record(b *raw.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	select {
	case e := <-r.free:
		e.at, e.took, e.body = b.At, b.Took, append(e.body[:0], b.Body...)
		if len(b.Body) == 0 && b.Exposition != nil {
			e.body = b.AppendAll(e.body)
		}
		r.queue <- e
	default:
		r.state.Missed++
	}
}

// write writes queued readings until the Recorder is closed.
func (r *Recorder) write() {
	defer close(r.written)
	defer r.file.Close()
	var p packer
	for e := range r.queue {
		h := r.header
		h.At, h.Took = e.at.UTC(), e.took
		_, err := r.file.Write(p.pack(h, e.body)) // one call, so that a kill leaves at most one torn member
		r.note(err)
		r.free <- e
	}
}

// note counts a failed write, and logs the first of a row and the end of the row.
func (r *Recorder) note(err error) {
	const remedy = "free space or repair the disk"
	r.mu.Lock()
	failed := r.state.Failure != ""
	if r.state.Failure, r.state.Remedy = "", ""; err != nil {
		r.state.Failure, r.state.Remedy = err.Error(), remedy
		r.state.Failures++
		r.state.Missed++
	}
	now := r.state
	r.mu.Unlock()
	switch {
	case err != nil && !failed:
		r.logger.Error("recording fails; reading continues, and writing is retried", "file", now.File, "source", r.Name(), "err", err, "remedy", remedy)
	case err == nil && failed:
		r.logger.Info("recording continues", "file", now.File, "source", r.Name(), "missed_in_all", now.Missed)
	}
}

// Close closes the source and ends the recording. It waits for the disk, but not for one that
// hangs: it logs that the last readings are lost. It may be called more than once, and during a
// Read.
func (r *Recorder) Close() error {
	err := r.Source.Close()
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	r.mu.Unlock()
	if !first {
		return err
	}
	close(r.queue)
	select {
	case <-r.written:
	case <-time.After(patience):
		r.logger.Error("the last readings are not recorded: the disk does not respond", "file", r.State().File, "remedy", "find out why it hangs")
	}
	return err
}

// fetched is a Recorder of a source.Fetcher, whose requests may overlap. Readings are recorded in
// the order in which they are scanned.
type fetched struct {
	*Recorder
	fetcher source.Fetcher
}

var _ source.Fetcher = (*fetched)(nil)

// Unwrap returns the Recorder.
func (f *fetched) Unwrap() source.Source { return f.Recorder }

// Fetch implements source.Fetcher.
func (f *fetched) Fetch(ctx context.Context, b *raw.Batch) error { return f.fetcher.Fetch(ctx, b) }

// Scan implements source.Fetcher, and records the reading.
func (f *fetched) Scan(b *raw.Batch) error {
	err := f.fetcher.Scan(b)
	if err == nil {
		f.record(b)
	}
	return err
}
