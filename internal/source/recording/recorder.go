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

// defaultFileSize and defaultKeep bound a recording to 320 MiB on disk: two weeks
// of a node of 8 GPUs × 60 fields that is read every 15 s, where each of its
// values changes each time.
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
	// FileSize is the size in bytes that a file does not exceed, unless a single
	// reading does; then a new one is begun. 0 or less is defaultFileSize.
	FileSize int64
	// Keep is how many old files are kept as FILE.1 (the youngest), FILE.2, …; the
	// recording thus holds at most Keep+1 times FileSize. 0 is defaultKeep, less
	// than that keeps none. A pipe or a device is written to without end.
	Keep int
	// Logger logs that the recording ended before its source. nil is none.
	Logger *slog.Logger
}

// Recorder is a source that records what another one reads. It passes the readings
// on untouched, and neither delays nor fails one for the sake of the recording: a
// reading that the disk is not ready for is left out and counted in the next record,
// and when a write fails the recording ends there, which is logged, and reading goes
// on.
type Recorder struct {
	source.Source
	logger   *slog.Logger
	fileSize int64
	file     *rotating // of the goroutine that writes
	patience time.Duration

	free    chan []byte // buffers to encode into
	queue   chan chunk  // holds all buffers
	written chan struct{}
	ended   atomic.Bool // nothing more is recorded

	mu     sync.Mutex
	closed bool
	writer *writer
	size   int64 // of the file, with what is on its way to it
	missed int   // readings left out since the last record
}

var (
	_ source.Source  = (*Recorder)(nil)
	_ source.Streams = (*Recorder)(nil)
)

// chunk is a record on its way to the disk.
type chunk struct {
	text     []byte
	nextFile bool // it begins a new file
}

// Record returns a source that reads src and records it in the file at path,
// which it creates; a file that is there already becomes path.1, and one that
// another Recorder writes is refused. The Recorder owns src from then on: Close
// closes both. On an error, which ends in what to do, src is as it was.
func Record(src source.Source, path string, opts Options) (*Recorder, error) {
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
			remedy = "name another file, or end that one: fuser -v " + path
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

// hostOf returns the name of the machine that src reads, "" if it is not known.
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

// Unwrap returns the source that is recorded.
func (r *Recorder) Unwrap() source.Source { return r.Source }

// Read reads the source and records its reading, or that it failed. A read that
// was cancelled and the end of the source are not recorded.
func (r *Recorder) Read(ctx context.Context, b *raw.Batch) error {
	asked := time.Now()
	err := r.Source.Read(ctx, b)
	switch {
	case err == nil:
		r.record(b)
	case !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) && !errors.Is(err, context.Canceled):
		r.recordFailure(asked, time.Since(asked), source.AsError(err))
	}
	return err
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
		b.Body = b.AppendText(b.Body)
	}
	if len(b.Body) == 0 && len(b.Samples) > 0 {
		r.end(errors.New("the source gives numbers but no text"), "record another source")
		return
	}
	r.put(func(dst []byte) []byte { return r.writer.reading(dst, b, r.missed) }, true)
}

// recordFailure records that a read failed.
func (r *Recorder) recordFailure(asked time.Time, took time.Duration, err *source.Error) {
	r.put(func(dst []byte) []byte { return r.writer.failed(dst, asked, took, err) }, false)
}

// put hands what encode appends to the goroutine that writes. It does not wait:
// the queue holds every buffer.
func (r *Recorder) put(encode func(dst []byte) []byte, isReading bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.ended.Load() {
		return
	}
	var buf []byte
	select {
	case buf = <-r.free:
	default:
		if isReading {
			r.missed++
		}
		return
	}
	c := chunk{text: encode(buf[:0])}
	if r.size > 0 && int64(len(c.text)) > r.fileSize-r.size {
		r.writer.nextFile()
		r.size = 0
		c = chunk{text: encode(c.text[:0]), nextFile: true}
	}
	if isReading {
		r.missed = 0
	}
	r.size += int64(len(c.text))
	r.queue <- c
}

// write writes what is queued until the Recorder is closed.
func (r *Recorder) write() {
	defer close(r.written)
	defer func() { _ = r.file.Close() }() // the file of then: it is another after a rotation
	for c := range r.queue {
		if err := r.writeOne(c); err != nil {
			r.end(err, "free space or repair the disk, and start the recording anew")
		}
		r.free <- c.text
	}
}

// writeOne writes a record with one call, so that one that is killed leaves no
// more than one record torn.
func (r *Recorder) writeOne(c chunk) error {
	if r.ended.Load() {
		return nil
	}
	if c.nextFile {
		if err := r.file.next(); err != nil {
			return err
		}
	}
	_, err := r.file.Write(c.text)
	return err
}

// end stops recording and logs it, once.
func (r *Recorder) end(err error, remedy string) {
	if r.ended.Swap(true) {
		return
	}
	r.logger.Error("recording stopped; reading goes on", "file", r.file.path, "source", r.Name(), "err", err, "remedy", remedy)
}

// Close closes the source and ends the recording. It waits for the disk, but not
// for one that hangs; readings that are not on it by then are lost, which is
// logged. It may be called more than once, and while a Read is under way.
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
		r.end(errors.New("the disk is too slow for the last readings"), "see why it hangs")
	}
	return err
}
