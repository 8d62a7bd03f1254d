package exporter

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// file is an upstream that is a saved exposition.
type file struct {
	path string
	turn chan struct{} // full while the file is read
	bodyReader
}

func newFile(path string, maxBody int64) *file {
	return &file{path: path, turn: make(chan struct{}, 1), bodyReader: bodyReader{max: maxBody}}
}

func (f *file) name() string { return f.path }

func (f *file) close() {}

func (f *file) fetch(ctx context.Context, b *raw.Batch) error {
	if err := ctx.Err(); err != nil {
		return f.explain(err)
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return f.explain(ctx.Err())
	}
	body, err := f.content(b.Body)
	if err == nil {
		b.Body = body
	}
	return err
}

// content returns the content of the file, in buf's memory if that suffices.
func (f *file) content(buf []byte) ([]byte, error) {
	// Before opening: opening a named pipe waits for its writer.
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, f.explain(err)
	}
	if !info.Mode().IsRegular() {
		return nil, f.irregular(info.Mode())
	}
	if info.Size() > f.max {
		return nil, f.tooLarge(info.Size())
	}
	h, err := os.Open(f.path)
	if err != nil {
		return nil, f.explain(err)
	}
	defer h.Close()
	return f.whole(h, buf)
}

// whole reads h to its end.
func (f *file) whole(h *os.File, buf []byte) ([]byte, error) {
	before, err := h.Stat()
	if err != nil {
		return nil, f.explain(err)
	}
	body, err := f.read(buf, h, before.Size())
	if errors.Is(err, errTooLarge) {
		return nil, f.tooLarge(-1)
	}
	if err != nil {
		return nil, f.explain(err)
	}
	return f.finish(h, before, body)
}

// finish returns the body that was read from h, unless h has changed since
// before: a torn body would lack devices that exist.
func (f *file) finish(h *os.File, before fs.FileInfo, body []byte) ([]byte, error) {
	after, err := h.Stat()
	if err != nil {
		return nil, f.explain(err)
	}
	if after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return nil, &source.Error{
			Failure: source.Truncated,
			Cause:   f.path + ": the file changed while it was read",
			Remedy:  "write it under another name and mv it into place",
		}
	}
	return body, nil
}

func (f *file) notMetrics(b *raw.Batch) *source.Error {
	if b.HasCRLF() {
		return &source.Error{Failure: source.NotMetrics, Cause: f.path + ": " + crlf, Remedy: `convert it: sed -i 's/\r$//' ` + f.path}
	}
	return &source.Error{
		Failure: source.NotMetrics,
		Cause:   f.path + `: no line is a metric; it begins "` + firstLine(b.Body) + `"`,
		Remedy:  "point the source at a saved /metrics page of the exporter",
	}
}

func (f *file) tooLarge(size int64) *source.Error {
	return tooLarge(f.path, "the file", f.max, size)
}

func (f *file) irregular(mode fs.FileMode) *source.Error {
	what := "is not a regular file"
	if mode.IsDir() {
		what = "is a directory"
	}
	return &source.Error{
		Failure: source.Unreachable,
		Cause:   f.path + ": " + what,
		Remedy:  "point the source at a file that contains a saved /metrics page",
	}
}

// explain returns the error of the file system with a remedy.
func (f *file) explain(err error) *source.Error {
	if errors.Is(err, context.Canceled) {
		return cancelled(f.path)
	}
	e := &source.Error{
		Failure: source.Broken,
		Remedy:  "check that it can be read: cat " + f.path,
		Err:     err,
	}
	reason := err.Error()
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		reason = pe.Err.Error() // the cause already begins with the path
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		e.Failure = source.Timeout
	case errors.Is(err, fs.ErrNotExist):
		e.Failure = source.Unreachable
		e.Remedy = "check the path; the URL of an exporter begins with http://"
	case errors.Is(err, fs.ErrPermission):
		e.Failure = source.Unreachable
		e.Remedy = "let the user that runs kpulse-proxy read it: ls -l " + f.path
	}
	e.Cause = f.path + ": " + reason
	return e
}
