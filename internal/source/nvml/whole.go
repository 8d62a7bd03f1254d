//go:build cgo && linux

package nvml

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// wholeReadings are what only a whole board has. Those whose call the library lacks are nil.
type wholeReadings struct {
	fields    *fieldQuery
	rate      linkRate
	links     *linkCount
	totals    *linkTotals // nil before the links are known
	fabric    *fabric
	xidColumn int // the index in dcgm.Fields
}

func newWholeReadings(lib *library, period time.Duration) wholeReadings {
	r := wholeReadings{xidColumn: columns("XIDER")[0]}
	if lib.has(fieldCall) {
		r.fields, r.rate = newFieldQuery(steadyFields), newLinkRate(period)
	}
	if r.fields != nil && lib.has(linkCall) {
		r.links = newLinks()
	}
	if lib.has(fabricCall) {
		r.fabric = newFabric()
	}
	return r
}

// fillWhole reads what only a whole board has into s. It returns false if the board is lost.
func (w *worker) fillWhole(s *outcome) bool {
	r, row := &w.whole, s.row(0)
	if r.fields != nil && !w.fillFields(s.begun, row) {
		return false
	}
	if r.fabric != nil {
		w.reading.set(fabricCall)
		if !w.check(fabricCall, r.fabric.ask(w.device, w.lib.fabric, row)) {
			return false
		}
		s.cluster = r.fabric.cluster
	}
	return true
}

// fillFields reads field values and NVLinks.
func (w *worker) fillFields(now time.Time, row []float64) bool {
	r := &w.whole
	w.reading.set(fieldCall)
	if !w.checkFields(r.fields.ask(w.device, row)) {
		return false
	}
	r.rate.add(r.fields.value(nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX), r.fields.value(nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX), row)
	return r.links == nil || w.fillLinks(now, row)
}

// fillLinks reads NVLinks.
func (w *worker) fillLinks(now time.Time, row []float64) bool {
	r := &w.whole
	w.reading.set(linkCall)
	answer, more := r.links.ask(w.device, now)
	if !w.check(linkCall, answer) {
		return false
	}
	if more {
		r.totals = newLinkTotals(r.links.count) // links that have come up may have counts that they lacked
	}
	if r.totals == nil {
		return true
	}
	w.reading.set(fieldCall)
	if !w.checkFields(r.totals.ask(w.device, now, row)) {
		return false
	}
	r.links.set(row, r.totals.speed())
	return true
}

// checkFields is check for field values, of which single ones may be denied.
func (w *worker) checkFields(answer nvml.Return, denied bool) bool {
	if denied {
		w.check(fieldCall, nvml.ERROR_NO_PERMISSION)
	}
	return w.check(fieldCall, answer)
}
