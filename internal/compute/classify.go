package compute

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// signal is an input of the cascade's rules.
type signal uint8

// The signals. All but signalSM are known or missing; SM activity, if not read, is an interval.
const (
	signalUtilization signal = iota // the composite score
	signalSM
	signalTensor
	signalDRAM
	signalFP64
	signalEngine   // graphics engine activity, or NVML utilization if that is absent
	signalTransfer // 1 if much is copied, else 0
	numSignals
)

// interval holds every value that a signal may have. A reading is one value, lo = hi; NaN is a
// missing reading.
type interval struct{ lo, hi float64 }

// signals is indexed by signal.
type signals [numSignals]interval

// bound is one condition of a rule: the signal at or above the figure, or, with
// Below, below it. A missing signal is below every figure.
type bound struct {
	signal signal
	Below  bool
	Figure float64
}

func atLeast(s signal, figure float64) bound { return bound{s, false, figure} }
func below(s signal, figure float64) bound   { return bound{s, true, figure} }

// classRule gives its class to a device within all of its bounds.
type classRule struct {
	Class  canonical.Class
	Bounds []bound
}

// cascade returns the rules of the workload classes; the first that holds gives
// the class. The last has no bounds. The caller owns them.
func cascade(t *Thresholds) []classRule {
	return []classRule{
		{canonical.Idle, []bound{
			below(signalUtilization, t.IdleUtilization), below(signalEngine, t.IdleEngine), below(signalDRAM, t.IdleDRAM), below(signalTransfer, 1),
		}},
		{canonical.TensorHeavyCompute, []bound{atLeast(signalTensor, t.TensorHeavyTensor), atLeast(signalSM, t.TensorHeavySM)}},
		{canonical.TensorCompute, []bound{atLeast(signalTensor, t.TensorTensor), atLeast(signalSM, t.TensorSM)}},
		{canonical.FP64HPCCompute, []bound{atLeast(signalFP64, t.FP64FP64), atLeast(signalSM, t.FP64SM)}},
		{canonical.IOOrDataLoading, []bound{atLeast(signalTransfer, 1), below(signalSM, t.IOSM)}},
		{canonical.MemoryBound, []bound{atLeast(signalDRAM, t.MemoryBoundDRAM), below(signalSM, t.MemoryBoundSM)}},
		{canonical.ComputeHeavy, []bound{atLeast(signalSM, t.ComputeHeavySM)}},
		{canonical.ComputeActive, []bound{atLeast(signalSM, t.ComputeActiveSM)}},
		{canonical.MemoryActive, []bound{atLeast(signalDRAM, t.MemoryActiveDRAM)}},
		{canonical.BusyLowSMUse, []bound{atLeast(signalEngine, t.BusyEngine), below(signalSM, t.BusySM)}},
		{canonical.LowUtilization, []bound{below(signalEngine, t.LowEngine), below(signalSM, t.LowSM), below(signalDRAM, t.LowDRAM)}},
		{canonical.MixedOrModerate, nil},
	}
}

// walk returns the class of the first rule that holds, or ClassUnknown if a rule before it may
// hold. So the class is unknown exactly if two values within the signals' intervals give two
// classes.
func walk(rules []classRule, s *signals) canonical.Class {
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
func (r *classRule) holds(s *signals) (surely, perhaps bool) {
	surely = true
	for _, b := range r.Bounds {
		v := &s[b.signal]
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
	s[signalUtilization] = exactly(score)
	s[signalSM] = smInterval(row, missing)
	s[signalTensor] = exactly(row[canonical.TensorActive])
	s[signalDRAM] = exactly(row[canonical.DRAMActive])
	s[signalFP64] = exactly(row[canonical.FP64Active])
	s[signalEngine] = exactly(engineActivity(row))
	transfer := 0.0
	if row[canonical.MemoryCopyUtilization] >= t.TransferMemoryCopy ||
		row[canonical.PCIeTransmit] >= t.TransferPCIe || row[canonical.PCIeReceive] >= t.TransferPCIe {
		transfer = 1
	}
	s[signalTransfer] = exactly(transfer)
}

func exactly(v float64) interval { return interval{v, v} }

// withinSM are activities that SM activity cannot fall below: whatever works on
// a streaming multiprocessor needs a resident warp there.
var withinSM = [...]canonical.Field{
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
// in withinSM and at most the graphics engine's. NVML's utilization is no upper bound, since it
// is sampled separately. With Zero a missing reading is 0, as in KempnerPulse.
func smInterval(row []float64, missing Missing) interval {
	if v := row[canonical.SMActive]; canonical.Given(v) {
		return exactly(v)
	}
	if missing == Zero {
		return exactly(0)
	}
	lo, hi := 0.0, 1.0
	for _, f := range withinSM {
		if row[f] > lo { // never for NaN
			lo = row[f]
		}
	}
	if v := row[canonical.GraphicsEngineActive]; canonical.Given(v) {
		hi = v
	}
	return interval{lo, max(lo, hi)}
}
