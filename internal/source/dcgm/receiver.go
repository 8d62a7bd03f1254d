package dcgm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dmon"
)

const (
	// lineBuffer is the size of the buffer for samples of many GPUs: a row takes over a kilobyte. A longer line ends a child.
	lineBuffer = 64 << 10
	// dmon prints a sample at once, so after a short silence more rows are unlikely. The silence of the first sample is
	// longer, because the number of rows is not known yet.
	leastSilence, mostSilence = 5 * time.Millisecond, 50 * time.Millisecond
	firstSilence              = time.Second
	// startLimit is how long the first row may take: dmon prints the header, and then the host engine sets up its
	// watches and reads every GPU once. noiseLimit is the same for a child that prints something else than a header.
	startLimit, noiseLimit = 30 * time.Second, 5 * time.Second
	// A running child hangs if it prints no row for hangTimes the duration of a sample, and at least leastHang. The
	// pipeline calls a stream stale much sooner, but killing a child that is only slow does not make it faster.
	hangTimes = 10
	leastHang = 5 * time.Second
	// mostInterval limits the assumed duration of a sample, which limits the time to detect a hanging child to a
	// minute. For periods over half of it, the limit is two periods.
	mostInterval = 6 * time.Second
	// mostNoise is how many bytes without a row end a child.
	mostNoise = 1 << 20
)

// errHangs is the error of a running child that prints no rows.
type errHangs struct{ silent time.Duration }

func (e errHangs) Error() string {
	return fmt.Sprintf("no row for %s", e.silent.Round(100*time.Millisecond))
}

// errNoise ends a child that prints something, but no rows.
var errNoise = errors.New("no rows")

// pipe is the reading end of a child's stdout: an *os.File, except in tests.
type pipe interface {
	io.Reader
	SetReadDeadline(t time.Time) error
}

// receiver turns the output of one child into ticks. The parser finds the end of a sample only when it sees the next
// one. The receiver pushes a sample earlier, when all its rows are there or have had time to arrive; later rows are a
// tick of their own. It belongs to one goroutine.
type receiver struct {
	origin
	period   time.Duration
	ring     *ring
	delivers func() // called with the first row

	parser   dmon.Parser
	entities []dmon.Entity // that had rows, only ever added to
	tick     *tick         // being filled
	pace     pace
	output   output
}

// pace is when the rows of a child arrive.
type pace struct {
	lastRow  time.Time     // the child's start before the first
	first    time.Time     // the first row of the current sample
	samples  uint64        // begun
	interval time.Duration // between samples, smoothed; 0 before the second
	expect   int           // the number of rows of the last sample, 0 before its end
}

// output is the text of a child that is not parsed yet, or is not a row.
type output struct {
	buf    []byte
	n      int  // bytes of an unfinished line at the beginning of buf
	others tail // lines that are not rows
	noise  int  // bytes of these since the last row
}

// run reads p until it ends, which returns io.EOF, or is closed, or hangs.
func (r *receiver) run(p pipe) error {
	r.parser.Names = r
	r.output.buf = make([]byte, lineBuffer)
	r.pace.lastRow = time.Now()
	r.open()
	defer func() { r.ring.recycle(r.tick) }()
	late := false
	for {
		if err := p.SetReadDeadline(r.deadline(late)); err != nil {
			return err
		}
		n, err := p.Read(r.output.buf[r.output.n:])
		r.ring.counts[r.stream].Bytes.Add(uint64(n))
		now := time.Now()
		r.scan(n, now)
		switch {
		case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			return err // an open tick may lack rows, and is dropped
		case r.output.noise > mostNoise || r.output.n == lineBuffer:
			return errNoise
		case r.pending() && !now.Before(r.pushTime()):
			r.push()
		}
		// If we were delayed ourselves, the overdue rows are in the pipe: read once more.
		silent := now.Sub(r.pace.lastRow)
		overdue := silent >= r.limit()
		if overdue && late {
			if r.noisy() {
				return errNoise
			}
			return errHangs{silent}
		}
		late = overdue
	}
}

// noisy reports whether the child has printed something, but neither a row nor a header.
func (r *receiver) noisy() bool {
	return r.pace.samples == 0 && r.output.noise+r.output.n > 0 && !r.parser.Reads()
}

// limit returns how long after lastRow the child counts as hanging.
func (r *receiver) limit() time.Duration {
	hang := max(hangTimes*max(r.period, r.pace.interval), leastHang)
	switch {
	case r.noisy():
		return noiseLimit
	case r.pace.samples < 2: // the duration of a sample is not known yet
		return max(startLimit, hang)
	}
	return hang
}

// pending reports whether rows wait to be pushed.
func (r *receiver) pending() bool { return r.tick.rows > 0 }

// pushTime returns when to push pending rows although some are missing: after a silence, and not before three quarters
// of the time between samples.
func (r *receiver) pushTime() time.Time {
	if r.pace.expect == 0 {
		return r.pace.lastRow.Add(max(r.period*3/4, firstSilence))
	}
	silent := r.pace.lastRow.Add(min(max(r.period/4, leastSilence), mostSilence))
	if due := r.pace.first.Add(r.pace.interval * 3 / 4); due.After(silent) {
		return due
	}
	return silent
}

// deadline returns when to stop waiting for more bytes. It is never in the past, which would prevent reading bytes that
// are already in the pipe.
func (r *receiver) deadline(late bool) time.Time {
	soon := time.Now().Add(leastSilence)
	until := r.pace.lastRow.Add(r.limit())
	switch {
	case r.pending():
		until = r.pushTime()
	case late:
		return soon
	}
	if until.Before(soon) {
		return soon
	}
	return until
}

// scan reads n more bytes after those of the unfinished line.
func (r *receiver) scan(n int, now time.Time) {
	o := &r.output
	text := o.buf[:o.n+n]
	for {
		end := bytes.IndexByte(text, '\n') + 1
		if end == 0 {
			break
		}
		r.line(text[:end], now)
		text = text[end:]
	}
	o.n = copy(o.buf, text)
	if o.n == 0 && r.pace.expect > 0 && r.parser.Rows() >= r.pace.expect && r.pending() {
		r.push()
	}
}

// other keeps a line that is not a row.
func (o *output) other(line []byte) {
	o.noise += len(line)
	_, _ = o.others.Write(line[:min(len(line), tailSize/4)])
}

// text returns the end of what was printed and is not a row.
func (o *output) text() string { return o.others.String() + string(o.buf[:min(o.n, tailSize/4)]) }

// line reads one line.
func (r *receiver) line(line []byte, now time.Time) {
	rows, skipped := r.parser.Rows(), r.tick.batch.Skipped
	if !r.parser.Line(&r.tick.batch, line) { // it begins the next sample
		if r.pending() {
			r.push()
		}
		r.pace.expect = rows
		rows, skipped = 0, r.tick.batch.Skipped
		r.parser.Line(&r.tick.batch, line)
	}
	switch {
	case r.parser.Rows() > rows:
		if rows == 0 {
			r.begin(now)
		}
		r.tick.rows++
		r.pace.lastRow = now
		r.output.noise = 0
	case r.tick.batch.Skipped > skipped, bytes.HasPrefix(line, []byte{'#'}) && !r.parser.Reads():
		r.output.other(line)
	}
}

// Column implements dmon.Names: the id of a field is its index.
func (r *receiver) Column(name []byte) (id uint32, ok bool) {
	field := FieldOf(name)
	return uint32(field), field >= 0
}

// Entity implements dmon.Names: the id of an entity is its index.
func (r *receiver) Entity(n int, e dmon.Entity) uint32 {
	if n == len(r.entities) {
		r.entities = append(r.entities, e)
	}
	return uint32(n)
}

// open begins a tick.
func (r *receiver) open() {
	r.tick = r.ring.blank()
	r.tick.origin = r.origin
}

// begin begins a sample, whose first row came at now.
func (r *receiver) begin(now time.Time) {
	p := &r.pace
	r.ring.counts[r.stream].Tick(now)
	if p.samples++; p.samples == 1 {
		r.delivers()
	} else {
		lasted := min(now.Sub(p.first), max(mostInterval, 2*r.period))
		if p.interval == 0 {
			p.interval = lasted
		}
		p.interval += (lasted - p.interval) / 4
	}
	p.first = now
}

// push pushes the pending rows to the ring. The first sample of a child has no rates yet.
func (r *receiver) push() {
	t := r.tick
	if r.pace.samples == 1 {
		t.batch.Samples = slices.DeleteFunc(t.batch.Samples, func(s raw.Sample) bool { return Fields[s.Family].Rate })
	}
	if len(t.batch.Samples) == 0 && r.pace.samples == 1 {
		t.rows = 0
		return
	}
	t.entities, t.at = r.entities, r.pace.lastRow
	r.ring.push(t)
	r.open()
}
