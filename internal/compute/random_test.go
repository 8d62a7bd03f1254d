package compute

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute/computetest"
	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// Random readings are often absent, and otherwise often at a threshold of the table or just
// beside one.

var edges = []float64{0, 0.05, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1}

func randomRatio(r *rand.Rand) float64 {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1, 2:
		return edges[r.IntN(len(edges))]
	case 3, 4:
		hair := []float64{-1e-3, -1e-6, -1e-12, 1e-12, 1e-6, 1e-3}[r.IntN(6)]
		return math.Max(0, math.Min(1, edges[r.IntN(len(edges))]+hair))
	case 5:
		return r.Float64() * 0.06
	default:
		return r.Float64()
	}
}

func randomRow(r *rand.Rand, row []float64) {
	fillRow(r, row, r.IntN(12) == 0)
}

// fillRow fills a row. If quiet, all profiling is 0.
func fillRow(r *rand.Rand, row []float64, quiet bool) {
	missing := r.Float64()
	give := func(f canonical.Field, v float64) {
		if r.Float64() >= missing {
			row[f] = v
		}
	}
	for f := canonical.SMActive; f <= canonical.DRAMActive; f++ {
		v := randomRatio(r)
		if quiet {
			v = 0
		}
		give(f, v)
	}
	give(canonical.NVMLUtilization, randomRatio(r))
	give(canonical.MemoryCopyUtilization, randomRatio(r)*0.6)
	rates := []float64{0, 1e6, 1e9 - 1, 1e9, 1e9 + 1, 3e10}
	give(canonical.PCIeTransmit, rates[r.IntN(3+r.IntN(4))])
	give(canonical.PCIeReceive, rates[r.IntN(3+r.IntN(4))])
	give(canonical.RowRemapFailure, float64(r.IntN(20)/19))
	give(canonical.RemappedRowsUncorrectable, float64(511*(r.IntN(20)/19)+max(0, r.IntN(20)-17)))
	give(canonical.PCIeReplays, float64(r.IntN(30)))
	give(canonical.PCIeLinkWidth, float64(16-r.IntN(8)/2*2))
	give(canonical.PCIeLinkWidthMax, 16)
	temperatures := []float64{40, 91, 92, 92.999, 93, 94, 95, 95.5}
	give(canonical.Temperature, temperatures[r.IntN(len(temperatures))])
	give(canonical.MemoryTemperature, temperatures[r.IntN(len(temperatures))])
	give(canonical.RowRemapPending, float64(r.IntN(9)/8))
	give(canonical.ECCDoubleBitVolatile, float64(r.IntN(3)))
	for f := canonical.NVLinkCRCFlitErrors; f <= canonical.NVLinkEffectiveErrors; f++ {
		give(f, float64(r.IntN(7)))
	}
	give(canonical.NVLinkRecoveriesFailed, float64(r.IntN(20)/19))
	give(canonical.ClockEvents, float64(r.IntN(0x200)&r.IntN(0x200)&r.IntN(0x200)|r.IntN(2)*0xe0))
	give(canonical.TemperatureMargin, float64(r.IntN(20)-1))
	give(canonical.RecoveryAction, float64(max(0, r.IntN(30)-24)))
	give(canonical.RetiredPagesPending, float64(r.IntN(9)/8))
	give(canonical.SRAMThresholdExceeded, float64(r.IntN(30)/29))
	give(canonical.MemoryUnrepairable, float64(r.IntN(30)/29))
	give(canonical.MemoryBanksNone, float64(max(0, r.IntN(20)-17)))
	give(canonical.NVLinksActive, float64(18-r.IntN(8)/6))
	give(canonical.FabricHealth, float64(min(3, r.IntN(9))))
	give(canonical.FabricHealthMask, float64(0xaa^r.IntN(9)/8*0x30))
	give(canonical.FabricError, float64(r.IntN(9)/8))
	give(canonical.Energy, 1e6-float64(9*(r.IntN(20)/19)))
	codes := []float64{0, 0, 0, 0, 13, 31, 43, 48, 63, 64, 74, 79, 94, 95, 119, 120, 140, 154, 711}
	give(canonical.XIDLast, codes[r.IntN(len(codes))])
}

// randomOptions returns the same options twice: for the code and for the
// reference.
func randomOptions(r *rand.Rand) (Options, computetest.Options) {
	o, ref := DefaultOptions(), computetest.DefaultOptions()
	weigh := func(sm, tensor, dram, gr float64) { ref.SM, ref.Tensor, ref.DRAM, ref.GR = sm, tensor, dram, gr }
	switch r.IntN(4) {
	case 0:
		o.Preset = "ai"
		weigh(.35, .35, .20, .10)
	case 1:
		o.Preset = "hpc"
		weigh(.45, .15, .25, .15)
	case 2:
		o.Preset = "mem"
		weigh(.35, .10, .40, .15)
	default:
		w := [4]float64{r.Float64() * 9, 0.01 + r.Float64(), r.Float64(), r.Float64()}
		w[r.IntN(4)] *= float64(r.IntN(2)) // some are 0
		if w == [4]float64{} {
			w[0] = 1
		}
		o.Weights = canonical.Weights{SM: w[0], Tensor: w[1], DRAM: w[2], Engine: w[3]}
		weigh(w[0], w[1], w[2], w[3])
	}
	if r.IntN(3) == 0 {
		o.Missing, ref.Zero = Zero, true
	}
	if r.IntN(3) == 0 {
		percent := r.IntN(101)
		o.MinCoverage, ref.MinCoverage = float64(percent)/100, float64(percent)
	}
	if r.IntN(3) == 0 {
		for i := range ref.States {
			if h := canonical.Health(r.IntN(4)); h == canonical.HealthOK {
				o.States[i], ref.States[i] = 0, "ok"
			} else {
				o.States[i], ref.States[i] = 1<<h, h.String()
			}
		}
	}
	return o, ref
}

var models = []string{
	"", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA GH200 480GB",
	"Quadro RTX 6000", "NVIDIA RTX 6000 Ada Generation", "Tesla T4", "NVIDIA RTX A6000",
}

func randomTopology(r *rand.Rand, n int) *canonical.Topology {
	devices := make([]canonical.Device, n)
	for i := range devices {
		d := &devices[i]
		d.GPU, d.Model = strconv.Itoa(i), models[r.IntN(len(models))]
		if r.IntN(4) > 0 {
			d.UUID = "GPU-" + d.GPU
		}
		switch r.IntN(8) {
		case 0:
			d.Implied = true
		case 1:
			d.Instance = "3"
		}
	}
	return topology(devices...)
}

func TestAgainstReference(t *testing.T) {
	const devices, readings = 256, 6
	rounds := slow.Rounds(24, 60) // of 1,536 rows each
	r := rand.New(rand.NewPCG(2026, 3))
	var verdicts []canonical.Verdict
	var classes [canonical.NumClasses]int
	var states [canonical.NumHealth]int
	var findings [canonical.NumConditions][3]int
	for range rounds {
		o, ref := randomOptions(r)
		j, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		top := randomTopology(r, devices)
		histories := make([][]computetest.Reading, devices)
		at := start
		for range readings {
			at = at.Add(time.Duration(r.IntN(8)) * time.Duration(r.IntN(60)) * time.Second)
			f := frame(top, at)
			for i := range devices {
				fillRow(r, f.Row(i), i%8 == 0 || r.IntN(12) == 0)
				histories[i] = append(histories[i], computetest.Reading{At: at, Row: f.Row(i), Cut: isCut(top, i)})
			}
			verdicts = j.Judge(f, verdicts)
			for i := range verdicts {
				compareWithReference(t, top, i, histories[i], ref, &verdicts[i])
				classes[verdicts[i].Class]++
				states[verdicts[i].Health]++
				for c := range canonical.NumConditions {
					found := verdicts[i].Findings.Of(c)
					findings[c][found]++
				}
			}
			if t.Failed() {
				t.Fatalf("options %+v", ref)
			}
		}
	}
	// A class that rarely comes up is not tested.
	for c, n := range classes {
		if n < rounds {
			t.Errorf("class %s came up %d times, want %d", canonical.Class(c), n, rounds)
		}
	}
	for h, n := range states {
		if n < rounds {
			t.Errorf("health %s came up %d times, want %d", canonical.Health(h), n, rounds)
		}
	}
	for c, n := range findings {
		if canonical.Condition(c) == canonical.CondXIDRepeated || canonical.Condition(c) == canonical.CondNVSwitch {
			continue // they take more readings, or a log: TestXIDsAgainstReference and TestSwitches
		}
		if min(n[0], n[1], n[2]) < rounds {
			t.Errorf("condition %s was absent, clear and raised %v times, want %d", canonical.Condition(c), n, rounds)
		}
	}
}

// isCut reports whether a device has MIG instances.
func isCut(top *canonical.Topology, device int) bool {
	return slices.ContainsFunc(top.Devices, func(d canonical.Device) bool { return d.IsInstance() && d.Board == device })
}

func compareWithReference(t *testing.T, top *canonical.Topology, device int, history []computetest.Reading, o computetest.Options, v *canonical.Verdict) {
	t.Helper()
	d := &top.Devices[device]
	row := history[len(history)-1].Row
	wantUtil, wantCoverage, wantClass := math.NaN(), math.NaN(), "unknown"
	if !d.Implied {
		wantUtil, wantCoverage, wantClass = computetest.Activity(row, o, !d.IsInstance() && !isCut(top, device))
	}
	const n = canonical.NumConditions
	wantHealth, wantFound := "unknown", [n]string(slices.Repeat([]string{"absent"}, int(n)))
	if !d.IsInstance() {
		wantHealth, wantFound = computetest.Health(history, d.Model, o)
	}
	if !near(v.RealUtilization, wantUtil) || !near(v.Coverage, wantCoverage) {
		t.Errorf("row %v: utilization %v coverage %v, want %v %v", row, v.RealUtilization, v.Coverage, wantUtil, wantCoverage)
	}
	if got := v.Class.String(); got != wantClass {
		t.Errorf("row %v: class %s, want %s", row, got, wantClass)
	}
	var found [n]string
	for i := range found {
		found[i] = [...]string{"absent", "clear", v.States[i].String()}[v.Findings.Of(canonical.Condition(i))]
	}
	if got := v.Health.String(); got != wantHealth || found != wantFound {
		t.Errorf("row %v: health %s %v, want %s %v", row, got, found, wantHealth, wantFound)
	}
}
