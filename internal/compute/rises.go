package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// rising are the error counters whose rise raises conditions, whatever their value.
var rising = [...]struct {
	field      canonical.Field
	conditions canonical.ConditionSet
}{
	{canonical.PCIeReplays, 1 << canonical.CondPCIeReplay},
	{canonical.ECCDoubleBitVolatile, 1 << canonical.CondECCDoubleBit},
	{canonical.NVLinkCRCFlitErrors, 1 << canonical.CondNVLinkErrors},
	{canonical.NVLinkCRCDataErrors, 1 << canonical.CondNVLinkErrors},
	{canonical.NVLinkReplayErrors, 1 << canonical.CondNVLinkErrors},
	{canonical.NVLinkRecoveryErrors, 1 << canonical.CondNVLinkErrors},
	{canonical.NVLinkReceiveMalformed, 1 << canonical.CondNVLinkErrors},
	{canonical.NVLinkReceiveDropped, 1 << canonical.CondNVLinkErrors},
	{canonical.NVLinkReceiveErrors, 1 << canonical.CondNVLinkErrors},
	{canonical.NVLinkReceiveRemote, 1 << canonical.CondNVLinkErrors},
	{canonical.NVLinkReceiveGeneral, 1 << canonical.CondNVLinkErrors},
	{canonical.NVLinkIntegrityErrors, 1 << canonical.CondNVLinkErrors},
	{canonical.NVLinkRecoveriesFailed, 1<<canonical.CondNVLinkErrors | 1<<canonical.CondNVLinkDown},
	{canonical.NVLinkSymbolErrors, 1 << canonical.CondNVLinkErrors},
	{canonical.NVLinkEffectiveErrors, 1 << canonical.CondNVLinkErrors},
}

// observeRises compares a board's counters with their previous values. A first value is no
// rise, and a decrease is a reset of the counter.
func (d *device) observeRises(row []float64, at time.Time) {
	var counted canonical.ConditionSet
	for i, r := range rising[:] {
		v, last := row[r.field], &d.counters[i]
		if v != *last { // rare, except for NaN
			if !canonical.Given(v) {
				continue
			}
			if v > *last { // never if that is NaN
				d.rose(r.conditions, at)
			}
			*last = v
		}
		counted |= r.conditions
	}
	d.counted = counted
}

// rose notes a rise as the latest event behind conditions.
func (d *device) rose(conditions canonical.ConditionSet, at time.Time) {
	d.eventful |= conditions
	for c := range conditions.All() {
		d.events[c] = at
	}
}

// findRecent is for conditions that follow an event. They stay raised through readings that lack
// the input: the event is known to have happened.
func findRecent(e *evidence, c *Criterion) canonical.Finding {
	if e.device.eventful>>e.condition&1 != 0 && e.at.Sub(e.device.events[e.condition]) <= e.thresholds.RiseHold {
		return canonical.Raised
	}
	for _, f := range c.Inputs {
		if canonical.Given(e.row[f]) {
			return canonical.Clear
		}
	}
	return canonical.NotRead
}
