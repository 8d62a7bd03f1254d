package compute

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// signal is what a rule of the cascade looks at.
type signal uint8

const (
	utilization signal = iota // the composite score
	sm
	tensor
	dram
	fp64
	engine   // graphics engine activity, or NVML utilization where that is absent
	transfer // 1 if much is copied, else 0
	numSignals
)

// interval holds every value a signal may have had. A reading is one value,
// lo = hi; NaN is a reading that was not given.
type interval struct{ lo, hi float64 }

// signals is indexed by signal.
type signals [numSignals]interval

// bound is one condition of a rule: the signal at or above the figure, or below
// it.
type bound struct {
	signal signal
	below  bool
	figure float64
}

func atLeast(s signal, figure float64) bound { return bound{s, false, figure} }
func below(s signal, figure float64) bound   { return bound{s, true, figure} }

// rule gives its class to whatever meets all of its bounds.
type rule struct {
	class  canonical.Class
	bounds []bound
}

// cascade returns the rules of the workload classes; the first that holds gives
// the class.
func cascade(t *Thresholds) []rule {
	return []rule{
		{canonical.Idle, []bound{below(utilization, t.IdleUtilization), below(engine, t.IdleEngine), below(dram, t.IdleDRAM), below(transfer, 1)}},
		{canonical.TensorHeavyCompute, []bound{atLeast(tensor, t.TensorHeavyTensor), atLeast(sm, t.TensorHeavySM)}},
		{canonical.TensorCompute, []bound{atLeast(tensor, t.TensorTensor), atLeast(sm, t.TensorSM)}},
		{canonical.FP64HPCCompute, []bound{atLeast(fp64, t.FP64FP64), atLeast(sm, t.FP64SM)}},
		{canonical.IOOrDataLoading, []bound{atLeast(transfer, 1), below(sm, t.IOSM)}},
		{canonical.MemoryBound, []bound{atLeast(dram, t.MemoryBoundDRAM), below(sm, t.MemoryBoundSM)}},
		{canonical.ComputeHeavy, []bound{atLeast(sm, t.ComputeHeavySM)}},
		{canonical.ComputeActive, []bound{atLeast(sm, t.ComputeActiveSM)}},
		{canonical.MemoryActive, []bound{atLeast(dram, t.MemoryActiveDRAM)}},
		{canonical.BusyLowSMUse, []bound{atLeast(engine, t.BusyEngine), below(sm, t.BusySM)}},
		{canonical.LowUtilization, []bound{below(engine, t.LowEngine), below(sm, t.LowSM), below(dram, t.LowDRAM)}},
		{canonical.MixedOrModerate, nil},
	}
}

// walk returns the class of the first rule that holds, and ClassUnknown where a
// rule that would decide can neither hold nor fail for sure. So it is unknown
// exactly if two values within the signals' intervals give two classes.
func walk(rules []rule, s *signals) canonical.Class {
	for i := range rules {
		surely, perhaps := rules[i].holds(s)
		if surely {
			return rules[i].class
		}
		if perhaps {
			break
		}
	}
	return canonical.ClassUnknown
}

// holds tells whether the rule holds for every value within the intervals, and
// whether for some. A missing reading is no evidence: it is at least nothing, and
// below everything.
func (r *rule) holds(s *signals) (surely, perhaps bool) {
	surely = true
	for _, b := range r.bounds {
		v := &s[b.signal]
		always, sometimes := v.lo >= b.figure, v.hi >= b.figure
		if b.below {
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
	s[utilization] = exactly(score)
	s[sm] = smInterval(row, missing)
	s[tensor] = exactly(row[canonical.TensorActive])
	s[dram] = exactly(row[canonical.DRAMActive])
	s[fp64] = exactly(row[canonical.FP64Active])
	s[engine] = exactly(engineActivity(row))
	s[transfer] = exactly(0)
	if row[canonical.MemoryCopyUtilization] >= t.TransferMemoryCopy ||
		row[canonical.PCIeTransmit] >= t.TransferPCIe || row[canonical.PCIeReceive] >= t.TransferPCIe {
		s[transfer] = exactly(1)
	}
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

// smInterval returns what SM activity can have been. Where it was not read, it
// is at least what needs it and at most the graphics engine's activity; NVML's
// utilization is no upper bound, for it is sampled apart. With Zero a missing
// reading is 0, as in KempnerPulse.
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
