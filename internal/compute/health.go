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
	memory     *memory
	switches   []canonical.SwitchFault // of all nodes
	thresholds *Thresholds
	hold       time.Duration // of fatal XIDs
	rates      [canonical.NumConditions]rate
	profiling  canonical.Finding   // of this reading
	condition  canonical.Condition // the one under test
	states     canonical.HealthSet // that it can raise
	state      canonical.Health    // its state if raised: the worst unless the finder sets another
}

// Criterion is a row of the table of health conditions.
type Criterion struct {
	find func(*evidence, []canonical.Field) canonical.Finding
	// Inputs: without any of these readings the condition is NotRead. XIDs may also come from elsewhere.
	Inputs []canonical.Field
	// rises is how many of the Inputs, from the first, are counters, whose rate rate limits.
	rises int
	rate  func(*Thresholds) rate
}

// conditions is indexed by canonical.Condition.
var conditions = [canonical.NumConditions]Criterion{
	canonical.CondRowRemapFailure:           {find: findFlag, Inputs: []canonical.Field{canonical.RowRemapFailure}},
	canonical.CondUncorrectableRemappedRows: {find: findRemappedRows, Inputs: []canonical.Field{canonical.RemappedRowsUncorrectable}, rises: 1, rate: anyWithin(24 * time.Hour)},
	canonical.CondPCIeReplay: {find: findRises, Inputs: []canonical.Field{canonical.PCIeReplays}, rises: 1,
		// What rose until a minute ago, as at the last scrape, belongs to the minute before.
		rate: func(t *Thresholds) rate { return rate{t.PCIeReplays, time.Minute - 1, t.RiseHold} }},
	canonical.CondPCIeDegraded:        {find: findNarrowLink, Inputs: []canonical.Field{canonical.PCIeLinkWidth}},
	canonical.CondGPUTemperature:      {find: findHeat, Inputs: []canonical.Field{canonical.Temperature, canonical.TemperatureMargin}},
	canonical.CondMemoryTemperature:   {find: findHeat, Inputs: []canonical.Field{canonical.MemoryTemperature}},
	canonical.CondRecoveryAction:      {find: findRecoveryAction, Inputs: []canonical.Field{canonical.RecoveryAction}},
	canonical.CondXIDFatal:            {find: findFatalXID, Inputs: []canonical.Field{canonical.XIDLast}},
	canonical.CondXIDRecent:           {find: findRecentXID, Inputs: []canonical.Field{canonical.XIDLast}},
	canonical.CondXIDRepeated:         {find: findRepeatedXID, Inputs: []canonical.Field{canonical.XIDLast}},
	canonical.CondECCDoubleBit:        {find: findRises, Inputs: []canonical.Field{canonical.ECCDoubleBitVolatile}, rises: 1, rate: recent},
	canonical.CondRowRemapPending:     {find: findFlag, Inputs: []canonical.Field{canonical.RowRemapPending}},
	canonical.CondRetiredPagesPending: {find: findFlag, Inputs: []canonical.Field{canonical.RetiredPagesPending}},
	canonical.CondMemoryWorn: {find: findWornMemory, Inputs: []canonical.Field{
		canonical.SRAMThresholdExceeded, canonical.MemoryUnrepairable, canonical.MemoryBanksNone,
	}},
	canonical.CondThermalSlowdown: {find: findBits(swThermal | hwThermal), Inputs: []canonical.Field{canonical.ClockEvents}},
	canonical.CondPowerBrake:      {find: findBits(hwPowerBrake), Inputs: []canonical.Field{canonical.ClockEvents}},
	canonical.CondNVLinkErrors: {find: findRises, Inputs: linkErrors, rises: len(linkErrors),
		rate: func(*Thresholds) rate { return rate{most: 10, within: 10 * time.Minute} }},
	canonical.CondNVLinkFlapping: {find: findRises, Inputs: []canonical.Field{canonical.NVLinkRecoveriesDone}, rises: 1,
		rate: func(*Thresholds) rate { return rate{most: 4, within: 24 * time.Hour} }},
	canonical.CondNVLinkDown: {find: findLinks, Inputs: []canonical.Field{canonical.NVLinkRecoveriesFailed, canonical.NVLinksActive}, rises: 1, rate: recent},
	canonical.CondFabric: {find: findFabric, Inputs: []canonical.Field{
		canonical.FabricStatus, canonical.FabricHealth, canonical.FabricHealthMask, canonical.FabricError,
	}},
	canonical.CondNVSwitch:         {find: findSwitch},
	canonical.CondProfilingStalled: {find: findStall, Inputs: []canonical.Field{canonical.NVMLUtilization}},
}

// recent is the rate of counters that raise a condition by any rise, for Thresholds.RiseHold.
func recent(t *Thresholds) rate { return rate{within: t.RiseHold} }

// anyWithin is that of counters that do so for a fixed time.
func anyWithin(span time.Duration) func(*Thresholds) rate {
	return func(*Thresholds) rate { return rate{within: span} }
}

// linkErrors are the errors of NVLink: not discards, nor recoveries, of which each failure also raises nvlink_down.
var linkErrors = []canonical.Field{
	canonical.NVLinkCRCFlitErrors, canonical.NVLinkCRCDataErrors, canonical.NVLinkReplayErrors, canonical.NVLinkRecoveryErrors,
	canonical.NVLinkReceiveMalformed, canonical.NVLinkReceiveDropped, canonical.NVLinkReceiveErrors,
	canonical.NVLinkReceiveRemote, canonical.NVLinkReceiveGeneral, canonical.NVLinkIntegrityErrors,
	canonical.NVLinkSymbolErrors, canonical.NVLinkEffectiveErrors,
}

// numCounters is how many counters of a board the conditions follow.
var numCounters = func() (n int) {
	for _, c := range conditions {
		n += c.rises
	}
	return n
}()

// Criteria returns the table of conditions, for programs that say what a verdict lacks. Do not write to the Inputs.
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
// none is raised, the board is ok if an input of a basic condition was read and no fatal XID is
// unresolved, else its health is unknown. A condition without a state is off.
func (e *evidence) health(states *[canonical.NumConditions]canonical.HealthSet, v *canonical.Verdict) {
	basic := false
	v.Health = canonical.HealthOK
	for c := range canonical.NumConditions {
		if states[c] == 0 {
			continue
		}
		e.condition, e.states, e.state = c, states[c], worstStates[c]
		found := conditions[c].find(e, conditions[c].Inputs)
		v.Findings.Set(c, found)
		basic = basic || found != canonical.NotRead && canonical.Conditions[c].Basic
		if found == canonical.Raised {
			if !states[c].Has(e.state) { // not a configured state
				e.state = states[c].Worst()
			}
			v.States[c] = e.state
			v.Health = max(v.Health, e.state)
		}
	}
	if v.Health == canonical.HealthOK && (!basic || (e.device.xids.latched > 0 || e.device.xids.doubted) && states[canonical.CondXIDFatal] != 0) {
		v.Health = canonical.HealthUnknown
	}
}
