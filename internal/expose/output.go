package expose

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// chunk is how many bytes are gathered before they are written. The whole answer for eight
	// GPUs fits and takes one write.
	chunk = 320 << 10
	// packedChunk is that for an answer to compress: about a block of deflate.
	packedChunk = 64 << 10
	// slack is capacity beyond these for the line that fills them.
	slack = 4 << 10
	// direct is the length in bytes from which parts are written without a copy. Shorter ones
	// are gathered: net/http would make a chunk of each 2 KiB.
	direct = 64 << 10
	// maxIdle is how many outputs are kept for the next scrapes; only slow clients keep more in
	// use. An output takes up to 320 KiB, and about 900 KiB more once it has compressed.
	maxIdle = 8
	// maxKept is the capacity in bytes up to which an output is kept. Text that is rendered for a
	// source is gathered whole, and that of 112 MIG instances fits.
	maxKept = 4 << 20
)

// buffer gathers bytes and writes them in large pieces. After an error it discards
// everything.
type buffer struct {
	w     io.Writer
	ahead [][]byte // written before buf, without a copy
	buf   []byte
	most  int  // bytes to gather, 0 for chunk
	begun bool // something was written
	err   error
}

// reset prepares b for another exposition, to w, in pieces of most bytes.
func (b *buffer) reset(w io.Writer, most int) {
	clear(b.ahead)
	*b = buffer{w: w, ahead: b.ahead[:0], buf: b.buf[:0], most: most}
}

// buffered returns how many bytes wait to be written. Once everything was added, and before
// anything is written, this is the length of the exposition.
func (b *buffer) buffered() int {
	n := len(b.buf)
	for _, part := range b.ahead {
		n += len(part)
	}
	return n
}

// flush writes the gathered bytes.
func (b *buffer) flush() {
	b.ahead = append(b.ahead, b.buf)
	for _, part := range b.ahead {
		if b.err == nil && len(part) > 0 {
			b.begun = true
			_, b.err = b.w.Write(part)
		}
	}
	clear(b.ahead) // releases the snapshots' bytes
	b.ahead, b.buf = b.ahead[:0], b.buf[:0]
}

func (b *buffer) flushIfFull() {
	if len(b.buf) >= cmp.Or(b.most, chunk) {
		b.flush()
	}
}

// pass adds part, which must not change until the exposition is written.
func (b *buffer) pass(part []byte) {
	if len(part) < direct {
		b.buf = append(b.buf, part...)
		b.flushIfFull()
		return
	}
	if len(b.buf) > 0 {
		b.flush()
	}
	b.ahead = append(b.ahead, part)
}

// Write adds part and keeps no reference to it. It implements io.Writer.
func (b *buffer) Write(part []byte) (int, error) {
	b.buf = append(b.buf, part...)
	b.flushIfFull()
	return len(part), b.err
}

// output is an exposition being written, with all its memory. The next scrape reuses it and
// allocates nothing.
type output struct {
	buffer
	values   []float64 // of one row, or source, in a family
	sources  texts     // the labels of each reading's source
	switches []canonical.SXIDCount
	faults   []canonical.SwitchFault
	further  []canonical.Families // of each reading, nil for none
	merger   merger               // of the lines of several upstreams

	packer *gzip.Writer // from buffer to packed, nil before its first use
	packed buffer
	last   *buffer // writes to the client: packed if the answer is compressed, else buffer
}

// scratch returns n values, which are undefined until they are set.
func (o *output) scratch(n int) []float64 {
	o.values = slices.Grow(o.values[:0], n)[:n]
	return o.values
}

// end marks the end of the exposition. It returns how many bytes of the answer remain for last
// to write, and whether these are the whole answer.
func (o *output) end() (length int, whole bool) {
	if o.last == &o.packed {
		o.flush()
		_ = o.packer.Close() // a write error cannot be reported
	}
	return o.last.buffered(), !o.last.begun
}

// outputs is a pool. Unlike a sync.Pool, it keeps them over garbage collections, which are about as
// frequent as scrapes.
type outputs struct {
	mu   sync.Mutex
	idle []*output
}

// get returns an output that writes to w, compressed if gzipped is set. The caller must call
// end and last.flush, and then put it back.
func (l *outputs) get(w io.Writer, gzipped bool) *output {
	l.mu.Lock()
	defer l.mu.Unlock()
	var o *output
	if n := len(l.idle); n > 0 {
		o, l.idle = l.idle[n-1], l.idle[:n-1]
	} else {
		o = &output{}
	}
	most := chunk
	o.last = &o.buffer
	if gzipped {
		if o.packer == nil {
			o.packer, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
		}
		o.packed.reset(w, chunk)
		o.packer.Reset(&o.packed)
		o.last, w, most = &o.packed, o.packer, packedChunk
	}
	o.buf = slices.Grow(o.buf, most+slack)
	o.reset(w, most)
	return o
}

// put returns o to the pool, without its references to the client's connection.
func (l *outputs) put(o *output) {
	if o.merger.full { // others need its room
		return
	}
	o.reset(nil, 0)
	o.packed.reset(nil, 0)
	room := o.merger.reset()
	clear(o.further)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.idle {
		if room > maxKept { // one is enough for scrapes one after the other
			l.idle[i].merger = merger{}
		}
	}
	if len(l.idle) < maxIdle && cap(o.buf)+cap(o.merger.text) <= maxKept {
		l.idle = append(l.idle, o)
	}
}

// Writer renders the kpulse_ series without a server, for one goroutine. It allocates nothing while
// devices and allocations stay the same.
type Writer struct {
	renderer *renderer
	kept     atomic.Pointer[layout]
	output   output
	readings []outcome
}

// NewWriter returns a Writer of series in a form.
func NewWriter(f Form) *Writer { return &Writer{renderer: newRenderer(f)} }

// Write writes all series of snapshots, further families and kpulse_ families, to out in large
// pieces. There is one snapshot for each source, always in the same order; none is kept. The
// error is that of out.
func (w *Writer) Write(out io.Writer, snapshots ...*canonical.Snapshot) error {
	w.output.reset(out, chunk)
	w.readings = w.readings[:0]
	for _, s := range snapshots {
		w.readings = append(w.readings, outcome{snapshot: s, source: &s.Source})
	}
	w.output.writeFurther(&w.kept, w.readings, true)
	w.renderer.write(&w.output, &w.kept, w.readings)
	w.output.flush()
	clear(w.readings)
	err := w.output.err
	w.output.reset(nil, 0)
	return err
}

// acceptsGzip reports whether a client with these Accept-Encoding headers names gzip, and not with
// a weight of 0. Every client accepts an answer without encoding.
func acceptsGzip(headers []string) bool {
	for _, header := range headers {
		for part := range strings.SplitSeq(header, ",") {
			coding, weight, weighted := strings.Cut(strings.ToLower(part), ";")
			if coding = strings.TrimSpace(coding); coding == "gzip" || coding == "x-gzip" {
				q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
				return !weighted || err == nil && q > 0
			}
		}
	}
	return false
}
