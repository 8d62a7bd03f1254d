package compute

import (
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// FatalXIDs are the codes after which a board is of no use before a reset, or
// ever: those that DCGM's own health check lists as devastating or, of 64, as a
// failure.
var FatalXIDs = [...]float64{
	48,  // double-bit ECC error
	64,  // a memory row could not be remapped
	74,  // NVLink error
	79,  // the GPU has fallen off the bus
	95,  // uncontained memory error
	119, // the GPU's system processor does not answer
	120, // error of the GPU's system processor
	140, // unrecovered ECC error
}

// observeXID compares a board's last code with the previous one. The first reading is no
// change, since nobody knows how old its code is; without a code it says that there was
// none yet. A later reading without a code says nothing: the previous code stays.
func (d *device) observeXID(row []float64, at time.Time) {
	code := row[canonical.XIDLast]
	first := !canonical.Given(d.xid)
	if !canonical.Given(code) {
		if first {
			d.xid = 0
		}
		return
	}
	if !first && code != 0 && code != d.xid {
		d.account.XIDChanges++
		d.account.XIDChanged = at
		d.events[canonical.CondXIDRecent] = at
	}
	d.xid = code
}

func findFatalXID(e *evidence, c *Criterion) canonical.Finding {
	v := e.row[c.Inputs[0]]
	return finding(v, slices.Contains(FatalXIDs[:], v))
}
