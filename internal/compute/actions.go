package compute

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// recovery has the Action for each value of the driver's recovery action. To drain peer-to-peer
// traffic, end the programs that use it; then the driver asks for something else or nothing. The
// IMEX domain, memory shared by several nodes, is not part of the board: someone has to look.
var recovery = [...]canonical.Action{
	canonical.ActionNone,
	canonical.ActionResetGPU,
	canonical.ActionRebootNode,
	canonical.ActionRestartApplication,
	canonical.ActionResetGPU, // drain first
	canonical.ActionCheckHardware,
}

// recoveryActionOf returns the Action for a value of canonical.RecoveryAction. An unknown
// value asks for an inspection.
func recoveryActionOf(value float64) canonical.Action {
	switch {
	case !(value > 0):
		return canonical.ActionNone
	case value < float64(len(recovery)):
		return recovery[int(value)]
	}
	return canonical.ActionCheckHardware
}

// ofXIDs are the conditions on XIDs.
const ofXIDs canonical.ConditionSet = 1<<canonical.CondXIDFatal | 1<<canonical.CondXIDRecent | 1<<canonical.CondXIDRepeated

// asks returns the action that a condition asks for when raised in a state.
func (e *evidence) asks(c canonical.Condition, state canonical.Health) canonical.Action {
	action := c.ActionIn(state)
	switch c {
	case canonical.CondXIDFatal:
		for i := range e.device.xids.codes {
			if x := &e.device.xids.codes[i]; !x.fatal.IsZero() {
				action = max(action, x.latch.action)
			}
		}
	case canonical.CondXIDRecent:
		for i := range e.device.xids.codes {
			if x := &e.device.xids.codes[i]; e.warns(x) {
				action = max(action, x.asks)
			}
		}
	case canonical.CondRecoveryAction:
		action = recoveryActionOf(e.row[canonical.RecoveryAction])
	}
	return action
}

// action returns the greatest action that the raised conditions ask for. The driver knows better
// than the table what an XID takes, and also knows of errors without a condition.
func (e *evidence) action(v *canonical.Verdict) canonical.Action {
	var codes, others canonical.Action
	for c := range v.Findings.Raised.All() {
		if 1<<c&ofXIDs != 0 {
			codes = max(codes, e.asks(c, v.States[c]))
		} else {
			others = max(others, e.asks(c, v.States[c]))
		}
	}
	if driver := recoveryActionOf(e.row[canonical.RecoveryAction]); driver != canonical.ActionNone {
		codes = driver
	}
	return max(codes, others)
}
