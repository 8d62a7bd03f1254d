package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// defaultFileSize and defaultKeep limit a recording to 320 MiB on disk: two weeks
// of a node with 8 GPUs × 60 fields, read every 15 s, if every value changes each
// time.
const (
	defaultFileSize = 64 << 20
	defaultKeep     = 4
)

const (
	// backlog is how many readings may wait for the disk.
	backlog = 4
	// patience is how long Close waits for the disk.
	patience = 2 * time.Second
)

// Options tune a Recorder. The zero value is ready to use.
type Options struct {
	// FileSize limits a file, in bytes, unless a single reading is larger; then
	// a new file begins. 0 or less means defaultFileSize.
	FileSize int64
	// Keep is how many old files are kept as FILE.1 (the newest), FILE.2, …; the
	// recording thus takes at most Keep+1 times FileSize. 0 means defaultKeep,
	// less than 0 keeps none. A pipe or a device is written without limit.
	Keep int
	// Logger logs failures of the recording. nil means none.
	Logger *slog.Logger
}

// Recorder is a source that records what another source reads. It passes the readings
// on unchanged, and the recording neither delays a reading nor makes it fail: readings
// that the disk is too slow for are left out and counted in the next record. After a
// failed write, readings are left out until one can be written: the Recorder retries
// with growing pauses. A file that was removed or renamed is created again.
type Recorder struct {
	source.Source
	logger   *slog.Logger
	fileSize int64
	file     *rotating // of the goroutine write
	patience time.Duration

	free    chan []byte // buffers to encode into
	queue   chan chunk  // has room for all buffers
	written chan struct{}
	ended   atomic.Bool // nothing more is recorded

	// Of the goroutine write.
	losing bool // queued records follow a lost one
	looked time.Time

	mu     sync.Mutex
	closed bool
	writer *writer
	size   int64 // of the file, including queued records
	missed int   // readings left out since the last record
	outage outage
	state  State
}

var (
	_ source.Source  = (*Recorder)(nil)
	_ source.Streams = (*Recorder)(nil)
)

// chunk is a record in the queue.
type chunk struct {
	text     []byte
	nextFile bool // it begins a new file
	resumes  bool // it depends on no lost record
	readings int  // lost if the chunk is
}

// Record returns a source that reads src and records it in the file at path, which it
// creates; it renames an existing file to path.1, and refuses one that another
// Recorder writes. The source is a *Recorder or wraps one, and is a source.Fetcher if
// src is one. It owns src: Close closes both. After an error, which ends with the
// remedy, src is unchanged.
func Record(src source.Source, path string, opts Options) (source.Source, error) {
	r, err := newRecorder(src, path, opts)
	if err != nil {
		return nil, err
	}
	if fetcher, is := src.(source.Fetcher); is {
		return &fetched{Recorder: r, fetcher: fetcher}, nil
	}
	return r, nil
}

func newRecorder(src source.Source, path string, opts Options) (*Recorder, error) {
	if opts.FileSize <= 0 {
		opts.FileSize = defaultFileSize
	}
	if opts.Keep == 0 {
		opts.Keep = defaultKeep
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	file, err := openRotating(path, max(opts.Keep, 0))
	if err != nil {
		remedy := "name a file that can be written"
		if errors.Is(err, errTaken) {
			remedy = "name another file, or stop that process: fuser -v " + path
		}
		return nil, fmt.Errorf("cannot record: %w; %s", err, remedy)
	}
	if !file.rotates {
		opts.FileSize = math.MaxInt64
	}
	r := &Recorder{
		Source: src, logger: opts.Logger, fileSize: opts.FileSize, file: file, patience: patience,
		free: make(chan []byte, backlog), queue: make(chan chunk, backlog), written: make(chan struct{}),
		writer: newWriter(src, hostOf(src)),
	}
	for range backlog {
		r.free <- nil
	}
	go r.write()
	return r, nil
}

// hostOf returns the name of the machine that src reads, "" if unknown.
func hostOf(src source.Source) string {
	caps := src.Caps()
	if !caps.Local {
		return caps.Host
	}
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	return host
}

// Unwrap returns the recorded source.
func (r *Recorder) Unwrap() source.Source { return r.Source }

// Read reads the source and records the reading or the failure. It does not
// record a cancelled read or the end of the source.
func (r *Recorder) Read(ctx context.Context, b *raw.Batch) error {
	asked := time.Now()
	err := r.Source.Read(ctx, b)
	if err != nil {
		r.recordFailure(asked, time.Since(asked), err)
		return err
	}
	r.record(b)
	return nil
}

// Streams appends the totals of the streams of the source, if it has any.
func (r *Recorder) Streams(dst []source.StreamTotals) []source.StreamTotals {
	if s, ok := r.Source.(source.Streams); ok {
		dst = s.Streams(dst)
	}
	return dst
}

// record records a reading.
func (r *Recorder) record(b *raw.Batch) {
	if len(b.Body) == 0 && b.Exposition != nil {
		b.Body = b.AppendAll(b.Body)
		defer func() { b.Body = b.Body[:0] }() // the caller may pass on less
	}
	if len(b.Body) == 0 && len(b.Samples) > 0 {
		r.end("the source delivers numbers but no text", "record another source")
		return
	}
	r.put(func(dst []byte) []byte { return r.writer.reading(dst, b, r.missed) }, true)
}

// recordFailure records a failed read, unless it was cancelled or the source has
// ended.
func (r *Recorder) recordFailure(asked time.Time, took time.Duration, err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, context.Canceled) {
		return
	}
	failure := source.AsError(err)
	r.put(func(dst []byte) []byte { return r.writer.failed(dst, asked, took, failure) }, false)
}

// put queues what encode appends. It does not wait: the queue has room for
// every buffer.
func (r *Recorder) put(encode func(dst []byte) []byte, isReading bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.ended.Load() {
		return
	}
	readings := 0
	if isReading {
		readings = 1
	}
	var buf []byte
	if r.outage.wait(time.Now()) {
		r.miss(readings)
		return
	}
	select {
	case buf = <-r.free:
	default:
		r.miss(readings)
		return
	}
	c := chunk{readings: readings, resumes: r.outage.begin()}
	if c.resumes {
		c.nextFile = r.resume()
	}
	c.text = encode(buf[:0])
	if r.size > 0 && int64(len(c.text)) > r.fileSize-r.size {
		r.writer.nextFile()
		r.size = 0
		c.text, c.nextFile = encode(c.text[:0]), true
	}
	if isReading {
		c.readings += r.missed
		r.missed = 0
	}
	r.size += int64(len(c.text))
	r.queue <- c
}

// miss counts readings that are not written.
func (r *Recorder) miss(readings int) {
	r.missed += readings
	r.state.Missed += readings
}

// write writes queued records until the Recorder is closed.
func (r *Recorder) write() {
	defer close(r.written)
	defer func() { _ = r.file.Close() }() // the file at that time: a rotation changes it
	for c := range r.queue {
		r.writeOne(c)
		r.free <- c.text
	}
}

// writeOne writes a record, unless it depends on a lost one.
func (r *Recorder) writeOne(c chunk) {
	if r.ended.Load() || r.losing && !c.resumes {
		r.lose(c, nil)
		return
	}
	if err := r.prepare(c); err != nil {
		r.lose(c, err)
		return
	}
	if err := r.file.append(c.text); err != nil {
		r.lose(c, err)
		return
	}
	if r.losing {
		r.losing = false
		r.recovered()
	}
	r.lookForFile()
}

// prepare makes the file ready for a record.
func (r *Recorder) prepare(c chunk) error {
	switch {
	case c.resumes && (r.file.gone() || !r.file.rotates):
		return r.file.reopen()
	case c.nextFile && !c.resumes:
		return r.file.next()
	case c.resumes:
		if err := r.file.trim(); err != nil || !c.nextFile || r.file.whole == 0 {
			return err
		}
		return r.file.next()
	}
	return nil
}

// end stops recording permanently and logs it, once.
func (r *Recorder) end(cause, remedy string) {
	if r.ended.Swap(true) {
		return
	}
	r.mu.Lock()
	r.state.Failure, r.state.Remedy = cause, remedy
	r.mu.Unlock()
	r.logger.Error("recording stopped; reading continues", "file", r.file.path, "source", r.Name(), "err", cause, "remedy", remedy)
}

// Close closes the source and ends the recording. It waits for the disk, but not
// for one that hangs: it logs that the last readings are lost. It may be called
// more than once, and during a Read.
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
	case <-time.After(r.patience):
		r.end("the disk is too slow for the last readings", "find out why it hangs")
	}
	return err
}
