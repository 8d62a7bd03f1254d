package expose

import (
	"io"
	"sync"
)

// maxIdle is how many buffers wait for their next scrape. A scrape holds one
// only while it writes, so more are in use only behind slow clients. A buffer
// takes about 320 KiB, and 64 KiB more once it has packed.
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
	packer    *deflater // nil before the first use
	packs     bool      // it goes into packer
}

// take returns a buffer that writes to w, gzipped if so asked. The caller must
// call end and finish, and then give it back.
func (l *buffers) take(w io.Writer, gzipped bool) *buffer {
	b := l.pop()
	b.rendering.reset(w)
	b.packs = gzipped
	if gzipped {
		if b.packer == nil {
			b.packer = new(deflater)
		}
		b.packer.reset(w)
		b.rendering.w = b.packer
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
	return &buffer{rendering: rendering{sink: sink{buf: make([]byte, 0, chunk+slack)}}}
}

// give takes b back. It holds on to nothing of the client's.
func (l *buffers) give(b *buffer) {
	b.rendering.reset(nil)
	if b.packer != nil {
		b.packer.w = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.idle) < maxIdle {
		l.idle = append(l.idle, b)
	}
}

// end says that all is gathered. It returns how long the answer is, if none of it
// was written yet.
func (b *buffer) end() (length int, whole bool) {
	if !b.packs {
		return b.rendering.gathered(), !b.rendering.begun
	}
	b.rendering.flush()
	b.packer.close()
	return b.packer.end, !b.packer.begun
}

// finish writes what is still gathered. After an error, which is the client's,
// nothing more is written.
func (b *buffer) finish() {
	if b.packs {
		b.packer.flush()
	} else {
		b.rendering.flush()
	}
}
