package canonical

import (
	"iter"
	"math/bits"
)

// Class is what a device is doing.
type Class uint8

// The classes in the order of the cascade, then Unknown for what cannot be decided.
const (
	Idle Class = iota
	TensorHeavyCompute
	TensorCompute
	FP64HPCCompute
	IOOrDataLoading
	MemoryBound
	ComputeHeavy
	ComputeActive
	MemoryActive
	BusyLowSMUse
	LowUtilization
	MixedOrModerate
	ClassUnknown
	NumClasses
)

// Saturating says how high real utilization gets with the preset ai: measured on an H200, with a matrix product at 691 of 700 W, a copy
// at 4.25 of 4.8 TB/s, and a kernel with 97 % SM activity.
const Saturating = "No work reaches 100 %: on an H200 a large matrix product reaches 77 %, a copy 61 %, a kernel without tensor cores 44 %."

// ClassInfo names a class and its bottleneck.
type ClassInfo struct {
	Name, Bottleneck string
	// Title is the name for people: KempnerPulse's, except for ClassUnknown.
	Title string
	// Advice says what the class means, what to do about it, and what to measure.
	Advice string
}

// Classes is indexed by Class.
var Classes = [NumClasses]ClassInfo{
	Idle: {"idle", "idle", "idle",
		"Nothing runs. If somebody holds the GPU, ask whether they still need it. Measure how long: kpulse-proxy report JOB has the idle hours of each GPU."},
	TensorHeavyCompute: {"tensor_heavy_compute", "compute", "tensor-heavy compute",
		"The tensor cores are busy at least half of the time and the SMs are well used: the best case for training. Change nothing; measure samples " +
			"per second before and after any tuning."},
	TensorCompute: {"tensor_compute", "compute", "tensor compute",
		"The tensor cores are used. Larger batches, fused kernels or lower precision may use them more. Measure tensor and DRAM activity at two batch sizes."},
	FP64HPCCompute: {"fp64_hpc_compute", "compute", "FP64 / HPC compute",
		"The 64-bit pipes do the work, as in simulations. If FP64 activity is near 90 %, only FP64 tensor cores or lower precision do more. Measure FP64 " +
			"and DRAM activity: the higher one is the limit."},
	IOOrDataLoading: {"io_or_data_loading", "io", "I/O or data-loading",
		"Data moves and the SMs wait for it. Look at data loaders, pinned memory, storage and transfers between GPUs. Measure PCIe and NVLink traffic, " +
			"and the CPU and memory of the host."},
	MemoryBound: {"memory_bound", "memory", "memory-bound",
		"The device memory is the limit: kernels wait for it. Fusing kernels, reuse in caches or smaller types help. Measure DRAM activity: near 90 % is " +
			"all that the memory gives."},
	ComputeHeavy: {"compute_heavy", "compute", "compute-heavy",
		"The SMs are busy almost all of the time, without tensor cores. If DRAM activity is near 90 % too, memory limits them. " +
			"Else tensor cores do more, if the required precision allows it. Measure DRAM activity and the longest kernels of a profile."},
	ComputeActive: {"compute_active", "compute", "compute-active",
		"The SMs are busy more than half of the time, without tensor cores. Larger batches keep them busy longer; tensor cores do more where the precision " +
			"allows it. Measure SM activity and occupancy."},
	MemoryActive: {"memory_active", "memory", "memory-active",
		"Much memory traffic besides the computation; no single limit. Fusing kernels lowers the traffic. Measure DRAM and SM activity over one step."},
	BusyLowSMUse: {"busy_low_sm_use", "mixed", "busy, low SM use",
		"Some kernel always runs, but on few SMs: kernels are small or launched one by one. GPU-Util is high although the GPU " +
			"is little used. Larger batches or CUDA graphs help. Measure the gaps between kernels in a profile of one step."},
	LowUtilization: {"low_utilization", "mixed", "low utilization",
		"Hardly used: small batches, long waits, or a notebook. Larger batches, a smaller GPU or a MIG instance would do. Measure how much of one step " +
			"the GPU waits."},
	MixedOrModerate: {"mixed_or_moderate", "mixed", "mixed / moderate",
		"Moderately used, with no single limit. Look for waits between steps first. Measure the classes over time: kpulse-proxy report JOB has their shares."},
	ClassUnknown: {"unknown", "unknown", "unknown",
		"An input that decides the class was not read: see the missing fields. Exporters leave SM activity out " +
			"unless their counters file asks for it; kpulse-proxy check counters names the line, kpulse-proxy doctor what else is missing."},
}

// String returns the class's name.
func (c Class) String() string { return Classes[c].Name }

// Health is the state of a board, the worst of its raised conditions.
type Health uint8

// The states from best to worst; HealthUnknown if no input was read.
const (
	HealthOK Health = iota
	HealthHot
	HealthWarn
	HealthCrit
	HealthUnknown
	NumHealth
)

// HealthStates is indexed by Health.
var HealthStates = [NumHealth]string{"ok", "hot", "warn", "crit", "unknown"}

// String returns the state's name.
func (h Health) String() string { return HealthStates[h] }

// HealthSet is a set of states that a condition can raise, a bit 1 << Health for each.
type HealthSet uint8

// The sets of one state. The set of a condition that is turned off is empty, 0.
const (
	RaisesHot  HealthSet = 1 << HealthHot
	RaisesWarn HealthSet = 1 << HealthWarn
	RaisesCrit HealthSet = 1 << HealthCrit
)

// Has reports whether h is in s.
func (s HealthSet) Has(h Health) bool { return s>>h&1 != 0 }

// Worst returns the worst state of a set that is not empty.
func (s HealthSet) Worst() Health { return Health(bits.Len8(uint8(s)) - 1) }

// Mildest returns the mildest state of a set that is not empty.
func (s HealthSet) Mildest() Health { return Health(bits.TrailingZeros8(uint8(s))) }

// Finding is what was found about a Condition.
type Finding uint8

const (
	// NotRead means that the condition's input was absent.
	NotRead Finding = iota
	// Clear means that the input was read, and the condition does not hold.
	Clear
	// Raised means that the condition holds.
	Raised
)

// ConditionSet is a set of conditions, a bit 1 << Condition for each.
type ConditionSet uint32

// All yields the conditions of s, in their order.
func (s ConditionSet) All() iter.Seq[Condition] {
	return func(yield func(Condition) bool) {
		for ; s != 0; s &= s - 1 {
			if !yield(Condition(bits.TrailingZeros32(uint32(s)))) {
				return
			}
		}
	}
}

// Findings are what was found about each condition.
type Findings struct {
	// Read are the conditions that are not NotRead; Raised are those of Read that hold.
	Read, Raised ConditionSet
}

// Of returns what was found about c.
func (f Findings) Of(c Condition) Finding {
	return Finding(f.Read>>c&1 + f.Raised>>c&1)
}

// Set sets what was found about c.
func (f *Findings) Set(c Condition, found Finding) {
	bit := ConditionSet(1) << c
	f.Read, f.Raised = f.Read&^bit, f.Raised&^bit
	if found != NotRead {
		f.Read |= bit
	}
	if found == Raised {
		f.Raised |= bit
	}
}

// Verdict is what one reading says about one device.
type Verdict struct {
	// RealUtilization is the composite score in [0, 1], NaN if unknown. Coverage is the share of
	// its weight whose input was read.
	RealUtilization, Coverage float64
	// RealPercent is RealUtilization in percent, before the division by 100: multiplying the
	// fraction again may change the second decimal. NaN if RealUtilization is.
	RealPercent float64
	// Class is ClassUnknown if the readings do not decide it, as on an implied board.
	Class Class
	// Health, Findings and States belong to the board and are unset on an instance.
	Health   Health
	Findings Findings
	// States are the states that the raised conditions raise, HealthOK for the others.
	States [NumConditions]Health
	// Action is the greatest that the raised conditions ask for. The driver's recovery action, if
	// there is one, replaces that of XIDs. It belongs to the board, too.
	Action Action
}

// Weights are those of the composite's inputs; they sum to 1.
type Weights struct{ SM, Tensor, DRAM, Engine float64 }

// Judgement is the exported part of the configuration behind verdicts.
type Judgement struct {
	// Preset is the name of the weights, "custom" if the user gave them.
	Preset  string
	Weights Weights
	// States are the health states that each condition can raise; an empty set turns it off.
	States [NumConditions]HealthSet
}
