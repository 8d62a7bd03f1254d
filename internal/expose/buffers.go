package expose

import (
	"io"
	"sync"
)

// maxIdle is how many buffers are kept for the next scrapes. A scrape holds one
// only while it writes, so more are in use only behind slow clients. A buffer
// takes 320 KiB, and about 900 KiB more once it has compressed.
const maxIdle = 8

// buffers is the memory that scrapes write through. Unlike a sync.Pool it
// survives garbage collections, which come about as often as scrapes.
type buffers struct {
	mu   sync.Mutex
	idle []*buffer
}

// buffer is the memory of one scrape.
type buffer struct {
	rendering rendering
	packer    packer
	gzipped   bool // the rendering goes through packer
}

// take returns a buffer that writes to w, gzipped if so asked. The caller must
// call end and finish, and then give it back.
func (l *buffers) take(w io.Writer, gzipped bool) *buffer {
	b := l.pop()
	b.gzipped = gzipped
	if gzipped {
		b.packer.reset(w)
		w = b.packer.gzip
	}
	b.rendering.reset(w)
	return b
}

// pop returns an idle buffer, or a new one.
func (l *buffers) pop() *buffer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.idle); n > 0 {
		b := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return b
	}
	return &buffer{rendering: rendering{sink: sink{buf: make([]byte, 0, chunk+slack)}}}
}

// give takes b back. It keeps no reference to the client's connection.
func (l *buffers) give(b *buffer) {
	b.rendering.reset(nil)
	b.packer.out.reset(nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.idle) < maxIdle {
		l.idle = append(l.idle, b)
	}
}

// last returns the sink that writes to the client.
func (b *buffer) last() *sink {
	if b.gzipped {
		return &b.packer.out
	}
	return &b.rendering.sink
}

// end marks the end of the exposition. It returns how long the answer is, if none
// of it was written yet.
func (b *buffer) end() (length int, whole bool) {
	if b.gzipped {
		b.rendering.flush()
		b.packer.gzip.Close() // an error is the client's
	}
	return b.last().gathered(), !b.last().begun
}

// finish writes what is still gathered. After an error, which is the client's,
// nothing more is written.
func (b *buffer) finish() { b.last().flush() }
