package exporter

import (
	"bytes"
	"errors"
	"io"
	"runtime"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// firstBuffer is the capacity for the first body if its length is unknown.
	firstBuffer = 64 << 10
	// keepBuffer and shrinkFactor limit the memory that is kept: one huge body
	// must not pin its size in every reused Batch.
	keepBuffer   = 1 << 20
	shrinkFactor = 8
	// collectFrom is the length of a first body after which garbage is collected. That of one exporter is shorter, so
	// that a proxy of many collects nothing.
	collectFrom = 4 << 20
)

// errTooLarge reports a body over the limit, and errNoMemory one for which --memory.limit leaves no room.
var (
	errTooLarge = errors.New("body is over the limit")
	errNoMemory = errors.New("no room for the body")
)

// bodyReader reads whole bodies into reused memory.
type bodyReader struct {
	max    int64 // bytes
	memory *source.Memory
	last   int64 // length of the last body, 0 before the first

	// discarded is the memory of a body that was too large, kept while bodies are:
	// an upstream that exceeds the limit at each scrape must not leave that much
	// garbage each time.
	discarded []byte
}

// read reads r to its end, at most max+1 bytes, into buf's memory if that
// suffices. size is the expected length, -1 if unknown: then it is a little more than that of the
// last body. With an error, errTooLarge or r's, it also returns what it has read.
func (in *bodyReader) read(buf []byte, r io.Reader, size int64) ([]byte, error) {
	first, spare := size < 0 && in.last == 0, int64(0)
	switch {
	case first:
		size = firstBuffer
	case size < 0:
		size, spare = in.last, in.last/16
	}
	want := int(min(size, in.max) + bytes.MinRead + 1)
	switch have := cap(buf); {
	case in.discarded != nil:
		buf = in.discarded
	case have < want || have > keepBuffer && have/shrinkFactor > want:
		if buf = source.Make[byte](in.memory, want+int(spare), func() { buf = nil }); buf == nil {
			return nil, errNoMemory
		}
	}
	body, err := in.readAll(buf[:0], r)
	switch {
	case int64(len(body)) > in.max:
		in.discarded = body
		return body, errTooLarge
	case err == nil:
		in.last, in.discarded = int64(len(body)), nil
		if first && len(body) > collectFrom {
			// The smaller buffers, and then the last one, may each take twice the body's length.
			runtime.GC()
			if fits := source.Make[byte](in.memory, len(body)+len(body)/16+bytes.MinRead+1, func() {}); fits != nil {
				body = append(fits, body...)
				runtime.GC()
			}
		}
	}
	return body, err
}

// readAll appends r to buf, up to max+1 bytes, and leaves at least a byte of capacity.
func (in *bodyReader) readAll(buf []byte, r io.Reader) ([]byte, error) {
	for most := in.max + 1; ; {
		if cap(buf)-len(buf) < bytes.MinRead {
			grown := source.Make[byte](in.memory, 2*cap(buf)+bytes.MinRead, func() { buf, in.discarded = nil, nil })
			if grown == nil {
				return nil, errNoMemory
			}
			buf = append(grown, buf...)
		}
		space := buf[len(buf):cap(buf)]
		if left := most - int64(len(buf)); left < int64(len(space)) {
			space = space[:left]
		}
		n, err := r.Read(space)
		switch buf = buf[:len(buf)+n]; {
		case err == io.EOF || err == nil && int64(len(buf)) == most:
			return buf, nil
		case err != nil:
			return buf, err
		}
	}
}
