package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// evidence is all that a condition may look at, of one board in one reading. A
// Judge has one for all of them, so that the table's functions, which the compiler
// cannot look into, leave nothing on the heap.
type evidence struct {
	row        []float64 // indexed by canonical.Field
	at         time.Time
	device     *device
	thresholds *Thresholds
	condition  canonical.Condition // the one that is looked at
}

// condition is a row of the table of what can be wrong with a board.
type condition struct {
	// state the condition raises unless it is set otherwise.
	state canonical.Health
	// basic conditions are those of which one must have been read before a board
	// on which nothing is raised is called ok.
	basic bool
	// inputs are the readings of which one must be there for anything to be found
	// now. What a stall is told from is in profiling.
	inputs []canonical.Field
	// find is pure and writes to nothing.
	find func(*evidence, []canonical.Field) canonical.Finding
}

// conditions is indexed by canonical.Condition. The basic ones are
// KempnerPulse's.
var conditions = [canonical.NumConditions]condition{
	canonical.CondRowRemapFailure:           {canonical.HealthCrit, true, []canonical.Field{canonical.RowRemapFailure}, findFlag},
	canonical.CondUncorrectableRemappedRows: {canonical.HealthCrit, true, []canonical.Field{canonical.RemappedRowsUncorrectable}, findRemappedRows},
	canonical.CondPCIeReplay:                {canonical.HealthWarn, true, []canonical.Field{canonical.PCIeReplays}, findNews},
	canonical.CondGPUTemperature:            {canonical.HealthHot, true, []canonical.Field{canonical.Temperature}, findHeat},
	canonical.CondMemoryTemperature:         {canonical.HealthHot, true, []canonical.Field{canonical.MemoryTemperature}, findHeat},
	canonical.CondXIDFatal:                  {canonical.HealthCrit, false, []canonical.Field{canonical.XIDLast}, findFatalXID},
	canonical.CondXIDRecent:                 {canonical.HealthWarn, false, []canonical.Field{canonical.XIDLast}, findNews},
	canonical.CondECCDoubleBit:              {canonical.HealthCrit, false, []canonical.Field{canonical.ECCDoubleBitVolatile}, findNews},
	canonical.CondRowRemapPending:           {canonical.HealthWarn, false, []canonical.Field{canonical.RowRemapPending}, findFlag},
	canonical.CondThermalSlowdown:           {canonical.HealthHot, false, []canonical.Field{canonical.ClockEvents}, findThermalSlowdown},
	canonical.CondPowerBrake:                {canonical.HealthWarn, false, []canonical.Field{canonical.ClockEvents}, findPowerBrake},
	canonical.CondNVLinkErrors: {canonical.HealthWarn, false, []canonical.Field{
		canonical.NVLinkCRCFlitErrors, canonical.NVLinkCRCDataErrors, canonical.NVLinkReplayErrors, canonical.NVLinkRecoveryErrors,
	}, findNews},
	canonical.CondProfilingStalled: {canonical.HealthWarn, false, []canonical.Field{canonical.NVMLUtilization}, findStall},
}

// Bits of canonical.ClockEvents; canonical.ClockEventReasons has them all.
const (
	swThermal    = 0x20
	hwThermal    = 0x40
	hwPowerBrake = 0x80
)

// defaultStates returns the state each condition raises.
func defaultStates() (states [canonical.NumConditions]canonical.Health) {
	for i := range conditions {
		states[i] = conditions[i].state
	}
	return states
}

// health returns the worst state that was raised and what was found about each
// condition. Where nothing was raised it is ok if a basic condition's input was
// read, else unknown. A condition whose state is HealthOK is off: it is not
// looked at.
func health(e *evidence, states *[canonical.NumConditions]canonical.Health) (canonical.Health, [canonical.NumConditions]canonical.Finding) {
	var findings [canonical.NumConditions]canonical.Finding
	worst, told := canonical.HealthOK, false
	for i := range conditions {
		if states[i] == canonical.HealthOK {
			continue
		}
		c := &conditions[i]
		e.condition = canonical.Condition(i)
		found := c.find(e, c.inputs)
		findings[i] = found
		told = told || found != canonical.NotRead && c.basic
		if found == canonical.Raised {
			worst = max(worst, states[i])
		}
	}
	if worst == canonical.HealthOK && !told {
		worst = canonical.HealthUnknown
	}
	return worst, findings
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
	return finding(v, v >= e.device.warning)
}

func findThermalSlowdown(e *evidence, inputs []canonical.Field) canonical.Finding {
	v := e.row[inputs[0]]
	return finding(v, uint64(v)&(swThermal|hwThermal) != 0)
}

func findPowerBrake(e *evidence, inputs []canonical.Field) canonical.Finding {
	v := e.row[inputs[0]]
	return finding(v, uint64(v)&hwPowerBrake != 0)
}

// finding says what was found in a reading that is NaN where there was none.
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
