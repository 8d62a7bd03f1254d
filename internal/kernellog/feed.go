package kernellog

import (
	"cmp"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Feed passes the XIDs of the log to one source, each once. Take belongs to the
// goroutine that reads the source.
type Feed struct {
	log  *Log
	mine func(*canonical.Device) bool
	next uint64 // the number of the first XID that was not passed on; guarded by log.mu for others

	// boards has the boards of the latest Topology that are on this machine: their indexes
	// for Topology.At, by address. devices has these in order.
	topology *canonical.Topology
	boards   map[string]int
	devices  []int
}

// pending are XIDs of one board, code and meaning that some feed has not passed on yet.
type pending struct {
	address string
	meaning meaning
	event   canonical.XIDEvent
	matched bool // a feed has the board
}

// maxQueue is how many may wait.
const maxQueue = 1024

// Feed returns a new feed for the boards of a source that mine reports as this machine's.
// All feeds are made before Run.
func (l *Log) Feed(mine func(*canonical.Device) bool) *Feed {
	f := &Feed{log: l, mine: mine}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.feeds = append(l.feeds, f)
	return f
}

// fatal reports whether p must not be lost in a flood of others.
func (p *pending) fatal() bool {
	row, _ := canonical.XIDOf(p.event.Code)
	return p.event.Reset || p.event.Decoded && p.event.Severity == canonical.SeverityFatal || !p.event.Decoded && row.Severity == canonical.SeverityFatal
}

// push adds an XID to the queue, to one of its kind that no feed has passed on, or, if the queue is full
// and it is fatal, in the place of one that is not. The caller holds mu.
func (l *Log) push(x *xid, at time.Time) {
	from := l.first
	for _, f := range l.feeds {
		from = max(from, f.next)
	}
	for i := len(l.queue) - 1; i >= int(from-l.first); i-- {
		switch p := &l.queue[i]; {
		case p.address == x.address && p.event.Code == x.code && p.meaning == x.meaning:
			p.event.Count, p.event.At = p.event.Count+1, at // a late report of an earlier one is ignored, the latest is not
			return
		case p.event.Reset || x.code == 0: // what came before a load of the driver ended with it
			i = 0
		}
	}
	p := pending{address: x.address, meaning: x.meaning, event: canonical.XIDEvent{
		At: at, Code: x.code, Count: 1, Reset: x.code == 0,
		Decoded: x.decoded, Severity: x.severity, Action: x.action,
		Text: x.text, PID: x.pid, Process: x.process,
	}}
	if len(l.queue) == maxQueue {
		l.counts.Dropped++
		mild := slices.IndexFunc(l.queue[from-l.first:], func(p pending) bool { return !p.fatal() })
		switch {
		case !p.fatal():
			return
		case mild >= 0:
			l.queue[int(from-l.first)+mild] = p
			return
		}
		l.discard(1)
	}
	l.queue = append(l.queue, p)
	l.end.Store(l.first + uint64(len(l.queue)))
}

// discard removes the first n of the queue. The caller holds mu.
func (l *Log) discard(n int) {
	l.queue = slices.Delete(l.queue, 0, n)
	l.first += uint64(n)
}

// Take appends to frame.XIDEvents the XIDs of its boards since the last call with a Topology.
// While the log is read, it also appends a count of none for each of these boards to frame.XIDs.
// It allocates nothing while there are no XIDs.
func (f *Feed) Take(frame *canonical.Frame) {
	if frame.Topology == nil {
		return
	}
	if f.topology != frame.Topology {
		f.learn(frame.Topology)
	}
	if f.log.end.Load() > f.next {
		f.take(frame)
	}
	frame.Switches = frame.Switches[:0]
	if len(f.devices) == 0 {
		return
	}
	frame.Switches = f.log.Faults(frame.Switches)
	if f.log.telling.Load() {
		frame.Switches = append(frame.Switches, canonical.SwitchFault{})
	}
	for i := range frame.Switches { // the boards' node may have another name in the source
		frame.Switches[i].Hostname = frame.Topology.At(f.devices[0]).Hostname
	}
	if !f.log.telling.Load() {
		return
	}
	for _, device := range f.devices {
		frame.XIDs = append(frame.XIDs, canonical.XIDCount{Device: device, Witness: canonical.WitnessKernel})
	}
	slices.SortStableFunc(frame.XIDs, func(a, b canonical.XIDCount) int { return cmp.Compare(a.Device, b.Device) })
}

func (f *Feed) take(frame *canonical.Frame) {
	l := f.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.current {
		return // a later record may show that the driver was loaded since
	}
	for i := max(f.next, l.first) - l.first; i < uint64(len(l.queue)); i++ {
		p := &l.queue[i]
		if p.event.Reset {
			p.matched = true
			for _, p.event.Device = range f.devices {
				frame.XIDEvents = append(frame.XIDEvents, p.event)
			}
		} else if device, is := f.boards[p.address]; is {
			p.matched, p.event.Device = true, device
			frame.XIDEvents = append(frame.XIDEvents, p.event)
		}
	}
	f.next = l.first + uint64(len(l.queue))
	done := f.next
	for _, other := range l.feeds {
		done = min(done, other.next)
	}
	passed := int(max(done, l.first) - l.first)
	for i := range passed {
		if !l.queue[i].matched {
			l.stray(&l.queue[i])
		}
	}
	l.discard(passed)
}

// learn finds the boards of a topology.
func (f *Feed) learn(t *canonical.Topology) {
	f.topology, f.boards, f.devices = t, map[string]int{}, nil
	for i := range len(t.Devices) + len(t.Absent) {
		d := t.At(i)
		if address := canonical.PCIAddress(d.PCIBusID); !d.IsInstance() && address != "" && f.mine(d) {
			f.boards[address] = i
			f.devices = append(f.devices, i)
		}
	}
}
