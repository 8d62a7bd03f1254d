package kernellog

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Feed passes the XIDs of the log to one source, each once. Take belongs to the
// goroutine that reads the source.
type Feed struct {
	log  *Log
	mine func(*canonical.Device) bool

	// waiting is the length of queue.
	waiting atomic.Int32

	// Guarded by log.mu.
	queue []pending
	index map[xidKind]int // of the latest XID of a kind in queue
	// boards has the boards of the latest Topology that are on this machine: their indexes
	// for Topology.At, by address.
	topology *canonical.Topology
	boards   map[string]int
	devices  []int // of boards, in order
}

// pending is an XID that the source has not received yet.
type pending struct {
	address string
	number  uint64 // of the first XID in it
	event   canonical.XIDEvent
}

// xidKind is common to XIDs that are merged into one event if too many wait.
type xidKind struct {
	address string
	code    uint32
	meaning meaning
}

const (
	// fewEnough is how many events may wait before all XIDs of a kind are merged.
	fewEnough = 128
	// maxQueue is how many events may wait.
	maxQueue = 1024
)

// Feed returns a new feed for the boards of a source that mine reports as this machine's.
// All feeds are made before Run.
func (l *Log) Feed(mine func(*canonical.Device) bool) *Feed {
	f := &Feed{log: l, mine: mine, index: map[xidKind]int{}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.feeds = append(l.feeds, f)
	return f
}

// push adds an XID, and reports whether there was room. The caller holds log.mu.
func (f *Feed) push(x *xid, at time.Time, number uint64) bool {
	k := xidKind{x.address, x.code, x.meaning}
	i, waits := f.index[k]
	if waits && (len(f.queue) >= fewEnough || f.queue[i].same(x)) {
		f.queue[i].event.Count++
		return true
	}
	if len(f.queue) == maxQueue {
		return false
	}
	f.index[k] = len(f.queue)
	f.queue = append(f.queue, pending{x.address, number, canonical.XIDEvent{
		At: at, Code: x.code, Count: 1,
		Decoded: x.decoded, Severity: x.severity, Action: x.action,
		Text: x.text, PID: x.pid, Process: x.process,
	}})
	f.waiting.Store(int32(len(f.queue)))
	return true
}

// same reports whether x has the text and process of p.
func (p *pending) same(x *xid) bool {
	return p.event.Text == x.text && p.event.PID == x.pid && p.event.Process == x.process
}

// reset empties the queue. The caller holds log.mu.
func (f *Feed) reset() {
	clear(f.queue) // texts
	f.queue = f.queue[:0]
	clear(f.index)
	f.waiting.Store(0)
}

// Take appends to frame.XIDEvents the XIDs of its boards since the last call with a Topology.
// While the log is read, it also appends a count of none for each of these boards to frame.XIDs.
// It allocates nothing while there are no XIDs.
func (f *Feed) Take(frame *canonical.Frame) {
	if frame.Topology == nil {
		return
	}
	if f.waiting.Load() > 0 || f.topology != frame.Topology {
		f.take(frame)
	}
	if !f.log.telling.Load() || len(f.devices) == 0 {
		return
	}
	for _, device := range f.devices {
		frame.XIDs = append(frame.XIDs, canonical.XIDCount{Device: device, Witness: canonical.WitnessKernel})
	}
	slices.SortStableFunc(frame.XIDs, func(a, b canonical.XIDCount) int { return cmp.Compare(a.Device, b.Device) })
}

func (f *Feed) take(frame *canonical.Frame) {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	f.learn(frame.Topology)
	if !f.log.current && time.Since(f.log.opened) < patience {
		return // a later record may show that the driver was loaded since
	}
	for i := range f.queue {
		p := &f.queue[i]
		if device, is := f.boards[p.address]; is {
			p.event.Device = device
			frame.XIDEvents = append(frame.XIDEvents, p.event)
		} else if !f.log.reads(p.address) {
			f.log.stray(p)
		}
	}
	f.reset()
}

// learn finds the boards of a topology. The caller holds log.mu.
func (f *Feed) learn(t *canonical.Topology) {
	if f.topology == t {
		return
	}
	f.topology, f.boards, f.devices = t, map[string]int{}, nil
	for i := range len(t.Devices) + len(t.Absent) {
		d := t.At(i)
		if address := canonical.PCIAddress(d.PCIBusID); !d.IsInstance() && address != "" && f.mine(d) {
			f.boards[address] = i
			f.devices = append(f.devices, i)
		}
	}
}

// startTime is how long a source may take for its first reading; later, none is expected.
const startTime = time.Minute

// reads reports whether a source has a board at an address, or may have because it was not read
// yet. The caller holds mu.
func (l *Log) reads(address string) bool {
	return slices.ContainsFunc(l.feeds, func(f *Feed) bool {
		_, is := f.boards[address]
		return is || f.topology == nil && time.Since(l.opened) < startTime
	})
}
