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
func (in *bodyReader) read(buf []byte, r io.Reader, size int64) (body []byte, err error) {
	first := size < 0 && in.last == 0
	if body = in.begin(buf, size); body == nil {
		return nil, errNoMemory
	}
	for most := in.max + 1; err == nil && int64(len(body)) < most; {
		if cap(body)-len(body) < bytes.MinRead {
			grown := source.Make[byte](in.memory, cap(body), 2*cap(body)+bytes.MinRead, func() { body, in.discarded = nil, nil })
			if grown == nil {
				return nil, errNoMemory
			}
			body = append(grown, body...)
		}
		space := body[len(body):min(int64(cap(body)), most)]
		n := 0
		n, err = r.Read(space)
		body = body[:len(body)+n]
	}
	switch {
	case int64(len(body)) > in.max:
		in.discarded = body
		return body, errTooLarge
	case err != io.EOF: // as readers return it
		return body, err
	}
	in.last, in.discarded = int64(len(body)), nil
	if first && len(body) > collectFrom {
		// The smaller buffers, and then the last one, may each take twice the body's length.
		runtime.GC()
		if fits := source.Make[byte](in.memory, 0, len(body)+len(body)/16+bytes.MinRead+1, func() {}); fits != nil {
			body = append(fits, body...)
			runtime.GC()
		}
	}
	return body, nil
}

// begin returns the memory for a body, nil if there is no room.
func (in *bodyReader) begin(buf []byte, size int64) []byte {
	spare := int64(0)
	switch {
	case size < 0 && in.last == 0:
		size = firstBuffer
	case size < 0:
		size, spare = in.last, in.last/16
	}
	want := int(min(size, in.max) + bytes.MinRead + 1)
	switch have := cap(buf); {
	case in.discarded != nil:
		buf = in.discarded
	case have < want || have > keepBuffer && have/shrinkFactor > want:
		if buf = source.Make[byte](in.memory, have, want+int(spare), func() { buf = nil }); buf == nil {
			return nil
		}
	}
	return buf[:0]
}
