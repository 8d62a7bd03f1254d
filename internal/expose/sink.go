package expose

import "io"

const (
	// chunk is how many bytes are gathered before they are written. The whole
	// answer for eight GPUs fits, and then takes one write.
	chunk = 320 << 10
	// slack is room beyond chunk for what makes it full.
	slack = 4 << 10
	// straight is the length from which bytes that lie in memory anyway are
	// written from there. Shorter ones are gathered: net/http would make a chunk
	// of its own of each 2 KiB.
	straight = 64 << 10
)

// sink gathers an exposition and writes it in large pieces. After an error it
// takes everything and writes nothing.
type sink struct {
	w     io.Writer
	ahead [][]byte // what goes out in front of buf, from where it lies
	buf   []byte
	begun bool // something was written
	err   error
}

// reset readies s for another exposition, to w.
func (s *sink) reset(w io.Writer) {
	clear(s.ahead) // let go of the snapshot's bytes
	*s = sink{w: w, ahead: s.ahead[:0], buf: s.buf[:0]}
}

// gathered returns how many bytes wait to be written. As long as nothing was
// written, and once all has been said, that is the length of the exposition.
func (s *sink) gathered() int {
	n := len(s.buf)
	for _, b := range s.ahead {
		n += len(b)
	}
	return n
}

// flush writes what was gathered.
func (s *sink) flush() {
	for _, b := range s.ahead {
		s.write(b)
	}
	s.write(s.buf)
	s.ahead, s.buf = s.ahead[:0], s.buf[:0]
}

func (s *sink) flushIfFull() {
	if len(s.buf) >= chunk {
		s.flush()
	}
}

// pass takes b, which must stay as it is until the exposition is written.
func (s *sink) pass(b []byte) {
	if len(b) < straight {
		s.buf = append(s.buf, b...)
		s.flushIfFull()
		return
	}
	if len(s.buf) > 0 {
		s.flush()
	}
	s.ahead = append(s.ahead, b)
}

// Write gathers b, of which it keeps no reference. It implements io.Writer.
func (s *sink) Write(b []byte) (int, error) {
	s.buf = append(s.buf, b...)
	s.flushIfFull()
	return len(b), s.err
}

func (s *sink) write(b []byte) {
	if s.err == nil && len(b) > 0 {
		s.begun = true
		_, s.err = s.w.Write(b)
	}
}
