package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// evidence is what a condition may look at: one board in one reading. A Judge reuses one, because
// a new one, passed to the functions of a table, would escape to the heap each time.
type evidence struct {
	row        []float64 // indexed by canonical.Field
	at         time.Time
	reading    uint64 // its number
	device     *device
	thresholds *Thresholds
	profiling  canonical.Finding   // of this reading
	condition  canonical.Condition // the one under test
	state      canonical.Health    // its state if raised: the worst unless the finder sets another
}

// Test is how the inputs of a condition decide it.
type Test uint8

// The tests. Those before Rose, except for FatalXID, look at one reading.
const (
	Positive         Test = iota // the input is above 0
	TooManyRows                  // above Thresholds.RemappedRows
	TooHot                       // at or above the model's warning temperature, or no margin, the second input, is left
	FatalXID                     // a fatal one occurred and is not resolved
	RecoveryAction               // the driver asks for one
	WornMemory                   // any input is above 0; the last alone gives the milder state
	Rose                         // an input rose within Thresholds.RiseHold
	RecentXID                    // a warning occurred within Thresholds.RiseHold
	RepeatedXID                  // an application's repeats, on this board alone
	AnyBit                       // the input has a bit of Criterion.Mask, in Thresholds.SteadyReadings readings
	LinksDown                    // the first input Rose, or fewer links are up than the board had, in as many readings
	Fabric                       // unhealthy, limited or failed in as many readings
	ProfilingStalled             // see profiled
	numTests
)

// finders is indexed by Test.
var finders = [numTests]func(*evidence, *Criterion) canonical.Finding{
	Positive:         findFlag,
	TooManyRows:      findRemappedRows,
	TooHot:           findHeat,
	FatalXID:         findFatalXID,
	RecoveryAction:   findRecoveryAction,
	WornMemory:       findWornMemory,
	Rose:             findRecent,
	RecentXID:        findRecentXID,
	RepeatedXID:      findRepeatedXID,
	AnyBit:           findBits,
	LinksDown:        findLinks,
	Fabric:           findFabric,
	ProfilingStalled: findStall,
}

// Criterion is a row of the table of health conditions.
type Criterion struct {
	Test Test
	// Inputs: without any of these readings the condition is NotRead. For a stall see
	// profiling; XIDs may also come from elsewhere.
	Inputs []canonical.Field
	// Mask of AnyBit, bits of canonical.ClockEventReasons.
	Mask uint64
}

// conditions is indexed by canonical.Condition.
var conditions = [canonical.NumConditions]Criterion{
	canonical.CondRowRemapFailure:           {Test: Positive, Inputs: []canonical.Field{canonical.RowRemapFailure}},
	canonical.CondUncorrectableRemappedRows: {Test: TooManyRows, Inputs: []canonical.Field{canonical.RemappedRowsUncorrectable}},
	canonical.CondPCIeReplay:                {Test: Rose, Inputs: []canonical.Field{canonical.PCIeReplays}},
	canonical.CondGPUTemperature:            {Test: TooHot, Inputs: []canonical.Field{canonical.Temperature, canonical.TemperatureMargin}},
	canonical.CondMemoryTemperature:         {Test: TooHot, Inputs: []canonical.Field{canonical.MemoryTemperature}},
	canonical.CondRecoveryAction:            {Test: RecoveryAction, Inputs: []canonical.Field{canonical.RecoveryAction}},
	canonical.CondXIDFatal:                  {Test: FatalXID, Inputs: []canonical.Field{canonical.XIDLast}},
	canonical.CondXIDRecent:                 {Test: RecentXID, Inputs: []canonical.Field{canonical.XIDLast}},
	canonical.CondXIDRepeated:               {Test: RepeatedXID, Inputs: []canonical.Field{canonical.XIDLast}},
	canonical.CondECCDoubleBit:              {Test: Rose, Inputs: []canonical.Field{canonical.ECCDoubleBitVolatile}},
	canonical.CondRowRemapPending:           {Test: Positive, Inputs: []canonical.Field{canonical.RowRemapPending}},
	canonical.CondRetiredPagesPending:       {Test: Positive, Inputs: []canonical.Field{canonical.RetiredPagesPending}},
	canonical.CondMemoryWorn: {Test: WornMemory, Inputs: []canonical.Field{
		canonical.SRAMThresholdExceeded, canonical.MemoryUnrepairable, canonical.MemoryBanksNone,
	}},
	canonical.CondThermalSlowdown: {Test: AnyBit, Inputs: []canonical.Field{canonical.ClockEvents}, Mask: swThermal | hwThermal},
	canonical.CondPowerBrake:      {Test: AnyBit, Inputs: []canonical.Field{canonical.ClockEvents}, Mask: hwPowerBrake},
	canonical.CondNVLinkErrors: {Test: Rose, Inputs: []canonical.Field{
		canonical.NVLinkCRCFlitErrors, canonical.NVLinkCRCDataErrors, canonical.NVLinkReplayErrors, canonical.NVLinkRecoveryErrors,
		canonical.NVLinkReceiveMalformed, canonical.NVLinkReceiveDropped, canonical.NVLinkReceiveErrors,
		canonical.NVLinkReceiveRemote, canonical.NVLinkReceiveGeneral, canonical.NVLinkIntegrityErrors,
		canonical.NVLinkRecoveriesFailed, canonical.NVLinkSymbolErrors, canonical.NVLinkEffectiveErrors,
	}},
	canonical.CondNVLinkDown:       {Test: LinksDown, Inputs: []canonical.Field{canonical.NVLinkRecoveriesFailed, canonical.NVLinksActive}},
	canonical.CondFabric:           {Test: Fabric, Inputs: []canonical.Field{canonical.FabricHealth, canonical.FabricError}},
	canonical.CondProfilingStalled: {Test: ProfilingStalled, Inputs: []canonical.Field{canonical.NVMLUtilization}},
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

// worstStates are the worst states of the conditions.
var worstStates = func() (states [canonical.NumConditions]canonical.Health) {
	for i := range states {
		states[i] = canonical.Conditions[i].States.Worst()
	}
	return states
}()

// health sets the finding of each condition, the state that it raises, and the worst of these. If
// none is raised, the board is ok if an input of a basic condition was read, else its health is
// unknown. A condition without a state is off.
func (e *evidence) health(s *screen, v *canonical.Verdict) {
	read, test := s.look(e)
	v.Findings.Read = read
	worst := canonical.HealthOK
	for c := range test.All() {
		e.condition, e.state = c, worstStates[c]
		found := finders[conditions[c].Test](e, &conditions[c])
		v.Findings.Set(c, found)
		if found == canonical.Raised {
			if !s.states[c].Has(e.state) { // not a configured state
				e.state = s.states[c].Worst()
			}
			v.States[c] = e.state
			worst = max(worst, e.state)
		}
	}
	if worst == canonical.HealthOK && v.Findings.Read&s.basic == 0 {
		worst = canonical.HealthUnknown
	}
	v.Health = worst
}
