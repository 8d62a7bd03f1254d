package dcgmi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dmon"
)

const (
	// lineBuffer holds the samples of many GPUs: a row is a good kilobyte.
	lineBuffer = 64 << 10
	// dmon prints a sample in one go, so a short silence ends it.
	leastSilence, mostSilence = 5 * time.Millisecond, 50 * time.Millisecond
	// startLimit is how long the first row may take: dmon prints the header, and
	// then the host engine sets up its watches and reads every GPU once.
	startLimit = 30 * time.Second
	// A running child that gives no row for hangTicks periods, and at least
	// leastHang, hangs. The pipeline calls a stream stale after as long.
	hangTicks = 10
	leastHang = time.Second
	// mostNames is far beyond the entities and columns of any node.
	mostNames = 4096
	// shrinkAfter ticks in a row that are short of a row, that row is expected
	// no more.
	shrinkAfter = 8
)

// errHangs says that a child lives and gives no rows.
type errHangs struct{ silent time.Duration }

func (e errHangs) Error() string {
	return fmt.Sprintf("no row for %s", e.silent.Round(100*time.Millisecond))
}

// errGarbage ends a stream whose names would fill the memory.
var errGarbage = fmt.Errorf("more than %d names of entities and columns", mostNames)

// pipe is the reading end of a child's stdout. It is an *os.File but in tests.
type pipe interface {
	io.Reader
	SetReadDeadline(t time.Time) error
}

// receiver turns what one child prints into ticks. It belongs to one goroutine.
type receiver struct {
	stream int
	epoch  uint64 // of the child
	period time.Duration
	ring   *ring
	// flows is called with the first tick.
	flows func()
	// isRates: all fields of the stream are rates.
	isRates bool

	parser dmon.Parser
	dict   *raw.Dict
	names  *names
	tick   *tick // being filled

	begun   time.Time
	lastRow time.Time // zero before the first
	ticks   uint64
	// expect is how many rows a tick has, as far as was seen: a tick that has
	// them all is handed on without waiting for the silence behind it.
	expect, short int

	said    tail // lines that are no rows
	buf     []byte
	n       int  // bytes of an unfinished line at the beginning of buf
	cutting bool // that line is too long and thrown away up to its end
}

// run reads p until it ends, which gives io.EOF, or is closed, or hangs.
func (r *receiver) run(p pipe) error {
	r.dict = raw.NewDict()
	r.buf = make([]byte, lineBuffer)
	r.begun = time.Now()
	r.open()
	defer func() { r.ring.recycle(r.tick) }()
	late := false
	for {
		if err := p.SetReadDeadline(r.deadline(late)); err != nil {
			return err
		}
		n, err := p.Read(r.buf[r.n:])
		now := time.Now()
		r.take(n, now)
		silent := errors.Is(err, os.ErrDeadlineExceeded)
		switch {
		case err != nil && !silent:
			return err // an open tick may lack rows, and is dropped
		case r.dict.Blocks() > mostNames || r.dict.Families() > mostNames:
			return errGarbage
		case r.parser.Rows() > 0 && now.Sub(r.lastRow) >= r.silence():
			r.end(r.parser.Rows())
			r.parser.Next()
		}
		// Where it was us who were held up, what is overdue lies in the pipe: it
		// is looked at once more.
		overdue := r.overdue(now)
		if overdue && late {
			return errHangs{now.Sub(r.since())}
		}
		late = overdue
	}
}

// since is when the child last showed that it lives.
func (r *receiver) since() time.Time {
	if r.lastRow.IsZero() {
		return r.begun
	}
	return r.lastRow
}

// limit is how long after since the child hangs.
func (r *receiver) limit() time.Duration {
	hang := max(hangTicks*r.period, leastHang)
	if r.lastRow.IsZero() {
		return max(startLimit, hang)
	}
	return hang
}

func (r *receiver) overdue(now time.Time) bool { return now.Sub(r.since()) >= r.limit() }

// silence is how long after a row the tick ends that may lack others.
func (r *receiver) silence() time.Duration {
	return min(max(r.period/4, leastSilence), mostSilence)
}

// deadline is when to stop waiting for more bytes. It never lies in the past, for
// then what is in the pipe already would not be read.
func (r *receiver) deadline(late bool) time.Time {
	soon := time.Now().Add(leastSilence)
	until := r.since().Add(r.limit())
	switch {
	case r.parser.Rows() > 0:
		until = r.lastRow.Add(r.silence())
	case late:
		return soon
	}
	if until.Before(soon) {
		return soon
	}
	return until
}

// take takes n more bytes behind those of the unfinished line.
func (r *receiver) take(n int, now time.Time) {
	text := r.buf[:r.n+n]
	for {
		end := bytes.IndexByte(text, '\n') + 1
		if end == 0 {
			break
		}
		if r.cutting {
			r.tick.batch.Skipped++
			r.cutting = false
		} else {
			r.line(text[:end], now)
		}
		text = text[end:]
	}
	r.n = copy(r.buf, text)
	if r.n == len(r.buf) {
		r.n, r.cutting = 0, true
	}
	if r.cutting {
		r.n = 0
	}
	if rows := r.parser.Rows(); r.n == 0 && r.expect > 0 && rows >= r.expect {
		r.end(rows)
		r.parser.Next()
	}
}

// line takes one line.
func (r *receiver) line(line []byte, now time.Time) {
	rows, skipped := r.parser.Rows(), r.tick.batch.Skipped
	if !r.parser.Line(&r.tick.batch, line) {
		r.end(rows)
		rows, skipped = 0, r.tick.batch.Skipped
		r.parser.Line(&r.tick.batch, line)
	}
	switch {
	case r.parser.Rows() > rows:
		r.lastRow = now
	case r.tick.batch.Skipped > skipped:
		_, _ = r.said.Write(line)
	}
}

// open begins a tick.
func (r *receiver) open() {
	r.tick = r.ring.blank()
	r.tick.stream, r.tick.epoch = r.stream, r.epoch
	r.tick.batch.Dict = r.dict
}

// end hands the tick, which has that many rows, to the ring. The first sample of
// a child has no rates yet.
func (r *receiver) end(rows int) {
	t := r.tick
	r.names = r.names.cover(r.dict)
	t.names, t.at = r.names, r.lastRow
	r.learn(rows)
	if r.ticks++; r.ticks == 1 {
		r.flows()
		if r.isRates {
			t.batch.Samples = t.batch.Samples[:0]
			r.ring.counts[r.stream].Ticks.Add(1)
			return
		}
		t.dropRates()
	}
	r.ring.push(t)
	r.open()
}

// learn updates how many rows are expected.
func (r *receiver) learn(rows int) {
	if rows < r.expect {
		r.short++
	}
	if rows >= r.expect || r.short == shrinkAfter {
		r.expect, r.short = rows, 0
	}
}
