//go:build cgo && linux

package nvml

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const (
	// lostPause is how long a lost board is left alone before it is asked again.
	lostPause = 30 * time.Second
	// cutsPause is how often a board is asked for its MIG instances.
	cutsPause = 10 * time.Second
)

// worker reads one board. Everything except calling, xids and processList belongs to its
// goroutine. A result that it has answered with belongs to the source.
type worker struct {
	lib     *library
	board   int // its index
	uuid    string
	device  nvml.Device
	period  time.Duration
	events  nvml.EventSet // nil for none
	denials *denials
	silence *silence
	logger  *slog.Logger

	asks       chan time.Time // has a capacity of one
	answers    chan<- answer
	registered chan struct{} // closed once the board is registered in events, or cannot be

	mayCount bool         // false once the board has answered that it has no GPM
	fields   *fieldValues // nil if the library lacks the call
	links    *linkLimit   // the same
	errors   *linkErrors  // the same
	fabric   *fabric      // the same
	mig      support
	listed   time.Time // when the instances were listed
	topology uint64
	parts    []part // the board and its instances
	cuts     []cut
	lost     time.Time // when the board was last found lost, zero if it is not
	begun    bool
	results  [2]result
	next     int
	values   [5]float64   // of one reading: as many as one can have
	note     func(string) // calls
	pair     *pair        // one for all parts, allocated separately: C must not see other Go pointers
	xidAt    int          // the index in dcgm.Fields

	processList processList
	xids        xidCounts
	mu          sync.Mutex
	name        string // of the call in progress, "" for none; guarded by mu
}

// asked is a reading of a device that is requested, or was refused.
type asked struct {
	*reading
	at    []int // indices in dcgm.Fields
	state support
}

// part is a board, or an instance that is read separately.
type part struct {
	device   nvml.Device
	readings []asked
	gpm      *gpm // nil if there is none
}

// answer is a worker's answer. The result is valid until the answer after the next.
type answer struct {
	worker *worker
	result *result
}

// newWorker returns a worker for a found board. The caller must run it.
func (s *Source) newWorker(f *found) *worker {
	w := &worker{
		lib: s.lib, board: f.Entity, uuid: f.UUID, device: f.handle, period: s.opts.Period, events: s.events,
		denials: &s.denials, silence: &s.silence, logger: s.opts.Logger,
		asks: make(chan time.Time, 1), answers: s.answers, registered: make(chan struct{}),
		cuts: f.cuts, pair: new(pair), xidAt: columns("XIDER")[0],
	}
	w.note = w.calls
	return w
}

// plan returns how to ask for these readings, without those that the library
// lacks.
func (l *library) plan(readings []reading) []asked {
	var all []asked
	for i := range readings {
		r := &readings[i]
		if l.has(r.call) {
			all = append(all, asked{reading: r, at: columns(r.columns...)})
		}
	}
	return all
}

// run answers asks until ctx ends.
func (w *worker) run(ctx context.Context) {
	defer w.free()
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-w.asks:
			s := &w.results[w.next]
			w.next = 1 - w.next
			s.begun = at
			w.round(s)
			w.calls("")
			w.answers <- answer{w, s}
		}
	}
}

// calls records the call that is about to be made.
func (w *worker) calls(call string) {
	w.mu.Lock()
	w.name = call
	w.mu.Unlock()
}

// calling returns the name of the call in progress, "" for none.
func (w *worker) calling() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.name
}

// round reads the board once.
func (w *worker) round(s *result) {
	if !w.lost.IsZero() && s.begun.Sub(w.lost) < lostPause {
		w.markLost(s)
		return
	}
	if !w.begun {
		w.begin()
		w.begun = true
	}
	w.list(s.begun)
	s.reset(w.cuts)
	s.topology = w.topology
	if !w.fill(s) {
		if w.lost.IsZero() {
			w.logger.Warn("the driver has lost a GPU; it has no readings from now on", "gpu", w.board,
				"remedy", lostRemedy)
		}
		w.lost = s.begun
		w.markLost(s)
		return
	}
	if !w.lost.IsZero() {
		w.logger.Info("a lost GPU is back", "gpu", w.board)
	}
	w.lost = time.Time{}
}

// markLost empties s and marks the board as lost.
func (w *worker) markLost(s *result) {
	s.reset(w.cuts)
	s.topology = w.topology
	s.lost = true
}

// begin makes the calls that are made once: not in New, because each may hang.
func (w *worker) begin() {
	if w.events != nil {
		w.calls("nvmlDeviceRegisterEvents")
		answer := w.device.RegisterEvents(nvml.EventTypeXidCriticalError, w.events)
		if w.xids.listen(answer == nvml.SUCCESS); answer != nvml.SUCCESS {
			w.silence.add(w.logger, w.board, "nvmlDeviceRegisterEvents", answer)
		}
	}
	close(w.registered)
	w.mayCount = w.lib.hasAll(gpmCalls[:]) && w.supportsGPM()
	if w.lib.has(fieldCall) {
		w.fields, w.errors = newFieldValues(w.period), newLinkErrors()
		if w.lib.has(linkCall) {
			w.links = newLinkLimit()
		}
	}
	if w.lib.has(fabricCall) {
		w.fabric = newFabric()
	}
	if !w.lib.hasAll(migCalls[:]) {
		w.mig = refused
	}
	w.adopt(w.cuts)
}

// supportsGPM reports whether the board may have GPM. Drivers do not understand the
// query of go-nvml 0.13.0-1 (NVIDIA/go-nvml#168); then the first sample shows it.
func (w *worker) supportsGPM() bool {
	w.calls(gpmSupportCall)
	gpm, answer := w.device.GpmQueryDeviceSupport()
	w.check(gpmSupportCall, answer)
	if answer == nvml.ERROR_ARGUMENT_VERSION_MISMATCH {
		return true
	}
	var s support
	if s.record(answer) {
		return gpm.IsSupportedDevice != 0
	}
	return s != refused
}

// list asks for the board's instances, every cutsPause.
func (w *worker) list(now time.Time) {
	if w.mig == refused || now.Sub(w.listed) < cutsPause {
		return
	}
	w.listed = now
	cuts, answer := cutsOf(w.device, w.board, w.note)
	w.check(migModeCall, answer)
	if !w.mig.record(answer) {
		return
	}
	if !sameCuts(cuts, w.cuts) {
		w.topology++
		w.adopt(cuts)
		return
	}
	for i := range cuts { // handles may have changed
		w.parts[1+i].device = cuts[i].devices[0]
	}
}

// adopt makes cuts the instances of the board. Results may still have the earlier cuts,
// which are not modified. Every reading is requested again, including refused ones: what a
// board refuses depends on whether it has instances.
func (w *worker) adopt(cuts []cut) {
	w.free()
	w.cuts, w.parts = cuts, []part{w.newPart(w.device, boardReadings[:], wholeBoard)}
	for _, c := range cuts {
		w.parts = append(w.parts, w.newPart(c.devices[0], memoryReadings[:], c.id))
	}
}

// newPart returns how to read the board or the instance with that id.
func (w *worker) newPart(d nvml.Device, readings []reading, instance int) part {
	p := part{device: d, readings: w.lib.plan(readings)}
	if w.mayCount {
		p.gpm = w.newGPM(instance)
	}
	return p
}

// counts reports whether GPM works for the board or an instance.
func (w *worker) counts() bool {
	return slices.ContainsFunc(w.parts, func(p part) bool { return p.gpm.works() })
}

// fill reads everything into s. It returns false if the board is lost.
func (w *worker) fill(s *result) bool {
	for i := range w.parts {
		if g := w.parts[i].gpm; g != nil {
			answer := g.ask(w.note, w.period, s.row(i))
			if !w.check(g.call, answer) {
				return false
			}
		}
	}
	if !w.fillWhole(s) {
		return false
	}
	for i := range w.parts {
		if !w.ask(&w.parts[i], s.row(i)) {
			return false
		}
	}
	s.counting = w.counts()
	if xid := w.xids.last.Load(); xid != 0 {
		set(s.row(0), w.xidAt, float64(xid))
	}
	return true
}

// fillWhole reads what only a whole board has into s. It returns false if the board is lost.
func (w *worker) fillWhole(s *result) bool {
	row := s.row(0)
	if w.fields != nil {
		w.calls(fieldCall)
		if !w.checkValues(w.fields.ask(w.device, row)) {
			return false
		}
	}
	if w.links != nil {
		most := w.links.most
		call, answer := w.links.ask(w.device, w.note, s.begun, row)
		if !w.check(call, answer) {
			return false
		}
		if w.links.most > most {
			w.errors = newLinkErrors() // links that have come up may have counts that they lacked
		}
	}
	if w.errors != nil {
		w.calls(fieldCall)
		if !w.checkValues(w.errors.ask(w.device, s.begun, row)) {
			return false
		}
	}
	if w.fabric != nil {
		w.calls(fabricCall)
		if !w.check(fabricCall, w.fabric.ask(w.device, w.lib.fabric, row)) {
			return false
		}
		s.cluster = w.fabric.cluster
	}
	return true
}

// ask asks a part for its readings. It returns false if the board is lost.
func (w *worker) ask(p *part, row []float64) bool {
	for i := range p.readings {
		r := &p.readings[i]
		if r.state == refused || r.standIn && (p.gpm.gives(r.at[0]) || w.period < slowCallPeriod) || r.filled(row) {
			continue
		}
		w.calls(r.call)
		answer := r.ask(p.device, w.values[:])
		if !w.check(r.call, answer) {
			return false
		}
		if r.state.record(answer) {
			for j, at := range r.at {
				set(row, at, w.values[j])
			}
		}
	}
	return true
}

// filled reports whether all columns of r have a value.
func (r *asked) filled(row []float64) bool {
	for _, at := range r.at {
		if math.IsNaN(row[at]) {
			return false
		}
	}
	return true
}

// checkValues is check for field values, of which single ones may be denied.
func (w *worker) checkValues(answer nvml.Return, denied bool) bool {
	if denied {
		w.check(fieldCall, nvml.ERROR_NO_PERMISSION)
	}
	return w.check(fieldCall, answer)
}

// check returns false if an answer means that the board is lost. It logs denied
// calls.
func (w *worker) check(call string, answer nvml.Return) bool {
	if answer == nvml.ERROR_NO_PERMISSION && w.denials.first(call) {
		w.logger.Warn("the driver denies a reading", "gpu", w.board, "call", call,
			"remedy", "run as root or with CAP_SYS_ADMIN if you need it; see RmProfilingAdminOnly for profiling")
	}
	return answer != nvml.ERROR_GPU_IS_LOST
}

// free returns allocated memory to the library.
func (w *worker) free() {
	for i := range w.parts {
		if g := w.parts[i].gpm; g != nil {
			g.free()
		}
	}
}

// denials are the denied calls that were logged.
type denials struct {
	mu    sync.Mutex
	calls map[string]bool
}

// first reports whether call is denied for the first time.
func (d *denials) first(call string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls[call] {
		return false
	}
	d.calls[call] = true
	return true
}
