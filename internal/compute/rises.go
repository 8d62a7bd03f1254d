package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// rising are the error counters whose rise raises a condition, whatever their value.
var rising = [...]struct {
	field     canonical.Field
	condition canonical.Condition
}{
	{canonical.PCIeReplays, canonical.CondPCIeReplay},
	{canonical.ECCDoubleBitVolatile, canonical.CondECCDoubleBit},
	{canonical.NVLinkCRCFlitErrors, canonical.CondNVLinkErrors},
	{canonical.NVLinkCRCDataErrors, canonical.CondNVLinkErrors},
	{canonical.NVLinkReplayErrors, canonical.CondNVLinkErrors},
	{canonical.NVLinkRecoveryErrors, canonical.CondNVLinkErrors},
	{canonical.NVLinkReceiveMalformed, canonical.CondNVLinkErrors},
	{canonical.NVLinkReceiveDropped, canonical.CondNVLinkErrors},
	{canonical.NVLinkReceiveErrors, canonical.CondNVLinkErrors},
	{canonical.NVLinkReceiveRemote, canonical.CondNVLinkErrors},
	{canonical.NVLinkReceiveGeneral, canonical.CondNVLinkErrors},
	{canonical.NVLinkIntegrityErrors, canonical.CondNVLinkErrors},
	{canonical.NVLinkRecoveriesFailed, canonical.CondNVLinkErrors},
	{canonical.NVLinkRecoveriesFailed, canonical.CondNVLinkDown},
	{canonical.NVLinkSymbolErrors, canonical.CondNVLinkErrors},
	{canonical.NVLinkEffectiveErrors, canonical.CondNVLinkErrors},
}

// observeRises compares a board's counters with their previous values. A first value is no
// rise, and a decrease is a reset of the counter.
func (d *device) observeRises(row []float64, at time.Time) {
	for i, r := range rising {
		v := row[r.field]
		if !canonical.Given(v) {
			continue
		}
		if v > d.counters[i] { // never if that is NaN
			d.events[r.condition] = at
			d.eventful |= 1 << r.condition
		}
		d.counters[i] = v
	}
}

// findRecent is for conditions that follow an event. They stay raised through readings
// that lack the input: that the event happened is known.
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
