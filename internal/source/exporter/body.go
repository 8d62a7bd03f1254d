package exporter

import (
	"errors"
	"io"
	"slices"
)

const (
	// firstBuffer is the capacity for the first body if its length is unknown.
	firstBuffer = 64 << 10
	// keepBuffer and shrinkFactor limit the memory that is kept: one huge body
	// must not pin its size in every reused Batch.
	keepBuffer   = 1 << 20
	shrinkFactor = 8
)

// errTooLarge reports a body over the limit.
var errTooLarge = errors.New("body is over the limit")

// bodyReader reads whole bodies into reused memory.
type bodyReader struct {
	max  int64 // bytes
	last int   // length of the last body, 0 before the first

	// discarded is the memory of a body that was too large, kept while bodies are:
	// an upstream that exceeds the limit at each scrape must not leave that much
	// garbage each time.
	discarded []byte
}

// read reads r to its end, at most max+1 bytes, into buf's memory if that
// suffices. size is the expected length, -1 if unknown. With an error,
// errTooLarge or r's, it also returns what it has read.
func (in *bodyReader) read(buf []byte, r io.Reader, size int64) ([]byte, error) {
	buf = in.sized(buf, size)
	for {
		if len(buf) == cap(buf) {
			buf = in.grown(buf)
		}
		n, err := r.Read(buf[len(buf):min(int64(cap(buf)), in.max+1)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > in.max:
			in.discarded = buf[:0]
			return buf, errTooLarge
		case err == io.EOF:
			in.last, in.discarded = len(buf), nil
			return slices.Grow(buf, 1), nil
		case err != nil:
			return buf, err
		}
	}
}

// grown returns buf with twice the capacity. It is called rarely: the bodies
// after the first fit. append would grow a large body by only a quarter at a
// time.
func (in *bodyReader) grown(buf []byte) []byte {
	if cap(in.discarded) > cap(buf) {
		buf, in.discarded = append(in.discarded[:0], buf...), nil
		return buf
	}
	n := int64(len(buf))
	more := make([]byte, n, min(max(2*n, firstBuffer), in.max+2))
	copy(more, buf)
	return more
}

// sized returns buf emptied, or new memory if buf is too small or far too large
// for the next body. A body of unknown length is expected to be a little longer
// than the last one.
func (in *bodyReader) sized(buf []byte, size int64) []byte {
	want := int64(in.last) + int64(in.last)/16 + 512
	if in.last == 0 {
		want = firstBuffer
	}
	if size >= 0 {
		want = size + 1
	}
	want = min(want, in.max+2)
	have := int64(cap(buf))
	if have < want || have > keepBuffer && have/shrinkFactor > want {
		return make([]byte, 0, want)
	}
	return buf[:0]
}
