package expose

import (
	"bufio"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// packedChunk is how many gzipped bytes are gathered before they are written;
// the compressor hands over some 250 at a time.
const packedChunk = 32 << 10

// maxIdle is how many buffers wait for their next scrape. A scrape holds one
// only while it writes, so more are in use only behind slow clients. A buffer
// that has gzipped takes about 600 KiB.
const maxIdle = 8

// buffers is the memory that scrapes write through. Unlike a sync.Pool it
// survives garbage collections, which come about as often as scrapes.
type buffers struct {
	mu   sync.Mutex
	idle []*buffer
}

// buffer is the memory of one scrape.
type buffer struct {
	sink   sink
	gzip   *gzip.Writer  // nil before the first use
	packed *bufio.Writer // gathers what gzip writes
}

// take returns a buffer that writes to w, gzipped if so asked. The caller must
// call finish and then give it back.
func (l *buffers) take(w io.Writer, gzipped bool) *buffer {
	b := l.pop()
	b.sink.reset(w)
	if gzipped {
		b.zip(w)
	}
	return b
}

// pop returns a buffer from the idle ones, or a new one.
func (l *buffers) pop() *buffer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.idle); n > 0 {
		b := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return b
	}
	return &buffer{sink: sink{buf: make([]byte, 0, chunk+slack)}}
}

// give takes b back. It holds on to nothing of the client's.
func (l *buffers) give(b *buffer) {
	b.sink.reset(nil)
	if b.packed != nil {
		b.packed.Reset(io.Discard)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.idle) < maxIdle {
		l.idle = append(l.idle, b)
	}
}

// zip puts the compressor between b's sink and w.
func (b *buffer) zip(w io.Writer) {
	if b.gzip == nil {
		b.packed = bufio.NewWriterSize(w, packedChunk)
		b.gzip, _ = gzip.NewWriterLevel(b.packed, gzip.BestSpeed) // a valid level
	}
	b.packed.Reset(w)
	b.gzip.Reset(b.packed)
	b.sink.w = b.gzip
}

// finish writes what is still gathered. After an error, which is the client's,
// nothing more is written.
func (b *buffer) finish() {
	b.sink.flush()
	if b.sink.err != nil || b.sink.w != b.gzip {
		return
	}
	if b.sink.err = b.gzip.Close(); b.sink.err == nil {
		b.sink.err = b.packed.Flush()
	}
}
