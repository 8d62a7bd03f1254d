package dcgm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dmon"
)

const (
	// lineBuffer is the size of the buffer for samples of many GPUs: a row takes over a kilobyte.
	lineBuffer = 64 << 10
	// dmon prints a sample at once, so after a short silence more rows are unlikely.
	// The silence of the first sample is longer, because the number of rows is not
	// known yet.
	leastSilence, mostSilence = 5 * time.Millisecond, 50 * time.Millisecond
	firstSilence              = time.Second
	// startLimit is how long the first row may take: dmon prints the header, and
	// then the host engine sets up its watches and reads every GPU once.
	startLimit = 30 * time.Second
	// A running child hangs if it prints no row for hangTimes the duration of a
	// sample, and at least leastHang. The pipeline calls a stream stale much
	// sooner, but killing a child that is only slow does not make it faster.
	hangTimes = 10
	leastHang = 5 * time.Second
	// mostInterval limits the assumed duration of a sample, which limits the time to
	// detect a hanging child to a minute. For periods over half of it, the limit is
	// two periods.
	mostInterval = 6 * time.Second
	// After slowAfter samples in a row that took more than two periods, the
	// child is called slow.
	slowAfter = 8
	// mostEntities is far more than any node has.
	mostEntities = 4096
	// After shrinkAfter samples in a row that lack a row, that row is no longer
	// expected.
	shrinkAfter = 8
)

// errHangs is the error of a running child that prints no rows.
type errHangs struct{ silent time.Duration }

func (e errHangs) Error() string {
	return fmt.Sprintf("no row for %s", e.silent.Round(100*time.Millisecond))
}

// errGarbage ends a stream whose entity names would fill the memory.
var errGarbage = fmt.Errorf("more than %d names of entities", mostEntities)

// pipe is the reading end of a child's stdout: an *os.File, except in tests.
type pipe interface {
	io.Reader
	SetReadDeadline(t time.Time) error
}

// receiver turns the output of one child into ticks. The parser finds the end of a
// sample only when it sees the next one. The receiver pushes a sample earlier,
// when all its rows are there or have had time to arrive; later rows follow as the
// rest of it. It belongs to one goroutine.
type receiver struct {
	stream int
	epoch  uint64 // of the child
	child  uint64 // its number
	period time.Duration
	ring   *ring
	// flows is called with the first tick.
	flows func()
	// slow is called once, if samples take more than two periods each.
	slow func(interval time.Duration)
	// noisy is called once, if the child prints text but no row.
	noisy func(text string)
	// beside returns what the child printed on stderr; nil means nothing.
	beside func() string
	// isRates is whether all fields of the stream are rates.
	isRates bool
	// page has fields beyond Fields; nil means none.
	page *Page

	parser   dmon.Parser
	entities []dmon.Entity // that had rows, only ever added to
	tick     *tick         // being filled

	begun   time.Time
	lastRow time.Time // zero before the first

	// Of the current sample.
	first   time.Time // its first row
	head    uint32    // that row's entity
	partial bool      // a part of it was pushed

	samples  uint64        // pushed
	interval time.Duration // between samples, smoothed; 0 before the second
	slowFor  int           // samples in a row
	// expect is the expected number of rows in a sample, 0 before the end of
	// the first.
	expect, short int
	// leader is the head of the last sample with all rows.
	leader uint32

	otherLines tail // lines that are not rows
	noise      noise
	buf        []byte
	n          int  // bytes of an unfinished line at the beginning of buf
	cutting    bool // that line is too long and discarded up to its end
}

// run reads p until it ends, which returns io.EOF, or is closed, or hangs.
func (r *receiver) run(p pipe) error {
	r.parser.Names = r
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
		r.ring.counts[r.stream].Bytes.Add(uint64(n))
		now := time.Now()
		r.scan(n, now)
		silent := errors.Is(err, os.ErrDeadlineExceeded)
		switch {
		case err != nil && !silent:
			return err // an open tick may lack rows, and is dropped
		case len(r.entities) > mostEntities:
			return errGarbage
		case r.noise.bytes > mostNoise:
			return errNoise
		case r.pending() && !now.Before(r.pushTime()):
			r.push()
		}
		r.checkNoise(now)
		// If we were delayed ourselves, the overdue rows are in the pipe: read once
		// more.
		overdue := r.overdue(now)
		if overdue && late {
			return errHangs{now.Sub(r.since())}
		}
		late = overdue
	}
}

// since returns when the child last printed a row, or else started.
func (r *receiver) since() time.Time {
	if r.lastRow.IsZero() {
		return r.begun
	}
	return r.lastRow
}

// limit returns how long after since the child counts as hanging.
func (r *receiver) limit() time.Duration {
	hang := max(hangTimes*max(r.period, r.interval), leastHang)
	if r.samples < 2 { // the duration of a sample is not known yet
		return max(startLimit, hang)
	}
	return hang
}

func (r *receiver) overdue(now time.Time) bool { return now.Sub(r.since()) >= r.limit() }

// pending reports whether rows wait to be pushed.
func (r *receiver) pending() bool { return len(r.tick.rows) > 0 }

// pushTime returns when to push pending rows although some are missing: after a
// silence, and not before three quarters of the time between samples.
func (r *receiver) pushTime() time.Time {
	if r.expect == 0 {
		return r.lastRow.Add(max(r.period*3/4, firstSilence))
	}
	silent := r.lastRow.Add(min(max(r.period/4, leastSilence), mostSilence))
	if due := r.first.Add(r.interval * 3 / 4); due.After(silent) {
		return due
	}
	return silent
}

// deadline returns when to stop waiting for more bytes. It is never in the past,
// which would prevent reading bytes that are already in the pipe.
func (r *receiver) deadline(late bool) time.Time {
	now := time.Now()
	soon := now.Add(leastSilence)
	until := r.since().Add(r.limit())
	if look := r.nextLook(now); !look.IsZero() && look.Before(until) {
		until = look
	}
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
	text := r.buf[:r.n+n]
	for {
		end := bytes.IndexByte(text, '\n') + 1
		if end == 0 {
			break
		}
		if r.cutting {
			r.tick.batch.Skipped++
			r.cutting = false
			r.noise.bytes += end
		} else {
			r.line(text[:end], now)
		}
		text = text[end:]
	}
	switch r.n = copy(r.buf, text); {
	case r.cutting: // more of a line whose beginning was handled
		r.noise.bytes += r.n
		r.n = 0
	case r.n == len(r.buf):
		r.other(r.buf)
		r.cutting = true
		r.n = 0
	}
	if r.n == 0 && r.expect > 0 && r.parser.Rows() >= r.expect && r.pending() {
		r.push()
	}
}

// line reads one line.
func (r *receiver) line(line []byte, now time.Time) {
	rows, skipped := r.parser.Rows(), r.tick.batch.Skipped
	if !r.parser.Line(&r.tick.batch, line) {
		r.end(rows)
		rows, skipped = 0, r.tick.batch.Skipped
		r.parser.Line(&r.tick.batch, line)
	}
	switch {
	case r.parser.Rows() > rows:
		if r.isLate(rows) {
			r.parser.Split()
			r.endSample(rows)
			rows = 0
		}
		if rows == 0 {
			r.begin(now)
		}
		r.tick.rows = append(r.tick.rows, r.parser.Last())
		r.lastRow = now
		r.noise.bytes = 0
	case r.tick.batch.Skipped > skipped:
		r.other(line)
	case bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte{'#'}):
		r.header(line)
	}
}

// Column implements dmon.Names: the id of a field is its index.
func (r *receiver) Column(name []byte) (id uint32, ok bool) {
	field := r.page.FieldOf(name)
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
	r.tick.stream, r.tick.epoch, r.tick.child = r.stream, r.epoch, r.child
}

// begin begins a sample, whose first row came at now.
func (r *receiver) begin(now time.Time) {
	if !r.first.IsZero() {
		lasted := min(now.Sub(r.first), max(mostInterval, 2*r.period))
		if r.interval == 0 {
			r.interval = lasted
		}
		r.interval += (lasted - r.interval) / 4
		r.checkPace(lasted)
	}
	r.first, r.head = now, r.parser.Last()
}

// isLate reports whether the parser's latest row begins another sample, rather than
// continuing one of that many rows: it is the leader, after part of the sample was
// pushed.
func (r *receiver) isLate(rows int) bool {
	return rows > 0 && r.partial && r.expect > 0 && r.parser.Last() == r.leader
}

// checkPace records the time between two samples.
func (r *receiver) checkPace(lasted time.Duration) {
	switch {
	case r.slowFor == slowAfter: // logged already
	case lasted <= 2*max(r.period, MinPeriod): // a shorter period cannot be set
		r.slowFor = 0
	default:
		if r.slowFor++; r.slowFor == slowAfter {
			r.slow(r.interval)
		}
	}
}

// end ends a sample of that many rows.
func (r *receiver) end(rows int) {
	if r.pending() {
		r.push()
	}
	r.endSample(rows)
}

// endSample updates the expectations at the end of a sample.
func (r *receiver) endSample(rows int) {
	r.partial = false
	r.expectRows(rows)
	if rows >= r.expect {
		r.leader = r.head
	}
}

// push pushes the pending rows to the ring. The first sample of a child has no
// rates yet.
func (r *receiver) push() {
	t := r.tick
	t.entities, t.at, t.rest = r.entities, r.lastRow, r.partial
	if !r.partial {
		r.partial = true
		r.samples++
		if r.samples == 1 {
			r.flows()
		}
	}
	if r.samples == 1 {
		if r.isRates {
			r.discard()
			return
		}
		t.dropRates(r.page)
	}
	r.ring.push(t)
	r.open()
}

// discard counts the tick, and empties it.
func (r *receiver) discard() {
	if !r.tick.rest {
		r.ring.counts[r.stream].Tick(r.tick.at)
	}
	r.tick.rows, r.tick.batch.Samples = r.tick.rows[:0], r.tick.batch.Samples[:0]
}

// expectRows updates the expected number of rows.
func (r *receiver) expectRows(rows int) {
	if rows < r.expect {
		r.short++
	}
	if rows >= r.expect || r.short == shrinkAfter {
		r.expect, r.short = rows, 0
	}
}
