package compute

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// Finders of conditions with two states: they find the worse state unless they set another.

// RecoveryCrit are the driver's recovery actions (canonical.RecoveryAction) that take a board
// out of service: GPU reset, node reboot, and drain and reset.
var RecoveryCrit = [...]float64{1, 2, 4}

func findRecoveryAction(e *evidence, c *Criterion) canonical.Finding {
	v := e.row[c.Inputs[0]]
	e.state = e.mildest()
	for _, action := range RecoveryCrit {
		if v == action {
			e.state = worstStates[e.condition]
		}
	}
	return finding(v, v > 0)
}

// findWornMemory looks at memory that is beyond repair, and at banks without spare rows,
// the last of its inputs, which still work.
func findWornMemory(e *evidence, c *Criterion) canonical.Finding {
	found := canonical.NotRead
	for _, f := range c.Inputs {
		if found != canonical.Raised && f == canonical.MemoryBanksNone {
			e.state = e.mildest()
		}
		found = max(found, finding(e.row[f], e.row[f] > 0))
	}
	return found
}

// Values of canonical.FabricHealth.
const (
	FabricUnhealthy = 2
	FabricLimited   = 3
)

func findFabric(e *evidence, c *Criterion) canonical.Finding {
	health, failure := e.row[canonical.FabricHealth], e.row[canonical.FabricError]
	if health == FabricLimited && !(failure > 0) {
		e.state = e.mildest()
	}
	found := max(finding(health, health == FabricUnhealthy || health == FabricLimited), finding(failure, failure > 0))
	return e.steady(found, e.thresholds.SteadyReadings, 0)
}
