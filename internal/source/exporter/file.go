package exporter

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// file is an upstream that is a saved exposition.
type file struct {
	path string
	max  int64 // bytes
}

func (f *file) name() string { return f.path }

func (f *file) close() {}

func (f *file) fetch(ctx context.Context, b *raw.Batch) error {
	if err := ctx.Err(); err != nil {
		return f.explain(err)
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
	switch {
	case err != nil:
		return nil, f.explain(err)
	case info.IsDir():
		return nil, failed(source.Unreachable, nil, f.path+": is a directory", nameAPage)
	case !info.Mode().IsRegular():
		return nil, failed(source.Unreachable, nil, f.path+": is not a regular file", nameAPage)
	}
	h, err := os.Open(f.path)
	if err != nil {
		return nil, f.explain(err)
	}
	defer h.Close()
	before, err := h.Stat()
	if err != nil {
		return nil, f.explain(err)
	}
	if before.Size() > f.max {
		return nil, tooLarge(f.path, "the file", f.max, before.Size())
	}
	return f.whole(h, before, buf)
}

// whole returns what h holds, unless it changes after before: a torn body would lack devices that
// exist. The body has capacity for one more byte.
func (f *file) whole(h *os.File, before fs.FileInfo, buf []byte) ([]byte, error) {
	size := int(before.Size())
	buf = slices.Grow(buf[:0], size+1)[:size]
	_, err := io.ReadFull(h, buf)
	after, statErr := h.Stat()
	if err == nil {
		err = statErr
	}
	short := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	switch {
	case err != nil && !short:
		return nil, f.explain(err)
	case short || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()):
		return nil, failed(source.Truncated, nil, f.path+": the file changed while it was read", "write it under another name and mv it into place")
	}
	return buf, nil
}

// nameAPage is the remedy for a source that is no saved exposition.
const nameAPage = "point the source at a file that contains a saved /metrics page"

func (f *file) notMetrics(b *raw.Batch) *source.Error {
	if b.HasCRLF() {
		return failed(source.NotMetrics, nil, f.path+": "+crlf, `convert it: sed -i 's/\r$//' `+f.path)
	}
	return failed(source.NotMetrics, nil, f.path+`: no line is a metric; it begins "`+firstLine(b.Body)+`"`, nameAPage)
}

// explain returns the error of the file system with a remedy.
func (f *file) explain(err error) *source.Error {
	reason := err.Error()
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		reason = pe.Err.Error() // the cause already begins with the path
	}
	failure, remedy := source.Broken, "check that it can be read: cat "+f.path
	switch {
	case errors.Is(err, context.Canceled):
		return cancelled(f.path)
	case errors.Is(err, context.DeadlineExceeded):
		failure = source.Timeout
	case errors.Is(err, fs.ErrNotExist):
		failure, remedy = source.Unreachable, "check the path; the URL of an exporter begins with http://"
	case errors.Is(err, fs.ErrPermission):
		failure, remedy = source.Unreachable, "let the user that runs kpulse-proxy read it: ls -l "+f.path
	}
	return failed(failure, err, f.path+": "+reason, remedy)
}
