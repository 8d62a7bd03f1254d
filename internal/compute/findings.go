package compute

import (
	"slices"
	"strings"
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

// findRemappedRows: rows that the board repaired are a fault only while they are recent, or if
// there are too many. If the condition can only be crit, any row is, as in KempnerPulse.
func findRemappedRows(e *evidence, inputs []canonical.Field) canonical.Finding {
	v := e.row[inputs[0]]
	if e.states == canonical.RaisesCrit {
		return finding(v, v > 0)
	}
	if v >= e.thresholds.RemappedRows {
		return canonical.Raised
	}
	e.state = e.mildest()
	return findRises(e, nil)
}

// findNarrowLink: fewer lanes than board and slot allow. A reading of an idle board neither proves
// that the link is bad nor that it is not.
func findNarrowLink(e *evidence, _ []canonical.Field) canonical.Finding {
	const span, busyFrom = 10 * time.Minute, 0.20 // of GPU-Util
	width, most := e.row[canonical.PCIeLinkWidth], e.row[canonical.PCIeLinkWidthMax]
	since := &e.device.narrow
	switch busy := e.row[canonical.NVMLUtilization] >= busyFrom; {
	case !canonical.Given(width) || !canonical.Given(most):
		return canonical.NotRead
	case width >= most:
		*since = time.Time{}
	case since.IsZero() && busy:
		*since = e.at
	}
	return finding(width, !since.IsZero() && e.at.Sub(*since) >= span)
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

// Values of canonical.FabricStatus and canonical.FabricHealth, and bits of canonical.FabricHealthMask.
const (
	fabricNotStarted, fabricInProgress, fabricDone, fabricFailed = 1, 2, 3, 4
	fabricUnhealthy, fabricLimited                               = 2, 3
	degradedBandwidth, routeRecovery                             = 1 << 0, 1 << 2
	routeUnhealthy, accessTimeout                                = 1 << 4, 1 << 6
)

// managerPatience is how long the fabric manager may take to set up a board.
const managerPatience = 5 * time.Minute

func findFabric(e *evidence, inputs []canonical.Field) canonical.Finding {
	status, health, failure := e.row[canonical.FabricStatus], e.row[canonical.FabricHealth], e.row[canonical.FabricError]
	var mask uint64
	if v := e.row[canonical.FabricHealthMask]; canonical.Given(v) {
		mask = uint64(v)
	}
	d := e.device
	waits := status == fabricNotStarted || status == fabricInProgress
	switch {
	case !waits:
		d.unmanaged = time.Time{}
	case d.unmanaged.IsZero():
		d.unmanaged = e.at
	}
	d.managed = d.managed || status == fabricDone
	late := waits && e.at.Sub(d.unmanaged) >= managerPatience
	crit := status == fabricFailed || health == fabricUnhealthy || failure > 0 || mask&(routeUnhealthy|accessTimeout) != 0 ||
		late && (d.managed || e.memory.managedPeer(d))
	if !crit {
		e.state = e.mildest()
	}
	found := canonical.NotRead
	for _, f := range inputs {
		found = max(found, finding(e.row[f], crit || late || health == fabricLimited || mask&(degradedBandwidth|routeRecovery) != 0))
	}
	return e.steady(found, e.thresholds.SteadyReadings, 0)
}

// findSwitch is for the switches of a board's node.
func findSwitch(e *evidence, _ []canonical.Field) canonical.Finding {
	found := canonical.NotRead
	for i := range e.switches {
		if s := &e.switches[i]; s.Hostname == e.device.Hostname {
			found = max(found, canonical.Clear)
			if s.Code != 0 {
				found = canonical.Raised
			}
		}
	}
	return found
}

// findRises is for conditions that follow rises of counters. They stay raised through readings
// that lack the input: the rise is known to have happened.
func findRises(e *evidence, _ []canonical.Field) canonical.Finding {
	c, d := e.condition, e.device
	switch {
	case d.rises[c].raised(e.at, &e.rates[c]):
		return canonical.Raised
	case d.counted>>c&1 != 0:
		return canonical.Clear
	}
	return canonical.NotRead
}

// baseboards are parts of the names of models that are built for baseboards only, whose boards
// have all links up. NVIDIA H100 80GB HBM3 is the SXM board.
var baseboards = []string{"SXM", "H100 80GB HBM3", "B200", "B300"}

// baseboardModels are whole names of such models, which begin those of others.
var baseboardModels = []string{"NVIDIA H200", "NVIDIA H800", "NVIDIA H20"}

// findLinks compares the links that are up with the most that this board had, and with those of
// its peers. Fewer links are no finding while a restarted board trains them, nor while it is cut
// into instances, which have no links.
func findLinks(e *evidence, _ []canonical.Field) canonical.Finding {
	up, d, t := e.row[canonical.NVLinksActive], e.device, e.thresholds
	found := findRises(e, nil)
	training := !d.restarts.at.IsZero() && e.at.Sub(d.restarts.at) < t.LinkTraining
	lost, fewer := up < d.links.most, canonical.Given(up) && up < e.memory.linksOfPeers(d)
	if training || d.cut {
		lost, fewer = false, false
	}
	hasFabric := e.row[canonical.FabricStatus] > 0 || e.row[canonical.FabricHealth] > 0 || e.row[canonical.FabricHealthMask] > 0 ||
		slices.ContainsFunc(baseboards, func(part string) bool { return strings.Contains(d.Model, part) }) ||
		slices.Contains(baseboardModels, d.Model)
	if found != canonical.Raised && !lost && !hasFabric {
		e.state = e.mildest()
	}
	return max(found, e.steady(finding(up, lost || fewer), t.SteadyReadings, 0))
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

// findFatalXID is for codes that stay fatal until they are resolved. Of those that nothing resolved
// for too long, nothing is known.
func findFatalXID(e *evidence, _ []canonical.Field) canonical.Finding {
	for i := range e.device.xids.codes {
		if fatal := e.device.xids.codes[i].fatal; !fatal.IsZero() && e.at.Sub(fatal) <= e.hold {
			return canonical.Raised
		}
	}
	if e.device.xids.latched > 0 {
		return canonical.NotRead
	}
	return e.onXIDs(false)
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
