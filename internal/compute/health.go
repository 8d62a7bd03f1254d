package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// evidence is all that a condition may look at, of one board in one reading. A Judge has
// one for all of them: passed to the functions of a table, a new one would escape to the
// heap each time.
type evidence struct {
	row        []float64 // indexed by canonical.Field
	at         time.Time
	device     *device
	thresholds *Thresholds
	condition  canonical.Condition // the one under test
}

// Test is how the inputs of a condition decide it.
type Test uint8

// The tests. All but Rose, Changed and ProfilingStalled look at one reading.
const (
	Positive         Test = iota // the input is above 0
	TooManyRows                  // above Thresholds.RemappedRows
	TooHot                       // at or above the model's warning temperature
	Fatal                        // one of FatalXIDs
	AnyBit                       // has a bit of Criterion.Mask
	Rose                         // an input rose within Thresholds.RiseHold
	Changed                      // became another code but 0 within Thresholds.RiseHold
	ProfilingStalled             // see Profiled
	numTests
)

// finders is indexed by Test. They only read.
var finders = [numTests]func(*evidence, *Criterion) canonical.Finding{
	Positive:         findFlag,
	TooManyRows:      findRemappedRows,
	TooHot:           findHeat,
	Fatal:            findFatalXID,
	AnyBit:           findBits,
	Rose:             findRecent,
	Changed:          findRecent,
	ProfilingStalled: findStall,
}

// Criterion is a row of the table of what can be wrong with a board.
type Criterion struct {
	// State the condition raises unless it is set otherwise.
	State canonical.Health
	// Basic: one of the basic conditions must have been read for a board without a
	// raised condition to be ok rather than unknown.
	Basic bool
	Test  Test
	// Inputs: without any of these readings the condition is NotRead. For a stall see
	// profiling.
	Inputs []canonical.Field
	// Mask of AnyBit, bits of canonical.ClockEventReasons.
	Mask uint64
}

// conditions is indexed by canonical.Condition. The basic ones are
// KempnerPulse's.
var conditions = [canonical.NumConditions]Criterion{
	canonical.CondRowRemapFailure:           {canonical.HealthCrit, true, Positive, []canonical.Field{canonical.RowRemapFailure}, 0},
	canonical.CondUncorrectableRemappedRows: {canonical.HealthCrit, true, TooManyRows, []canonical.Field{canonical.RemappedRowsUncorrectable}, 0},
	canonical.CondPCIeReplay:                {canonical.HealthWarn, true, Rose, []canonical.Field{canonical.PCIeReplays}, 0},
	canonical.CondGPUTemperature:            {canonical.HealthHot, true, TooHot, []canonical.Field{canonical.Temperature}, 0},
	canonical.CondMemoryTemperature:         {canonical.HealthHot, true, TooHot, []canonical.Field{canonical.MemoryTemperature}, 0},
	canonical.CondXIDFatal:                  {canonical.HealthCrit, false, Fatal, []canonical.Field{canonical.XIDLast}, 0},
	canonical.CondXIDRecent:                 {canonical.HealthWarn, false, Changed, []canonical.Field{canonical.XIDLast}, 0},
	canonical.CondECCDoubleBit:              {canonical.HealthCrit, false, Rose, []canonical.Field{canonical.ECCDoubleBitVolatile}, 0},
	canonical.CondRowRemapPending:           {canonical.HealthWarn, false, Positive, []canonical.Field{canonical.RowRemapPending}, 0},
	canonical.CondThermalSlowdown:           {canonical.HealthHot, false, AnyBit, []canonical.Field{canonical.ClockEvents}, swThermal | hwThermal},
	canonical.CondPowerBrake:                {canonical.HealthWarn, false, AnyBit, []canonical.Field{canonical.ClockEvents}, hwPowerBrake},
	canonical.CondNVLinkErrors: {canonical.HealthWarn, false, Rose, []canonical.Field{
		canonical.NVLinkCRCFlitErrors, canonical.NVLinkCRCDataErrors, canonical.NVLinkReplayErrors, canonical.NVLinkRecoveryErrors,
	}, 0},
	canonical.CondProfilingStalled: {canonical.HealthWarn, false, ProfilingStalled, []canonical.Field{canonical.NVMLUtilization}, 0},
}

// Criteria returns the table of conditions, for programs that express the same in another
// language. Do not write to the Inputs.
func Criteria() [canonical.NumConditions]Criterion { return conditions }

// Bits of canonical.ClockEvents; canonical.ClockEventReasons has them all.
const (
	swThermal    = 0x20
	hwThermal    = 0x40
	hwPowerBrake = 0x80
)

// defaultStates returns the state each condition raises.
func defaultStates() (states [canonical.NumConditions]canonical.Health) {
	for i := range conditions {
		states[i] = conditions[i].State
	}
	return states
}

// health returns the worst state that is raised, and the finding of each condition. If
// none is raised, the state is ok where an input of a basic condition was read, else
// unknown. A condition whose state is HealthOK is off.
func health(e *evidence, states *[canonical.NumConditions]canonical.Health) (canonical.Health, [canonical.NumConditions]canonical.Finding) {
	var findings [canonical.NumConditions]canonical.Finding
	worst, read := canonical.HealthOK, false
	for i := range conditions {
		if states[i] == canonical.HealthOK {
			continue
		}
		c := &conditions[i]
		e.condition = canonical.Condition(i)
		found := finders[c.Test](e, c)
		findings[i] = found
		read = read || found != canonical.NotRead && c.Basic
		if found == canonical.Raised {
			worst = max(worst, states[i])
		}
	}
	if worst == canonical.HealthOK && !read {
		worst = canonical.HealthUnknown
	}
	return worst, findings
}

func findFlag(e *evidence, c *Criterion) canonical.Finding {
	v := e.row[c.Inputs[0]]
	return finding(v, v > 0)
}

func findRemappedRows(e *evidence, c *Criterion) canonical.Finding {
	v := e.row[c.Inputs[0]]
	return finding(v, v > e.thresholds.RemappedRows)
}

func findHeat(e *evidence, c *Criterion) canonical.Finding {
	v := e.row[c.Inputs[0]]
	return finding(v, v >= e.device.warning)
}

func findBits(e *evidence, c *Criterion) canonical.Finding {
	v := e.row[c.Inputs[0]]
	return finding(v, uint64(v)&c.Mask != 0)
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
