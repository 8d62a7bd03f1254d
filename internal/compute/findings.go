package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// mildest returns the milder state of the condition under test.
func (e *evidence) mildest() canonical.Health {
	return canonical.Conditions[e.condition].States.Mildest()
}

func findFlag(e *evidence, inputs []canonical.Field) canonical.Finding {
	v := e.row[inputs[0]]
	return finding(v, v > 0)
}

func findRemappedRows(e *evidence, inputs []canonical.Field) canonical.Finding {
	v := e.row[inputs[0]]
	return finding(v, v > e.thresholds.RemappedRows)
}

func findHeat(e *evidence, inputs []canonical.Field) canonical.Finding {
	v := e.row[inputs[0]]
	found := finding(v, v >= e.device.warning)
	if len(inputs) > 1 {
		margin := e.row[inputs[1]]
		found = max(found, finding(margin, margin <= 0))
	}
	return found
}

// findBits returns the finder for bits of a mask.
func findBits(mask uint64) func(*evidence, []canonical.Field) canonical.Finding {
	return func(e *evidence, inputs []canonical.Field) canonical.Finding {
		v := e.row[inputs[0]]
		return e.steady(finding(v, uint64(v)&mask != 0), e.thresholds.SteadyReadings, 0)
	}
}

// finding returns what a reading, NaN if absent, says about a condition.
func finding(v float64, raised bool) canonical.Finding {
	switch {
	case !canonical.Given(v):
		return canonical.NotRead
	case raised:
		return canonical.Raised
	default:
		return canonical.Clear
	}
}

// recoveryCrit are the driver's recovery actions (canonical.RecoveryAction) that take a board
// out of service: GPU reset, node reboot, and drain and reset.
var recoveryCrit = [...]float64{1, 2, 4}

func findRecoveryAction(e *evidence, inputs []canonical.Field) canonical.Finding {
	v := e.row[inputs[0]]
	e.state = e.mildest()
	for _, action := range recoveryCrit {
		if v == action {
			e.state = worstStates[e.condition]
		}
	}
	return finding(v, v > 0)
}

// findWornMemory looks at memory that is beyond repair, and at banks without spare rows,
// the last of its inputs, which still work.
func findWornMemory(e *evidence, inputs []canonical.Field) canonical.Finding {
	found := canonical.NotRead
	for _, f := range inputs {
		if found != canonical.Raised && f == canonical.MemoryBanksNone {
			e.state = e.mildest()
		}
		found = max(found, finding(e.row[f], e.row[f] > 0))
	}
	return found
}

// Values of canonical.FabricHealth.
const (
	fabricUnhealthy = 2
	fabricLimited   = 3
)

func findFabric(e *evidence, _ []canonical.Field) canonical.Finding {
	health, failure := e.row[canonical.FabricHealth], e.row[canonical.FabricError]
	if health == fabricLimited && !(failure > 0) {
		e.state = e.mildest()
	}
	found := max(finding(health, health == fabricUnhealthy || health == fabricLimited), finding(failure, failure > 0))
	return e.steady(found, e.thresholds.SteadyReadings, 0)
}

// findRecent is for conditions that follow an event. They stay raised through readings that lack
// the input: the event is known to have happened.
func findRecent(e *evidence, _ []canonical.Field) canonical.Finding {
	switch {
	case e.recently(e.device.events[e.condition]):
		return canonical.Raised
	case e.device.counted>>e.condition&1 != 0:
		return canonical.Clear
	}
	return canonical.NotRead
}

// findLinks compares the links that are up with the most that this board had. Fewer links are no
// finding while a restarted board trains them, nor while it is cut into instances, which have no
// links.
func findLinks(e *evidence, _ []canonical.Field) canonical.Finding {
	up, d, t := e.row[canonical.NVLinksActive], e.device, e.thresholds
	training := e.at.Sub(d.restarts.at) < t.LinkTraining
	fewer := up < d.links.most && !training && !d.cut
	return max(findRecent(e, nil), e.steady(finding(up, fewer), t.SteadyReadings, 0))
}

func findStall(e *evidence, _ []canonical.Field) canonical.Finding {
	return e.steady(e.profiling, e.thresholds.StalledReadings, e.thresholds.StalledSpan)
}

// warns reports whether a code warned recently.
func (e *evidence) warns(x *xid) bool { return e.recently(x.warned) || e.recently(x.recorded) }

// recently reports whether at is set and within Thresholds.RiseHold.
func (e *evidence) recently(at time.Time) bool {
	return !at.IsZero() && e.at.Sub(at) <= e.thresholds.RiseHold
}

// findFatalXID is for codes that stay fatal until they are resolved.
func findFatalXID(e *evidence, _ []canonical.Field) canonical.Finding {
	return e.onXIDs(e.device.xids.latched > 0)
}

// findRecentXID is for codes that warn for a while.
func findRecentXID(e *evidence, _ []canonical.Field) canonical.Finding {
	codes := e.device.xids.codes
	for i := range codes {
		if e.warns(&codes[i]) {
			return canonical.Raised
		}
	}
	return e.onXIDs(false)
}

// findRepeatedXID is for application codes that repeat on one board alone.
func findRepeatedXID(e *evidence, _ []canonical.Field) canonical.Finding {
	return e.onXIDs(e.device.xids.repeated)
}

// onXIDs returns the finding of a condition on XIDs, which stays raised even while no source
// reports XIDs.
func (e *evidence) onXIDs(raised bool) canonical.Finding {
	switch {
	case raised:
		return canonical.Raised
	case e.device.xids.given:
		return canonical.Clear
	}
	return canonical.NotRead
}
