package expose

import "io"

const (
	// chunk is how many bytes are gathered before they are written: few system
	// calls, and still in the processor's cache.
	chunk = 64 << 10
	// slack is room beyond chunk for what makes it full.
	slack = straight
	// straight is the length from which bytes that lie in memory anyway are
	// written from there. Shorter ones are gathered: net/http would make a chunk
	// of its own of each 2 KiB.
	straight = 16 << 10
)

// sink gathers an exposition and writes it in large pieces. After an error it
// takes everything and writes nothing.
type sink struct {
	w   io.Writer
	buf []byte
	err error
}

// flush writes what was gathered.
func (s *sink) flush() {
	s.write(s.buf)
	s.buf = s.buf[:0]
}

func (s *sink) flushIfFull() {
	if len(s.buf) >= chunk {
		s.flush()
	}
}

// pass writes b or gathers it.
func (s *sink) pass(b []byte) {
	if len(b) >= straight {
		s.flush()
		s.write(b)
		return
	}
	s.buf = append(s.buf, b...)
	s.flushIfFull()
}

func (s *sink) write(b []byte) {
	if s.err == nil && len(b) > 0 {
		_, s.err = s.w.Write(b)
	}
}
