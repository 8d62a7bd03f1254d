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
	path   string
	max    int64 // bytes
	memory *source.Memory
}

func (f *file) name() string { return f.path }

func (f *file) close() {}

func (f *file) fetch(ctx context.Context, b *raw.Batch) error {
	if err := ctx.Err(); err != nil {
		return f.explain(err)
	}
	info, err := os.Stat(f.path) // before opening: opening a named pipe waits for its writer
	switch {
	case err != nil:
		return f.explain(err)
	case !info.Mode().IsRegular():
		return failed(source.Unreachable, nil, f.path+": is not a regular file", nameAPage)
	case info.Size() > f.max:
		return tooLarge(f.path, "the file", f.max, info.Size())
	}
	h, err := os.Open(f.path)
	if err != nil {
		return f.explain(err)
	}
	defer h.Close()
	in := bodyReader{max: f.max, memory: f.memory}
	body, err := in.read(b.Body, h, info.Size())
	if errors.Is(err, errNoMemory) {
		b.Body, b.Samples = nil, nil
		return noMemory(f.path, f.memory)
	}
	if err != nil {
		return f.explain(err)
	}
	b.Body = body
	return nil
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
	case errors.Is(err, context.DeadlineExceeded):
		failure = source.Timeout
	case errors.Is(err, fs.ErrNotExist):
		failure, remedy = source.Unreachable, "check the path; the URL of an exporter begins with http://"
	case errors.Is(err, fs.ErrPermission):
		failure, remedy = source.Unreachable, "let the user that runs kpulse-proxy read it: ls -l "+f.path
	}
	return failed(failure, err, f.path+": "+reason, remedy)
}
