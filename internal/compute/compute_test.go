package compute

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestNewRejects(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options)
		right  string // text in the error
	}{
		{"preset", func(o *Options) { o.Preset = "gaming" }, "ai, hpc, mem"},
		{"no preset", func(o *Options) { o.Preset = "" }, "ai, hpc, mem"},
		{"custom without weights", func(o *Options) { o.Preset = Custom }, "give weights"},
		{"negative weight", func(o *Options) { o.Weights.SM = -1 }, "at least 0"},
		{"NaN weight", func(o *Options) { o.Weights.DRAM = math.NaN() }, "finite"},
		{"infinite weight", func(o *Options) { o.Weights.DRAM = math.Inf(1) }, "finite"},
		{"missing", func(o *Options) { o.Missing = 7 }, "renormalize, zero"},
		{"coverage in percent", func(o *Options) { o.MinCoverage = 50 }, "from 0 to 1"},
		{"negative coverage", func(o *Options) { o.MinCoverage = -0.1 }, "from 0 to 1"},
		{"NaN coverage", func(o *Options) { o.MinCoverage = math.NaN() }, "from 0 to 1"},
		{"threshold in percent", func(o *Options) { o.Thresholds.BusySM = 25 }, "25 is not a fraction: make busy_sm one from 0 to 1"},
		{"no thresholds", func(o *Options) { o.Thresholds = Thresholds{} }, "positive duration"},
		{"temperature", func(o *Options) { o.Thresholds.Temperatures = []ModelTemperature{{"L40S", 900}} }, "at most 200 degrees"},
		{"temperature of no model", func(o *Options) { o.Thresholds.Temperatures = []ModelTemperature{{"", 90}} }, "such as H100"},
		{"state unknown", func(o *Options) { o.States[0] = 1 << canonical.HealthUnknown }, "hot, warn or crit, or none"},
		{"stalled after no reading", func(o *Options) { o.Thresholds.StalledReadings = 0 }, "at least 1"},
		{"expected GPUs", func(o *Options) { o.ExpectedGPUs = -1 }, "expected GPUs is -1: make it at least 1, or 0"},
		{"most devices", func(o *Options) { o.MaxDevices = -1 }, "devices is -1: make it at least 1, or 0"},
		{"most allocations", func(o *Options) { o.MaxAllocations = -1 }, "allocations is -1: make it at least 1, or 0"},
		{"steady after no reading", func(o *Options) { o.Thresholds.SteadyReadings = 0 }, "steady_readings a number of at least 1"},
		{"links trained before the start", func(o *Options) { o.Thresholds.LinkTraining = -1 }, "link_training a duration of at least 0"},
		{"state ok", func(o *Options) { o.States[0] = 1 }, "hot, warn or crit, or none"},
	} {
		o := DefaultOptions()
		c.change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), c.right) {
			t.Errorf("%s: error %v does not say %q", c.name, err, c.right)
		}
	}
}

// TestOptionsAreNamed: an error has the key that the config file gives the option.
func TestOptionsAreNamed(t *testing.T) {
	o := DefaultOptions()
	o.Preset, o.Missing, o.MinCoverage, o.Thresholds.BusySM, o.States[0] = "gaming", numMissing, 50, 25, 1
	o.XIDs = map[uint32]XIDOverride{13: {Severity: canonical.NumSeverities}}
	o.XIDHold, o.Birth, o.MaxDevices = 0, 0, -1
	names := func() (names []string) {
		for _, wrong := range o.Check() {
			names = append(names, wrong.Option)
		}
		return names
	}
	want := []string{"preset", "missing_inputs", "min_coverage", "thresholds.busy_sm", "health", "xids.13", "xid_hold", "series.birth", ""}
	if got := names(); !slices.Equal(got, want) {
		t.Errorf("options %q, want %q", got, want)
	}
	o.Weights.SM = -1
	if got := names()[0]; got != "weights" {
		t.Errorf("option %q, want weights", got)
	}
}

func TestJudgement(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*Options)
		preset  string
		weights canonical.Weights
	}{
		{"default", func(*Options) {}, "ai", canonical.Weights{SM: .35, Tensor: .35, DRAM: .2, Engine: .1}},
		{"hpc", func(o *Options) { o.Preset = "hpc" }, "hpc", canonical.Weights{SM: .45, Tensor: .15, DRAM: .25, Engine: .15}},
		{"mem", func(o *Options) { o.Preset = "mem" }, "mem", canonical.Weights{SM: .35, Tensor: .1, DRAM: .4, Engine: .15}},
		{"a preset and its weights", func(o *Options) { o.Preset, o.Weights = "mem", Presets[2].Weights }, "mem", canonical.Weights{SM: .35, Tensor: .1, DRAM: .4, Engine: .15}},
		{"weights override the preset", func(o *Options) { o.Weights = canonical.Weights{SM: 3, Engine: 1} }, Custom, canonical.Weights{SM: .75, Engine: .25}},
		{"weights alone", func(o *Options) { o.Preset, o.Weights = "", canonical.Weights{DRAM: 2} }, Custom, canonical.Weights{DRAM: 1}},
	} {
		got := newJudge(t, c.change).Judgement()
		if got.Preset != c.preset || got.Weights != c.weights {
			t.Errorf("%s: %s %v, want %s %v", c.name, got.Preset, got.Weights, c.preset, c.weights)
		}
	}
}

func TestInputs(t *testing.T) {
	want := []canonical.Field{
		fSM, fTensor, fFP64, fEngine, fDRAM, fCopy, fTX, fRX,
		canonical.Temperature, canonical.MemoryTemperature, canonical.PCIeReplays,
		canonical.RemappedRowsUncorrectable, canonical.RowRemapFailure,
	}
	if got := newJudge(t, nil).Inputs(); !slices.Equal(got, want) {
		t.Errorf("inputs %v, want %v", got, want)
	}
	j := newJudge(t, func(o *Options) { o.States[cMemory] = 0 })
	if slices.Contains(j.Inputs(), canonical.MemoryTemperature) {
		t.Error("the inputs include that of a condition that is off")
	}
}

// TestLevels judges a board that was read, one known only from its instance, and that instance.
func TestLevels(t *testing.T) {
	top := topology(
		canonical.Device{GPU: "0", UUID: "GPU-1", Model: "NVIDIA H100 80GB HBM3"},
		canonical.Device{GPU: "1", UUID: "GPU-2", Model: "NVIDIA A100-SXM4-40GB", Implied: true},
		canonical.Device{GPU: "1", UUID: "GPU-2", Model: "NVIDIA A100-SXM4-40GB", Instance: "7", Profile: "1g.5gb", Board: 1},
		canonical.Device{GPU: "2", UUID: "GPU-3"},
	)
	active := reading{fSM: 0.85, fTensor: 0, fDRAM: 0.1, fEngine: 0.9, canonical.Temperature: 94}
	f := frame(top, start, active, active, active, reading{})
	v := newJudge(t, nil).Judge(f, nil)
	for i, want := range []struct {
		warning, util, coverage float64
		class                   canonical.Class
		health                  canonical.Health
		temperature             canonical.Finding
	}{
		{95, 0.4075, 1, canonical.ComputeHeavy, canonical.HealthOK, canonical.Clear},
		{93, absent, absent, canonical.ClassUnknown, canonical.HealthHot, canonical.Raised},
		{absent, 0.4075, 1, canonical.ComputeHeavy, canonical.HealthUnknown, canonical.NotRead},
		{93, absent, 0, canonical.ClassUnknown, canonical.HealthUnknown, canonical.NotRead},
	} {
		if got := f.Row(i)[canonical.TemperatureWarning]; !same(got, want.warning) {
			t.Errorf("device %d: warning temperature %v, want %v", i, got, want.warning)
		}
		if !near(v[i].RealUtilization, want.util) || !near(v[i].Coverage, want.coverage) {
			t.Errorf("device %d: %v of %v, want %v of %v", i, v[i].RealUtilization, v[i].Coverage, want.util, want.coverage)
		}
		if v[i].Class != want.class || v[i].Health != want.health || v[i].Findings.Of(cTemperature) != want.temperature {
			t.Errorf("device %d: %v %v %v, want %v %v %v", i, v[i].Class, v[i].Health, v[i].Findings, want.class, want.health, want.temperature)
		}
	}
}

// TestReuse judges frames of changing size in one memory: nothing of an earlier verdict stays.
func TestReuse(t *testing.T) {
	j := newJudge(t, nil)
	bad := reading{fSM: 1, fTensor: 1, fDRAM: 1, fEngine: 1, canonical.RowRemapFailure: 1}
	big := topology(canonical.Device{GPU: "0"}, canonical.Device{GPU: "1"}, canonical.Device{GPU: "2"})
	v := j.Judge(frame(big, start, bad, bad, bad), nil)
	memory := &v[0]
	v = j.Judge(&canonical.Frame{At: start}, v)
	if len(v) != 0 {
		t.Fatalf("%d verdicts on a frame without devices", len(v))
	}
	v = j.Judge(frame(topology(canonical.Device{GPU: "1"}, canonical.Device{GPU: "1", Instance: "2"}), start), v)
	if len(v) != 2 || &v[0] != memory {
		t.Fatalf("%d verdicts, or in new memory", len(v))
	}
	for i := range v {
		if canonical.Given(v[i].RealUtilization) || v[i].Class != canonical.ClassUnknown ||
			v[i].Health != canonical.HealthUnknown || v[i].Findings != (canonical.Findings{}) {
			t.Errorf("device %d still has %+v", i, v[i])
		}
	}
}

// fleet returns a frame of n healthy boards that were read in full.
func fleet(n int) *canonical.Frame {
	r := rand.New(rand.NewPCG(1, 2))
	devices := make([]canonical.Device, n)
	for i := range devices {
		devices[i] = canonical.Device{GPU: fmt.Sprint(i), UUID: fmt.Sprint("GPU-", i), Model: "NVIDIA H100 80GB HBM3"}
	}
	f := frame(topology(devices...), start)
	for i := range n {
		for k := range f.Row(i) {
			f.Row(i)[k] = r.Float64()
			switch canonical.Fields[k].Unit {
			case canonical.Flag, canonical.Code, canonical.Bitmask, canonical.Count:
				f.Row(i)[k] = 0
			}
		}
	}
	return f
}

// allocated returns a set with n allocations for each device of f.
func allocated(f *canonical.Frame, n int) *canonical.AllocationSet {
	t := &canonical.AllocationSet{Holders: make([]int, f.Len())}
	for i := range t.Holders {
		t.Holders[i] = n
		for k := range n {
			w := canonical.Workload{Namespace: "default", Pod: fmt.Sprintf("train-%d-%d", i, k)}
			t.Allocations = append(t.Allocations, canonical.Allocation{Device: i, Workload: w})
		}
	}
	return t
}

// TestSteadyReadingAllocatesNothing judges and accounts, also for devices and pods that left and
// are remembered.
func TestSteadyReadingAllocatesNothing(t *testing.T) {
	for _, n := range []int{8, 112} {
		j, f := newJudge(t, nil), fleet(n+2)
		var l canonical.Ledger
		f.AllocationSet = allocated(f, 3)
		v := j.Judge(f, nil)
		j.Account(&l, f, v, 0)
		f = fleet(n)
		f.AllocationSet = allocated(f, 2)
		codes := [2]float64{79, 45}
		f.Row(3)[canonical.XIDLast] = codes[1]
		step := func() {
			f.At = f.At.Add(100 * time.Millisecond)
			f.Row(3)[canonical.PCIeReplays]++
			f.Row(3)[canonical.XIDLast] = codes[0]
			codes[0], codes[1] = codes[1], codes[0]
			v = j.Judge(f, v)
			j.Account(&l, f, v, 100*time.Millisecond)
		}
		step()
		if got := testing.AllocsPerRun(100, step); got != 0 {
			t.Errorf("%d devices: %v allocations a reading, want 0", n, got)
		}
		if v[3].Findings.Of(cReplay) != canonical.Raised || l.Devices[3].XIDChanges != 102 || l.Devices[0].Observed != 102*100*time.Millisecond {
			t.Errorf("%d devices: the readings did not count: %+v", n, l.Devices[3])
		}
		if len(l.Devices) != n+2 || len(l.Allocations) != 3*(n+2) {
			t.Errorf("%d devices: accounts of %d devices and %d allocations", n, len(l.Devices), len(l.Allocations))
		}
	}
}

func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{8, 112, 1024} {
		b.Run(fmt.Sprintf("devices=%d", n), func(b *testing.B) {
			j, f := newJudge(b, nil), fleet(n)
			v := j.Judge(f, nil)
			b.ReportAllocs()
			for b.Loop() {
				f.At = f.At.Add(15e9)
				v = j.Judge(f, v)
			}
		})
	}
}

// BenchmarkTick judges and accounts ticks of a stream of 100 ms, and reports the share of one
// core that this takes.
func BenchmarkTick(b *testing.B) {
	for _, n := range []int{8, 112} {
		b.Run(fmt.Sprintf("devices=%d", n), func(b *testing.B) {
			j, f := newJudge(b, nil), fleet(n)
			f.AllocationSet = allocated(f, 2)
			var l canonical.Ledger
			v := j.Judge(f, nil)
			j.Account(&l, f, v, 0)
			b.ReportAllocs()
			for b.Loop() {
				f.At = f.At.Add(100 * time.Millisecond)
				v = j.Judge(f, v)
				j.Account(&l, f, v, 100*time.Millisecond)
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(100*time.Millisecond)*100, "%core")
		})
	}
}

// FuzzJudge judges rows of arbitrary bits, eight bytes a reading.
func FuzzJudge(f *testing.F) {
	seed := func(zero bool, values ...float64) {
		var b []byte
		for _, v := range values {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		f.Add(b, zero, 0.5)
	}
	seed(false)
	seed(true, 0.5, 0.4, 0.3)
	seed(false, math.NaN(), 0.4, 0.3, 1.1, -1)
	seed(false, math.Inf(1), math.Inf(-1), math.Inf(-1), 1e308, -1e308)
	seed(true, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
	f.Fuzz(func(t *testing.T, b []byte, zero bool, minCoverage float64) {
		o := DefaultOptions()
		o.MinCoverage = minCoverage
		if zero {
			o.Missing = Zero
		}
		j, err := New(o)
		if err != nil {
			return
		}
		fr := frame(topology(canonical.Device{GPU: "0", Model: "A100"}), start)
		for i := range fr.Row(0) {
			if len(b) >= 8 {
				fr.Row(0)[i] = math.Float64frombits(binary.LittleEndian.Uint64(b))
				b = b[8:]
			}
		}
		v := j.Judge(fr, nil)[0]
		if u := v.RealUtilization; canonical.Given(u) && !(u >= 0 && u <= 1) {
			t.Errorf("utilization %v", u)
		}
		if !canonical.Given(v.RealUtilization) && v.Class != canonical.ClassUnknown {
			t.Errorf("class %v without a score", v.Class)
		}
		if !(v.Coverage >= 0 && v.Coverage <= 1+1e-9) || v.Class >= canonical.NumClasses || v.Health >= canonical.NumHealth {
			t.Errorf("verdict %+v", v)
		}
	})
}
