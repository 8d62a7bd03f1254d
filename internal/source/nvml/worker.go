//go:build cgo && linux

package nvml

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// gpu is a board that is read. Any goroutine may use it.
type gpu struct {
	lib     *library
	notices *notices
	board   int // its index
	uuid    string
	device  nvml.Device

	asks       chan time.Time // has a capacity of one
	answers    chan<- workerAnswer
	registered chan struct{} // closed once the board is registered for events, or cannot be

	reading callName // in progress in the worker
	xids    xidCounts
}

// workerAnswer is a worker's answer. The result is valid until the answer after the next.
type workerAnswer struct {
	*gpu
	result *outcome
}

// callName is the name of a call in progress, "" for none. Any goroutine may use it.
type callName struct {
	mu   sync.Mutex
	name string
}

func (c *callName) set(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name = name
}

func (c *callName) get() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// worker reads a board. It belongs to one goroutine. A result that it has answered with belongs
// to the source.
type worker struct {
	*gpu
	period    time.Duration
	events    nvml.EventSet // nil for none
	begun     bool
	mayCount  bool // false once the board has answered that it has no GPM
	instances instanceList
	fields    *fieldQuery // of the whole board, as rate, links and fabric; nil for one whose call the library lacks
	rate      linkRate
	links     *links
	fabric    *fabric
	parts     []entity // the board and its instances
	results   [2]outcome
	next      int
	values    [5]float64 // of one reading: as many as one can have
	xidColumn int        // in dcgm.Fields
}

// entity is a board, or an instance that is read separately.
type entity struct {
	device   nvml.Device
	readings []requested
	gpm      *gpm // nil if there is none
}

// requested is a reading of a part, which may have refused it.
type requested struct {
	*getter
	at    []int // indices in dcgm.Fields
	state support
}

// run answers asks until ctx ends.
func (w *worker) run(ctx context.Context) {
	defer w.free()
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-w.asks:
			r := w.round(at)
			w.reading.set("")
			w.answers <- workerAnswer{w.gpu, r}
		}
	}
}

// round reads the board once, for a round that began at now.
func (w *worker) round(now time.Time) *outcome {
	r := &w.results[w.next]
	w.next = 1 - w.next
	r.begun = now
	if !w.begun {
		w.begin()
		w.begun = true
	}
	w.list(now)
	r.reset(w.instances.all)
	if r.lost = !w.fill(r); r.lost {
		blank(r.cells)
	}
	return r
}

// begin makes the calls that are made once: not in New, because each may hang.
func (w *worker) begin() {
	if w.events != nil {
		w.reading.set(registerCall)
		answer := w.device.RegisterEvents(nvml.EventTypeXidCriticalError, w.events)
		if w.xids.listen(answer == nvml.SUCCESS); answer != nvml.SUCCESS {
			w.notices.withoutXIDs(fmt.Sprintf(" of GPU %d", w.board), registerCall, answer)
		}
	}
	close(w.registered)
	if w.mayCount = w.lib.has(gpmCalls...); w.mayCount {
		w.reading.set(gpmSupportCall)
		gpm, answer := w.device.GpmQueryDeviceSupport()
		w.check(gpmSupportCall, answer)
		w.mayCount = answer != nvml.SUCCESS || gpm.IsSupportedDevice != 0 // if unknown, the first sample shows it
	}
	if w.lib.has(fieldCall) {
		w.fields, w.rate = newFieldQuery(steadyFields), newLinkRate(w.period)
	}
	if w.lib.has(fieldCall, linkCall) {
		w.links = newLinks()
	}
	if w.lib.has(fabricCall) {
		w.fabric = newFabric()
	}
	if !w.lib.has(migCalls...) {
		w.instances.state = refused
	}
	w.xidColumn = columns("XIDER")[0]
	w.adopt(w.instances.all)
}

// list asks for the board's instances, every instancesPause.
func (w *worker) list(now time.Time) {
	l := &w.instances
	if l.state == refused || now.Sub(l.listed) < instancesPause {
		return
	}
	l.listed = now
	all, answer := instancesOf(w.device, w.board, w.reading.set)
	w.check(migModeCall, answer)
	if !l.state.record(answer) {
		return
	}
	if !sameInstances(all, l.all) {
		w.adopt(all)
		return
	}
	for i := range all { // handles may have changed
		w.parts[1+i].device = all[i].devices[0]
	}
}

// adopt makes all the instances of the board. Results may still have the earlier ones,
// which are not modified. Every reading is requested again, including refused ones: what a
// board refuses depends on whether it has instances.
func (w *worker) adopt(all []migInstance) {
	w.free()
	w.instances.all, w.parts = all, []entity{w.newPart(w.device, boardReadings, wholeBoard)}
	for _, in := range all {
		w.parts = append(w.parts, w.newPart(in.devices[0], instanceReadings, in.id))
	}
}

// newPart returns how to read the board or the instance with that id, without the readings that
// the library lacks.
func (w *worker) newPart(d nvml.Device, readings []getter, instance int) entity {
	p := entity{device: d}
	for i := range readings {
		if r := &readings[i]; w.lib.has(r.call) {
			p.readings = append(p.readings, requested{getter: r, at: columns(r.columns...)})
		}
	}
	if w.mayCount {
		p.gpm = w.newGPM(instance)
	}
	return p
}

// fill reads everything into r. It returns false if the board is lost.
func (w *worker) fill(r *outcome) bool {
	for i := range w.parts {
		if g := w.parts[i].gpm; g != nil && !w.check(g.call, g.ask(w.reading.set, w.period, r.row(i))) {
			return false
		}
	}
	if !w.fillWhole(r, r.row(0)) {
		return false
	}
	for i := range w.parts {
		if !w.ask(&w.parts[i], r.row(i)) {
			return false
		}
	}
	r.gpm = refused
	if slices.ContainsFunc(w.parts, func(p entity) bool { return p.gpm.works() }) {
		r.gpm = given
	}
	if xid := w.xids.last.Load(); xid != 0 {
		set(r.row(0), w.xidColumn, float64(xid))
	}
	return true
}

// fillWhole reads what only a whole board has. It returns false if the board is lost.
func (w *worker) fillWhole(r *outcome, row []float64) bool {
	if w.fields != nil {
		w.reading.set(fieldCall)
		if !w.checkFields(w.fields.ask(w.device, row)) {
			return false
		}
		w.rate.add(w.fields.value(nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX), w.fields.value(nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX), row)
	}
	if w.links != nil && !w.checkFields(w.links.ask(w.device, r.begun, w.reading.set, row)) {
		return false
	}
	if w.fabric != nil {
		w.reading.set(fabricCall)
		if !w.check(fabricCall, w.fabric.ask(w.device, w.lib.fabric, row)) {
			return false
		}
		r.cluster = w.fabric.cluster
	}
	return true
}

// checkFields is check for field values, of which single ones may be denied.
func (w *worker) checkFields(answer nvml.Return, denied bool) bool {
	if denied {
		w.check(fieldCall, nvml.ERROR_NO_PERMISSION)
	}
	return w.check(fieldCall, answer)
}

// ask asks a part for its readings. It returns false if the board is lost.
func (w *worker) ask(p *entity, row []float64) bool {
	for i := range p.readings {
		r := &p.readings[i]
		if r.state == refused || r.standIn && (p.gpm.works() || w.period < slowCallPeriod) {
			continue
		}
		w.reading.set(r.call)
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

// check returns false if an answer means that the board is lost.
func (w *worker) check(call string, answer nvml.Return) bool {
	return w.notices.check(w.board, call, answer)
}

// free returns allocated memory to the library.
func (w *worker) free() {
	for i := range w.parts {
		if g := w.parts[i].gpm; g != nil {
			g.free()
		}
	}
}
