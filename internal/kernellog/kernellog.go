// Package kernellog reads the errors of GPUs and NVSwitches, XIDs and SXIDs, from the
// kernel's log. The driver writes more there than any other interface gives: each error,
// the sub-code, and the process that was running.
package kernellog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Options say what to read.
type Options struct {
	Path     string        // /dev/kmsg, or a file or FIFO with records of the same form, or lines of syslog or dmesg
	Proc     string        // where procfs is mounted; its uptime dates the records
	MaxAge   time.Duration // of a record when reading begins; older ones are left out
	Hostname string        // of the switches
	// Known are the faults of switches that an earlier run kept, and Keep is called with all of them when they change; it must
	// not call the Log. It may be nil.
	Known  []canonical.SwitchFault
	Keep   func([]canonical.SwitchFault)
	Logger *slog.Logger
	// Youth is how long the count of a new SXID is 0; nil means no time.
	Youth func() time.Duration
}

// Log reads the errors from the kernel's log. Its methods may be called from any
// goroutine.
type Log struct {
	opts   Options
	file   *follower
	opened time.Time
	booted time.Time // zero if unknown

	telling atomic.Bool   // the log is read, so that a board without XIDs had none
	end     atomic.Uint64 // the number behind the last of queue

	mu       sync.Mutex
	current  bool // all records from before the start are read
	feeds    []*Feed
	queue    []pending // that some feed has not passed on
	first    uint64    // the number of the first in queue
	events   canonical.EventList
	switches []canonical.SXIDCount
	births   []canonical.Birth // of switches
	faults   []canonical.SwitchFault
	lost     map[string]time.Time // when a board fell off the bus, by its address
	counts   Counts
	warned   map[string]bool
	probe    struct { // the latest probeLine of a text
		text string
		at   time.Time
	}
}

// Counts are the counts since the start.
type Counts struct {
	XIDs, SXIDs uint64
	Unmatched   uint64 // XIDs of addresses at which no source reads a GPU of this machine
	Malformed   uint64 // lines of the driver that could not be read
	Foreign     uint64 // lines like these that a program wrote instead of the kernel
	Dropped     uint64 // errors beyond a limit
	Overruns    uint64 // how often the kernel overwrote records before they were read
}

// maxSwitches bounds the pairs of switch and code whose SXIDs are counted.
const maxSwitches = 256

// Open opens the log. Errors are *canonical.Failure.
func Open(opts Options) (*Log, error) {
	l := &Log{opts: opts, opened: time.Now(), warned: map[string]bool{}, lost: map[string]time.Time{}, faults: slices.Clone(opts.Known)}
	if up, ok := uptime(opts.Proc); ok {
		l.booted = l.opened.Add(-up)
	}
	for i := range l.faults { // the clock may have been set back since
		if l.faults[i].At.After(l.opened) {
			l.faults[i].At = l.opened
		}
	}
	var err error
	if l.file, err = openFollower(opts.Path, l.catchUp, l.overrun); err == nil {
		return l, nil
	}
	f := &canonical.Failure{Cause: err.Error(), Remedy: "name a file with records as /dev/kmsg has them, or leave --kernel-log out"}
	if errors.Is(err, fs.ErrPermission) {
		f.Remedy = fmt.Sprintf("run with the capability CAP_SYSLOG and, if device files are denied, with access to %s, or leave --kernel-log out", opts.Path)
	}
	return nil, f
}

// Run reads until ctx ends or reading fails. Errors are *canonical.Failure. It may be called once.
func (l *Log) Run(ctx context.Context) error {
	defer l.file.close()
	defer l.telling.Store(false)
	stop := context.AfterFunc(ctx, l.file.interrupt)
	defer stop()
	lines := bufio.NewReaderSize(l.file, bufferSize)
	line, more, err := lines.ReadLine()
	for long := false; err == nil; line, more, err = lines.ReadLine() {
		if !long && !more { // a text may have lines of programs that are longer than any of the driver
			l.line(line)
		}
		long = more
	}
	if ctx.Err() != nil {
		return nil
	}
	return &canonical.Failure{Cause: err.Error(), Remedy: "restart kpulse-proxy to read XIDs from it again"}
}

// catchUp releases what was read to the feeds, once the log is read to its end.
func (l *Log) catchUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = true
	l.telling.Store(true)
}

func (l *Log) overrun() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.Overruns++
	l.warnOnce("overrun", "the kernel's log was overwritten before it was read, and XIDs may be lost", "path", l.opts.Path,
		"remedy", "make it larger, with log_buf_len= on the kernel's command line")
}

// warnOnce logs a warning, once for each kind. The caller holds mu.
func (l *Log) warnOnce(kind, message string, args ...any) {
	if !l.warned[kind] {
		l.warned[kind] = true
		l.opts.Logger.Warn(message, args...)
	}
}

// line reads a record, a line that continues one, or one that syslog or dmesg wrote.
func (l *Log) line(line []byte) {
	if !bytes.Contains(line, []byte(driverPrefix)) && !bytes.Contains(line, []byte(sxidWord)) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if line[0] == ' ' { // further lines of a record are keys and values of the kernel, or in a text its own
		l.saidInText(string(bytes.TrimLeft(line, " ")), l.probe.at)
		return
	}
	head, said, isRecord := strings.Cut(string(line), ";")
	if !isRecord || strings.Contains(head, driverPrefix) || strings.Contains(head, sxidWord) {
		if text, at, ok := parseText(string(line), l.booted, time.Now()); ok {
			if l.current {
				at = time.Now()
			}
			if strings.HasPrefix(text, loadPrefix) { // whom such a file believes is not known: it resolves nothing
				if !l.current {
					l.discard(len(l.queue))
				}
				return
			}
			l.saidInText(text, at)
		} else if bytes.Contains(line, []byte(xidPrefix)) || bytes.Contains(line, []byte(sxidWord)) {
			l.counts.Foreign++
			l.warnOnce("form", "a line like the driver's is left out: it is neither a record of /dev/kmsg nor a line of the kernel by syslog, journalctl or dmesg",
				"text", printable(string(line)), "remedy", "name /dev/kmsg, or a file that one of these writes")
		}
		return
	}
	if !strings.HasPrefix(said, driverPrefix) && !strings.HasPrefix(said, switchPrefix) {
		return
	}
	r, ok := parseRecord(line)
	if !ok {
		l.malformed(said)
		return
	}
	at := l.time(r.since)
	switch {
	case !r.fromKernel():
		if strings.HasPrefix(said, xidPrefix) || strings.Contains(said, sxidWord) {
			l.counts.Foreign++
			l.warnOnce("foreign", "a line like the driver's in the kernel's log is ignored: a program wrote it", "text", printable(said),
				"remedy", "to see what an XID does, name a FIFO with --kernel-log=FILE and write records there")
		}
	case l.opened.Sub(at) > l.opts.MaxAge:
	default:
		l.said(said, at)
	}
}

// saidInText takes in a line of a text, which may be a part of a record. The caller holds mu.
func (l *Log) saidInText(text string, at time.Time) {
	switch {
	case strings.HasPrefix(text, probeLine):
		l.probe.text, l.probe.at = text, at
	case strings.HasPrefix(text, lostLine):
		text, l.probe.text = l.probe.text+" "+text, ""
	}
	l.said(text, at)
}

// said takes in what the driver said at an instant. The caller holds mu.
func (l *Log) said(text string, at time.Time) {
	switch {
	case strings.HasPrefix(text, loadPrefix):
		if !l.current { // boards start afresh with the driver
			l.discard(len(l.queue))
		}
		clear(l.lost)
		l.push(&xid{}, at)
	case strings.HasPrefix(text, xidPrefix):
		l.addXID(text, at)
	case strings.HasPrefix(text, switchPrefix):
		l.addSXID(text, at)
	default:
		l.addLine(text, at)
	}
}

// addLine takes in a line of the driver that is no XID. The caller holds mu.
func (l *Log) addLine(text string, at time.Time) {
	if m := lostForm().FindStringSubmatch(text); m != nil {
		if x := (xid{address: canonical.PCIAddress(m[1]), code: lostXID, text: "fallen off the bus"}); x.address != "" {
			l.addLost(&x, at)
		}
	} else if m := resetForm().FindStringSubmatch(text); m != nil {
		l.events.Add(canonical.Event{
			At: at, Kind: canonical.EventDriver, Hostname: l.opts.Hostname, PCIBusID: canonical.PCIAddress(m[1]),
			Text: printable(strings.TrimPrefix(text, driverPrefix)),
		})
	}
}

// sameLoss is within which an XID and a line without one are about one loss of a board.
const sameLoss = 10 * time.Second

// addLost adds that a board has fallen off the bus, unless that was said just before. The caller holds mu.
func (l *Log) addLost(x *xid, at time.Time) {
	if before, known := l.lost[x.address]; known && at.Sub(before).Abs() <= sameLoss {
		return
	}
	l.lost[x.address] = at
	l.counts.XIDs++
	l.push(x, at)
}

// time returns the time of a record that was written that long after the machine started.
// New records are dated now, since the log's clock drifts. The caller holds mu.
func (l *Log) time(since time.Duration) time.Time {
	now := time.Now()
	if l.current || l.booted.IsZero() {
		return now
	}
	if at := l.booted.Add(since); at.Before(now) {
		return at
	}
	return now
}

// addXID puts a line's XID into the queue. The caller holds mu.
func (l *Log) addXID(line string, at time.Time) {
	x, ok := parseXID(line)
	if !ok {
		l.malformed(line)
		return
	}
	if x.code == lostXID {
		l.addLost(&x, at)
		return
	}
	l.counts.XIDs++
	l.push(&x, at)
}

// addSXID counts a line's SXID. The caller holds mu.
func (l *Log) addSXID(line string, at time.Time) {
	s, more, ok := parseSXID(line)
	switch {
	case more:
		return
	case !ok:
		l.malformed(line)
		return
	}
	l.counts.SXIDs++
	severity := canonical.SeverityWarning
	if s.fatal {
		severity = canonical.SeverityFatal
	}
	l.events.Add(canonical.Event{
		At: at, Kind: canonical.EventSXID, Hostname: l.opts.Hostname, PCIBusID: s.address,
		Code: s.code, Count: 1, Severity: severity, Text: s.text,
	})
	if s.fatal && !at.Before(l.booted) {
		l.fail(canonical.SwitchFault{Hostname: l.opts.Hostname, PCIBusID: s.address, Code: s.code, At: at})
	}
	i := slices.IndexFunc(l.switches, func(c canonical.SXIDCount) bool {
		return c.PCIBusID == s.address && c.Code == s.code && c.Fatal == s.fatal
	})
	switch {
	case i >= 0:
		l.switches[i].Count++
		return
	case len(l.switches) == maxSwitches:
		l.counts.Dropped++
		return
	}
	l.switches = append(l.switches, canonical.SXIDCount{Hostname: l.opts.Hostname, PCIBusID: s.address, Code: s.code, Fatal: s.fatal, Count: 1})
	l.births = append(l.births, canonical.BornAt(time.Now()))
}

// fail notes a fatal error of a switch, once for each code until it is resolved. The caller holds mu.
func (l *Log) fail(f canonical.SwitchFault) {
	i := slices.IndexFunc(l.faults, func(k canonical.SwitchFault) bool { return k.PCIBusID == f.PCIBusID && k.Code == f.Code })
	switch {
	case i < 0 && len(l.faults) < maxSwitches:
		l.faults = append(l.faults, f)
	case i >= 0 && l.faults[i].Resolved && f.At.After(l.faults[i].At):
		l.faults[i] = f
	default:
		return
	}
	l.keep()
}

// keep saves the faults of switches. The caller holds mu.
func (l *Log) keep() {
	if l.opts.Keep != nil {
		l.opts.Keep(l.faults)
	}
}

// Resolve ends the fatal errors of a switch on an operator's request, and reports whether it had any.
func (l *Log) Resolve(address string) (any bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	address = canonical.PCIAddress(address)
	for i := range l.faults {
		if f := &l.faults[i]; f.PCIBusID == address && !f.Resolved {
			f.Resolved, f.At, any = true, time.Now(), true
		}
	}
	if any {
		l.keep()
	}
	return any
}

// Faults appends to dst the fatal errors of switches that no one resolved.
func (l *Log) Faults(dst []canonical.SwitchFault) []canonical.SwitchFault {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.faults {
		if !f.Resolved {
			dst = append(dst, f)
		}
	}
	return dst
}

func (l *Log) malformed(line string) {
	l.counts.Malformed++
	l.warnOnce("malformed", "a line of the driver in the kernel's log cannot be read, and is left out", "text", printable(line))
}

// stray lists XIDs of an address at which no source reads a GPU of this machine. The caller holds mu.
func (l *Log) stray(p *pending) {
	l.warnOnce("stray", "the kernel's log has XIDs for a PCI address at which no source reads a GPU of this machine now; they are listed only at /events",
		"address", p.address, "xid", p.event.Code)
	l.counts.Unmatched += p.event.Count
	e := canonical.Event{
		At: p.event.At, Kind: canonical.EventXID, Hostname: l.opts.Hostname, PCIBusID: p.address,
		Code: p.event.Code, Count: p.event.Count, Severity: p.event.Severity, Action: p.event.Action,
		Text: p.event.Text, PID: p.event.PID, Process: p.event.Process,
	}
	if !p.event.Decoded {
		row, _ := canonical.XIDOf(e.Code)
		e.Severity, e.Action = row.Severity, row.Action
	}
	l.events.Add(e)
}

// Events appends to dst the latest SXIDs, and the XIDs of addresses at which no GPU is read.
func (l *Log) Events(dst []canonical.Event) []canonical.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events.AppendTo(dst)
}

// Switches appends to dst the count of each SXID of each switch, in the order in which they
// first came. A count is 0 while it is young.
func (l *Log) Switches(dst []canonical.SXIDCount) []canonical.SXIDCount {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, c := range l.switches {
		if l.opts.Youth != nil && l.births[i].Young(time.Now(), l.opts.Youth()) {
			c.Count = 0
		}
		dst = append(dst, c)
	}
	return dst
}

// Counts returns the counts so far.
func (l *Log) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// uptime returns how long the machine has been up.
func uptime(proc string) (time.Duration, bool) {
	text, err := os.ReadFile(proc + "/uptime")
	if err != nil {
		return 0, false
	}
	seconds, _, _ := strings.Cut(string(text), " ")
	up, err := time.ParseDuration(seconds + "s")
	return up, err == nil
}
