package compute

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	fSM     = canonical.SMActive
	fTensor = canonical.TensorActive
	fDRAM   = canonical.DRAMActive
	fEngine = canonical.GraphicsEngineActive
	fFP64   = canonical.FP64Active
	fNVML   = canonical.NVMLUtilization
	fCopy   = canonical.MemoryCopyUtilization
	fTX     = canonical.PCIeTransmit
	fRX     = canonical.PCIeReceive
)

// with returns r with some readings changed; NaN takes one out.
func (r reading) with(fields ...any) reading {
	out := reading{}
	for f, v := range r {
		out[f] = v
	}
	for i := 0; i < len(fields); i += 2 {
		out[fields[i].(canonical.Field)] = fields[i+1].(float64)
	}
	return out
}

// down returns the next smaller number.
func down(v float64) float64 { return math.Nextafter(v, -1) }

// classCase is a reading and its class.
type classCase struct {
	r    reading
	want canonical.Class
}

// ruleCases are, for each row of the table, readings exactly at its thresholds and, for
// each of its bounds, readings that miss it by the smallest step.
func ruleCases() []classCase {
	quiet := reading{fSM: 0, fTensor: 0, fDRAM: 0, fEngine: 0}
	idle := reading{fSM: 0.06, fTensor: 0, fDRAM: down(0.05), fEngine: down(0.05), fCopy: down(0.4), fTX: 1e9 - 1, fRX: 1e9 - 1}
	heavy := quiet.with(fTensor, 0.5, fSM, 0.6)
	tensor := quiet.with(fTensor, 0.15, fSM, 0.4)
	hpc := quiet.with(fFP64, 0.2, fSM, 0.5)
	io := quiet.with(fCopy, 0.4, fSM, down(0.3))
	bound := quiet.with(fDRAM, 0.5, fSM, down(0.5))
	busy := quiet.with(fEngine, 0.4, fSM, down(0.25))
	low := quiet.with(fEngine, down(0.15), fSM, down(0.15), fDRAM, down(0.15))
	return []classCase{
		{idle, canonical.Idle},
		{idle.with(fSM, 0.14), canonical.LowUtilization}, // 0.35·0.14+0.2·0.05+0.1·0.05 ≥ 0.05
		{idle.with(fEngine, 0.05), canonical.LowUtilization},
		{idle.with(fDRAM, 0.05), canonical.LowUtilization},
		{idle.with(fCopy, 0.4), canonical.IOOrDataLoading},
		{idle.with(fTX, 1e9), canonical.IOOrDataLoading},
		{idle.with(fRX, 1e9), canonical.IOOrDataLoading},
		{heavy, canonical.TensorHeavyCompute},
		{heavy.with(fTensor, down(0.5)), canonical.TensorCompute},
		{heavy.with(fSM, down(0.6)), canonical.TensorCompute},
		{heavy.with(fSM, 0.9, fDRAM, 0.9, fFP64, 0.9, fCopy, 0.9), canonical.TensorHeavyCompute},

		{tensor, canonical.TensorCompute},
		{tensor.with(fTensor, down(0.15)), canonical.MixedOrModerate},
		{tensor.with(fSM, down(0.4)), canonical.MixedOrModerate},

		{hpc, canonical.FP64HPCCompute},
		{hpc.with(fFP64, down(0.2)), canonical.ComputeActive},
		{hpc.with(fSM, down(0.5)), canonical.MixedOrModerate},

		{io, canonical.IOOrDataLoading},
		{io.with(fCopy, down(0.4)), canonical.MixedOrModerate},
		{io.with(fSM, 0.3), canonical.MixedOrModerate},
		{io.with(fDRAM, 0.9), canonical.IOOrDataLoading},

		{bound, canonical.MemoryBound},
		{bound.with(fDRAM, down(0.5)), canonical.MemoryActive},
		{bound.with(fSM, 0.5), canonical.ComputeActive},

		{quiet.with(fSM, 0.8), canonical.ComputeHeavy},
		{quiet.with(fSM, down(0.8)), canonical.ComputeActive},
		{quiet.with(fSM, 0.8, fRX, 5e9, fDRAM, 0.9), canonical.ComputeHeavy},
		{quiet.with(fSM, 0.5), canonical.ComputeActive},
		{quiet.with(fSM, down(0.5)), canonical.MixedOrModerate},

		{quiet.with(fSM, 0.2, fDRAM, 0.4), canonical.MemoryActive},
		{quiet.with(fSM, 0.2, fDRAM, down(0.4)), canonical.MixedOrModerate},

		{busy, canonical.BusyLowSMUse},
		{busy.with(fEngine, down(0.4)), canonical.MixedOrModerate},
		{busy.with(fSM, 0.25), canonical.MixedOrModerate},

		{low, canonical.LowUtilization},
		{low.with(fEngine, 0.15), canonical.MixedOrModerate},
		{low.with(fSM, 0.15), canonical.MixedOrModerate},
		{low.with(fDRAM, 0.15), canonical.MixedOrModerate},
		{quiet.with(fSM, 0.3, fDRAM, 0.2, fEngine, 0.3), canonical.MixedOrModerate},
	}
}

func TestRules(t *testing.T) {
	for _, c := range ruleCases() {
		if got := judgeOne(t, newJudge(t, nil), "", c.r).Class; got != c.want {
			t.Errorf("%v: %v, want %v", c.r, got, c.want)
		}
	}
}

// missingCase is a reading that lacks something, and its class under either policy.
type missingCase struct {
	name              string
	r                 reading
	renormalize, zero canonical.Class
}

func missingCases() []missingCase {
	noSM := reading{fTensor: 0, fDRAM: 0, fEngine: 0.9}
	return []missingCase{
		{"nothing", reading{}, canonical.ClassUnknown, canonical.ClassUnknown},
		{"NVML alone", reading{fNVML: 0.9}, canonical.ClassUnknown, canonical.BusyLowSMUse},
		{"NVML alone, none", reading{fNVML: 0}, canonical.Idle, canonical.Idle},

		// The exporter's default counters: no SM.
		{"idle", noSM.with(fEngine, 0.01), canonical.Idle, canonical.Idle},
		{"anything from 0 to 0.9", noSM, canonical.ClassUnknown, canonical.BusyLowSMUse},
		{"below 0.4 by the engine", noSM.with(fTensor, 0.2, fEngine, 0.39), canonical.MixedOrModerate, canonical.MixedOrModerate},
		{"below 0.3 by the engine", noSM.with(fRX, 2e9, fEngine, 0.29), canonical.IOOrDataLoading, canonical.IOOrDataLoading},
		{"0.3 or not", noSM.with(fRX, 2e9, fEngine, 0.3), canonical.ClassUnknown, canonical.IOOrDataLoading},
		{"below 0.5 by the engine", noSM.with(fDRAM, 0.6, fEngine, 0.45), canonical.MemoryBound, canonical.MemoryBound},
		{"memory bound or active", noSM.with(fDRAM, 0.6), canonical.ClassUnknown, canonical.MemoryBound},
		{"memory active whatever SM", noSM.with(fDRAM, 0.4, fEngine, 0.45), canonical.MemoryActive, canonical.MemoryActive},
		{"low by the engine", noSM.with(fEngine, 0.14, fDRAM, 0.1), canonical.LowUtilization, canonical.LowUtilization},
		{"low or mixed", noSM.with(fEngine, 0.01, fTensor, 0.149, fDRAM, 0.1), canonical.LowUtilization, canonical.LowUtilization},

		{"0.6 by the tensor cores", noSM.with(fTensor, 0.6), canonical.TensorHeavyCompute, canonical.BusyLowSMUse},
		{"tensor or heavy tensor", noSM.with(fTensor, 0.55), canonical.ClassUnknown, canonical.BusyLowSMUse},
		{"0.6 by occupancy", noSM.with(fTensor, 0.5, canonical.SMOccupancy, 0.6), canonical.TensorHeavyCompute, canonical.BusyLowSMUse},
		{"0.8 by a sub-pipe", noSM.with(canonical.TensorQMMAActive, 0.8), canonical.ComputeHeavy, canonical.BusyLowSMUse},
		{"0.8 by FP32", noSM.with(canonical.FP32Active, 0.8), canonical.ComputeHeavy, canonical.BusyLowSMUse},
		{"0.5 by FP64", noSM.with(fFP64, 0.5), canonical.FP64HPCCompute, canonical.BusyLowSMUse},
		{"integers are no evidence", noSM.with(canonical.IntActive, 0.8), canonical.ClassUnknown, canonical.BusyLowSMUse},
		{"the lower bound replaces the upper", noSM.with(fEngine, 0.3, canonical.FP32Active, 0.5), canonical.ComputeActive, canonical.MixedOrModerate},
		{"and NVML is no upper bound", reading{fTensor: 0.01, fDRAM: 0.2, fNVML: 0.14}, canonical.ClassUnknown, canonical.MixedOrModerate},

		{"no tensor, DRAM, FP64", reading{fSM: 0.85, fEngine: 0.9}, canonical.ClassUnknown, canonical.ComputeHeavy},
		{"no tensor", reading{fSM: 0.85, fDRAM: 0.3, fEngine: 0.9}, canonical.ComputeHeavy, canonical.ComputeHeavy},
		{"no DRAM", reading{fSM: 0.1, fTensor: 0.1, fEngine: 0.1}, canonical.LowUtilization, canonical.LowUtilization},
		{"no engine", reading{fSM: 0.1, fTensor: 0.1, fDRAM: 0.1}, canonical.LowUtilization, canonical.LowUtilization},
		{"no engine, idle", reading{fSM: 0, fTensor: 0, fDRAM: 0}, canonical.Idle, canonical.Idle},
		{"NVML for the engine", reading{fSM: 0.1, fTensor: 0.1, fDRAM: 0.1, fNVML: 0.4}, canonical.BusyLowSMUse, canonical.BusyLowSMUse},
	}
}

func TestMissingReadings(t *testing.T) {
	for _, c := range missingCases() {
		if got := judgeOne(t, newJudge(t, nil), "", c.r).Class; got != c.renormalize {
			t.Errorf("%s: %v, want %v", c.name, got, c.renormalize)
		}
		j := newJudge(t, func(o *Options) { o.Missing = Zero })
		if got := judgeOne(t, j, "", c.r).Class; got != c.zero {
			t.Errorf("%s, zero: %v, want %v", c.name, got, c.zero)
		}
	}
}

// TestUnknownIffUndecided fills a missing SM with every value that could make a difference: the
// class is unknown exactly if two of them give two classes, otherwise it is the one that they all
// give.
func TestUnknownIffUndecided(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	th := DefaultThresholds()
	rules := cascade(&th)
	unknown, known := 0, 0
	for range 100_000 {
		row := reading{}.row()
		randomRow(r, row)
		row[canonical.SMActive] = absent
		var s signals
		s.read(row, r.Float64()*0.2, Renormalize, &th)
		got := walk(rules, &s)
		open := s[signalSM]
		var classes []canonical.Class
		for _, v := range append(edges, open.lo, open.hi) {
			for _, v := range []float64{math.Nextafter(v, -1), v} {
				if v >= open.lo && v <= open.hi {
					s[signalSM] = exactly(v)
					classes = append(classes, walk(rules, &s))
				}
			}
		}
		slices.Sort(classes)
		classes = slices.Compact(classes)
		if len(classes) == 1 {
			known++
			if got != classes[0] {
				t.Fatalf("row %v: %v, but every SM in %v gives %v", row, got, open, classes)
			}
			continue
		}
		unknown++
		if got != canonical.ClassUnknown {
			t.Fatalf("row %v: %v, but SM in %v gives %v", row, got, open, classes)
		}
	}
	if unknown < 1000 || known < 1000 {
		t.Errorf("%d unknown and %d known rows test too little", unknown, known)
	}
}

func TestSetThresholdsReachCascade(t *testing.T) {
	j := newJudge(t, func(o *Options) { o.Thresholds.ComputeHeavySM = 0.95 })
	r := reading{fSM: 0.9, fTensor: 0, fDRAM: 0, fEngine: 1}
	if got := judgeOne(t, j, "", r).Class; got != canonical.ComputeActive {
		t.Errorf("%v, want compute_active", got)
	}
}
