package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// rising are the counters of errors whose rise is news, whatever their height,
// and the conditions that tell of it.
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
}

// observeRises takes in a board's counters. A first reading is no rise, whatever
// it is, and a decrease is a reset of the counter.
func (d *device) observeRises(row []float64, at time.Time) {
	for i, r := range rising {
		v := row[r.field]
		if !canonical.Given(v) {
			continue
		}
		if v > d.counters[i] { // never if that is NaN
			d.news[r.condition] = at
		}
		d.counters[i] = v
	}
}

// findNews is for conditions that tell of events. They stay raised through
// readings that lack the input: that it happened is known.
func findNews(e *evidence, c *Criterion) canonical.Finding {
	news := e.device.news[e.condition]
	if !news.IsZero() && e.at.Sub(news) <= e.thresholds.RiseHold {
		return canonical.Raised
	}
	for _, f := range c.Inputs {
		if canonical.Given(e.row[f]) {
			return canonical.Clear
		}
	}
	return canonical.NotRead
}
