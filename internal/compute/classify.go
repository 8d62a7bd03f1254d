package compute

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// Signal is an input of the cascade's rules.
type Signal uint8

// The signals. All but SignalSM are known or missing; SM activity, if not read, is an interval.
const (
	SignalUtilization Signal = iota // the composite score
	SignalSM
	SignalTensor
	SignalDRAM
	SignalFP64
	SignalEngine   // graphics engine activity, or NVML utilization if that is absent
	SignalTransfer // 1 if much is copied, else 0
	numSignals
)

// interval holds every value that a signal may have. A reading is one value, lo = hi; NaN is a
// missing reading.
type interval struct{ lo, hi float64 }

// signals is indexed by Signal.
type signals [numSignals]interval

// Bound is one condition of a rule: the signal at or above the figure, or, with
// Below, below it. A missing signal is below every figure.
type Bound struct {
	Signal Signal
	Below  bool
	Figure float64
}

func atLeast(s Signal, figure float64) Bound { return Bound{s, false, figure} }
func below(s Signal, figure float64) Bound   { return Bound{s, true, figure} }

// Rule gives its class to a device within all of its bounds.
type Rule struct {
	Class  canonical.Class
	Bounds []Bound
}

// Cascade returns the rules of the workload classes; the first that holds gives
// the class. The last has no bounds. The caller owns them.
func Cascade(t *Thresholds) []Rule {
	return []Rule{
		{canonical.Idle, []Bound{below(SignalUtilization, t.IdleUtilization), below(SignalEngine, t.IdleEngine), below(SignalDRAM, t.IdleDRAM), below(SignalTransfer, 1)}},
		{canonical.TensorHeavyCompute, []Bound{atLeast(SignalTensor, t.TensorHeavyTensor), atLeast(SignalSM, t.TensorHeavySM)}},
		{canonical.TensorCompute, []Bound{atLeast(SignalTensor, t.TensorTensor), atLeast(SignalSM, t.TensorSM)}},
		{canonical.FP64HPCCompute, []Bound{atLeast(SignalFP64, t.FP64FP64), atLeast(SignalSM, t.FP64SM)}},
		{canonical.IOOrDataLoading, []Bound{atLeast(SignalTransfer, 1), below(SignalSM, t.IOSM)}},
		{canonical.MemoryBound, []Bound{atLeast(SignalDRAM, t.MemoryBoundDRAM), below(SignalSM, t.MemoryBoundSM)}},
		{canonical.ComputeHeavy, []Bound{atLeast(SignalSM, t.ComputeHeavySM)}},
		{canonical.ComputeActive, []Bound{atLeast(SignalSM, t.ComputeActiveSM)}},
		{canonical.MemoryActive, []Bound{atLeast(SignalDRAM, t.MemoryActiveDRAM)}},
		{canonical.BusyLowSMUse, []Bound{atLeast(SignalEngine, t.BusyEngine), below(SignalSM, t.BusySM)}},
		{canonical.LowUtilization, []Bound{below(SignalEngine, t.LowEngine), below(SignalSM, t.LowSM), below(SignalDRAM, t.LowDRAM)}},
		{canonical.MixedOrModerate, nil},
	}
}

// walk returns the class of the first rule that holds, or ClassUnknown if a rule before it may
// hold. So the class is unknown exactly if two values within the signals' intervals give two
// classes.
func walk(rules []Rule, s *signals) canonical.Class {
	for i := range rules {
		surely, perhaps := rules[i].holds(s)
		if surely {
			return rules[i].Class
		}
		if perhaps {
			break
		}
	}
	return canonical.ClassUnknown
}

// holds reports whether the rule holds for every value within the intervals, and whether it
// holds for some. A missing reading is below every figure.
func (r *Rule) holds(s *signals) (surely, perhaps bool) {
	surely = true
	for _, b := range r.Bounds {
		v := &s[b.Signal]
		always, sometimes := v.lo >= b.Figure, v.hi >= b.Figure
		if b.Below {
			always, sometimes = !sometimes, !always
		}
		if !sometimes {
			return false, false
		}
		surely = surely && always
	}
	return surely, true
}

// read takes the signals from a device's readings, indexed by canonical.Field,
// and its score.
func (s *signals) read(row []float64, score float64, missing Missing, t *Thresholds) {
	s[SignalUtilization] = exactly(score)
	s[SignalSM] = smInterval(row, missing)
	s[SignalTensor] = exactly(row[canonical.TensorActive])
	s[SignalDRAM] = exactly(row[canonical.DRAMActive])
	s[SignalFP64] = exactly(row[canonical.FP64Active])
	s[SignalEngine] = exactly(engineActivity(row))
	transfer := 0.0
	if row[canonical.MemoryCopyUtilization] >= t.TransferMemoryCopy ||
		row[canonical.PCIeTransmit] >= t.TransferPCIe || row[canonical.PCIeReceive] >= t.TransferPCIe {
		transfer = 1
	}
	s[SignalTransfer] = exactly(transfer)
}

func exactly(v float64) interval { return interval{v, v} }

// WithinSM are activities that SM activity cannot fall below: whatever works on
// a streaming multiprocessor needs a resident warp there.
var WithinSM = [...]canonical.Field{
	canonical.SMOccupancy,
	canonical.TensorActive,
	canonical.TensorHMMAActive,
	canonical.TensorIMMAActive,
	canonical.TensorDFMAActive,
	canonical.TensorDMMAActive,
	canonical.TensorQMMAActive,
	canonical.FP64Active,
	canonical.FP32Active,
	canonical.FP16Active,
}

// smInterval returns the bounds of SM activity. If it was not read, it is at least each activity
// in WithinSM and at most the graphics engine's. NVML's utilization is no upper bound, since it
// is sampled separately. With Zero a missing reading is 0, as in KempnerPulse.
func smInterval(row []float64, missing Missing) interval {
	if v := row[canonical.SMActive]; canonical.Given(v) {
		return exactly(v)
	}
	if missing == Zero {
		return exactly(0)
	}
	lo, hi := 0.0, 1.0
	for _, f := range WithinSM {
		if row[f] > lo { // never for NaN
			lo = row[f]
		}
	}
	if v := row[canonical.GraphicsEngineActive]; canonical.Given(v) {
		hi = v
	}
	return interval{lo, max(lo, hi)}
}
