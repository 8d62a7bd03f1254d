package fake

import (
	"fmt"
	"io"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// stdioBuffer is glibc's buffer size for output to a pipe, in bytes.
const stdioBuffer = 4096

// stdout collects what is printed until it is flushed, and then writes it in
// pieces.
type stdout struct {
	w       io.Writer
	pending []byte
	chunk   int
	between time.Duration
}

func newOutput(w io.Writer, pace dcgmtest.Pace) *stdout {
	o := &stdout{w: w}
	o.setPace(pace)
	return o
}

func (o *stdout) setPace(pace dcgmtest.Pace) {
	o.chunk = pace.Chunk
	if o.chunk <= 0 {
		o.chunk = stdioBuffer
	}
	o.between = time.Duration(pace.ChunkMS) * time.Millisecond
}

func (o *stdout) printf(format string, args ...any) {
	o.pending = fmt.Appendf(o.pending, format, args...)
}

// flush writes all that is pending.
func (o *stdout) flush() {
	for left := o.pending; len(left) > 0; {
		n := min(o.chunk, len(left))
		_, _ = o.w.Write(left[:n]) // a broken pipe ends the process by its signal
		if left = left[n:]; len(left) > 0 && o.between > 0 {
			time.Sleep(o.between)
		}
	}
	o.pending = o.pending[:0]
}
