package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// eventful reports whether a condition on XIDs may be raised.
func (x *xids) eventful() bool { return x.latched > 0 || x.repeated || x.everWarned }

// findFatalXID is for codes that stay fatal until they are resolved.
func findFatalXID(e *evidence, _ *Criterion) canonical.Finding {
	return e.onXIDs(e.device.xids.latched > 0)
}

// findRecentXID is for codes that warn for a while.
func findRecentXID(e *evidence, _ *Criterion) canonical.Finding {
	return e.onXIDs(e.anyWarns())
}

// warns reports whether a code warned recently.
func (e *evidence) warns(x *xid) bool { return e.recently(x.warned) || e.recently(x.recorded) }

func (e *evidence) anyWarns() bool {
	codes := e.device.xids.codes
	for i := range codes {
		if e.warns(&codes[i]) {
			return true
		}
	}
	return false
}

// findRepeatedXID is for application codes that repeat on one board alone.
func findRepeatedXID(e *evidence, _ *Criterion) canonical.Finding {
	return e.onXIDs(e.device.xids.repeated)
}

// onXIDs returns the finding of a condition on XIDs, which stays raised even while no source
// reports XIDs.
func (e *evidence) onXIDs(raised bool) canonical.Finding {
	switch {
	case raised:
		return canonical.Raised
	case e.device.xids.told:
		return canonical.Clear
	}
	return canonical.NotRead
}

// recently reports whether at is set and within Thresholds.RiseHold.
func (e *evidence) recently(at time.Time) bool {
	return !at.IsZero() && e.at.Sub(at) <= e.thresholds.RiseHold
}
