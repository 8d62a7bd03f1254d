package view

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// noon is the time of the frames of all scenarios.
var noon = time.Date(2026, time.March, 14, 12, 0, 0, 0, time.UTC)

// scenario is a case that the terminal has to show. nodes returns its nodes at a time, so that
// they have a history.
type scenario struct {
	name  string
	nodes func(at time.Time) []*client.Node
	// set changes their State.
	set func(s *State)
	// read is how long they were read; 0 means a quarter of an hour.
	read time.Duration
}

// scenarios by name.
var scenarios = []scenario{
	{"one", oneNode(1), nil, 0},
	{"four", oneNode(4), nil, 2 * time.Minute},
	{"eight", oneNode(8), nil, 0},
	{"sixteen", oneNode(16), nil, 0},
	{"many", oneNode(128), nil, 5 * time.Minute},
	{"missing", withGPUs(4, func(_ time.Time, g *client.GPU) { *g = *g.Blank() }), nil, 0},
	{"stale", oneNode(4), func(s *State) { s.Now = noon.Add(12 * time.Second) }, 0},
	{"expired", oneNode(4), func(s *State) { s.Now = noon.Add(95 * time.Second) }, 0},
	{"sick", withGPUs(8, sicken), func(s *State) { s.Selected = s.GPUs[3].Key }, 0},
	{"wasted", withGPUs(8, waste), nil, 0},
	{"story", withGPUs(8, story), nil, 0},
	{"mono", withGPUs(8, story), func(s *State) { s.Mono, s.Selected = true, s.GPUs[0].Key }, 0},
	{"unprofiled", withGPUs(4, unprofile), nil, 0},
	{"mig", migNode, func(s *State) { s.Selected = s.GPUs[3].Key }, 0},
	{"nodes", twoNodes, func(s *State) { s.Selected = s.GPUs[5].Key }, 0},
	{"silent", silentNodes, nil, 0},
	{"racks", rackNodes, func(s *State) { s.Selected = s.GPUs[21].Key }, 5 * time.Minute},
	{"cut", cutNodes, func(s *State) { s.Selected = s.GPUs[9].Key }, 2 * time.Minute},
	{"sorted", oneNode(8), func(s *State) {
		s.Sort = Sort{By: client.MetricPower, Descending: true}
		s.Filter = "power>300"
		f, _ := ParseFilter(s.Filter)
		s.GPUs, s.Devices = Arrange(s.Nodes, f, s.Sort)
		s.Selected = s.GPUs[0].Key
	}, 0},
	{"cursor", oneNode(8), func(s *State) { s.Metric, s.Cursor = client.MetricPower, noon.Add(-time.Minute) }, 0},
	{"none", oneNode(0), nil, 0},
}

// state returns the State of a scenario after a time of readings, one every two seconds. The
// caller owns all of it except the History.
func state(name string) *State {
	sc := scenarioNamed(name)
	s := &State{
		Now: noon, History: sc.history(), Nodes: sc.nodes(noon),
		Choices:    Choices{View: Fleet, Window: history.DefaultWindow, Metric: client.MetricReal},
		Appearance: Appearance{Theme: Themes[0]},
	}
	s.GPUs, s.Devices = Arrange(s.Nodes, nil, s.Sort)
	if len(s.GPUs) > 0 {
		s.Selected = s.GPUs[min(2, len(s.GPUs)-1)].Key
	}
	if sc.set != nil {
		sc.set(s)
	}
	return s
}

func scenarioNamed(name string) *scenario {
	return &scenarios[slices.IndexFunc(scenarios, func(sc scenario) bool { return sc.name == name })]
}

// histories caches histories by scenario. They are not written to any more.
var histories sync.Map

// history returns the readings of the scenario up to noon.
func (sc *scenario) history() *history.History {
	if h, ok := histories.Load(sc.name); ok {
		return h.(*history.History)
	}
	read := sc.read
	if read == 0 {
		read = 15 * time.Minute
	}
	h := history.NewHistory()
	for at := noon.Add(-read); !at.After(noon); at = at.Add(2 * time.Second) {
		for _, n := range sc.nodes(at) {
			if n.Err == "" {
				h.Add(n)
			}
		}
	}
	histories.Store(sc.name, h)
	return h
}

func oneNode(n int) func(time.Time) []*client.Node {
	return func(at time.Time) []*client.Node { return []*client.Node{node("dgx-03", n, at)} }
}

// withGPUs returns a node of n GPUs, each changed by change.
func withGPUs(n int, change func(at time.Time, g *client.GPU)) func(time.Time) []*client.Node {
	return func(at time.Time) []*client.Node {
		nodes := oneNode(n)(at)
		for _, g := range nodes[0].GPUs {
			change(at, g)
		}
		return nodes
	}
}

func node(name string, gpus int, at time.Time) *client.Node {
	url := "http://" + name + ":9401/metrics"
	n := &client.Node{
		URL: url, Name: name, Up: true, FetchedAt: at, At: at, Period: 2 * time.Second,
		Host:      canonical.Host{CPUs: 112, CPUUtilization: 0.305, MemoryTotal: 2 << 40, MemoryAvailable: 1.6 * (1 << 40)},
		Weighting: client.Weighting{Preset: "ai", Weights: canonical.Weights{SM: .35, Tensor: .35, DRAM: .20, Engine: .10}},
	}
	for i := range gpus {
		n.GPUs = append(n.GPUs, fixture(n, i, at))
	}
	return n
}

// fixture returns a device that works in waves, each with its own period. The third hardly
// works.
func fixture(n *client.Node, i int, at time.Time) *client.GPU {
	seconds := at.Sub(noon).Seconds()
	wave := 0.5 + 0.5*math.Sin(seconds/(20+float64(i%7)*9)+float64(i))
	g := client.NewGPU(n.URL, canonical.Device{
		Hostname: n.Name, GPU: strconv.Itoa(i), UUID: fmt.Sprintf("GPU-%04d", i),
		Model: "NVIDIA H200", Name: "nvidia" + strconv.Itoa(i), PCIBusID: fmt.Sprintf("00000000:%02X:00.0", i+16), Driver: "570.86.15",
	})
	g.RealUtilization, g.Class, g.Health = 0.15+0.75*wave, classes[i%len(classes)], canonical.HealthOK
	g.Holders = 1
	g.UtilizedSeconds, g.KnownSeconds = 41000, 86000
	clear(g.Values[:])
	if i == 2 {
		g.RealUtilization, g.Class = 0.012, canonical.Idle
	}
	if i != 2 {
		g.Allocations = []client.Allocation{{Allocation: canonical.Allocation{
			Workload: canonical.Workload{Namespace: "research", Pod: fmt.Sprintf("train-7b-%d", i/4), Container: "trainer"}, Kind: "Job", Name: "train-7b",
		}, Seconds: 7200, UtilizedSeconds: 3600, KnownSeconds: 7200}}
	}
	fill(g, i)
	return g
}

// classes that the devices of fixtures are in.
var classes = []canonical.Class{
	canonical.TensorHeavyCompute, canonical.TensorCompute, canonical.Idle, canonical.MemoryBound,
	canonical.IOOrDataLoading, canonical.ComputeActive, canonical.MixedOrModerate, canonical.LowUtilization,
}

// fill sets all readings of g to fit its utilization.
func fill(g *client.GPU, i int) {
	u := g.RealUtilization
	for _, r := range []struct {
		field canonical.Field
		value float64
	}{
		{canonical.SMActive, u},
		{canonical.SMOccupancy, u * 0.6},
		{canonical.TensorActive, u * 0.7},
		{canonical.TensorHMMAActive, u * 0.65},
		{canonical.TensorIMMAActive, 0},
		{canonical.FP64Active, 0},
		{canonical.FP32Active, u * 0.2},
		{canonical.FP16Active, u * 0.1},
		{canonical.IntActive, u * 0.15},
		{canonical.GraphicsEngineActive, min(1, u*1.2)},
		{canonical.DRAMActive, u * 0.5},
		{canonical.NVMLUtilization, min(1, u*1.3)},
		{canonical.MemoryCopyUtilization, u * 0.4},
		{canonical.EncoderUtilization, 0},
		{canonical.DecoderUtilization, 0},
		{canonical.PCIeTransmit, u * 0.4e9},
		{canonical.PCIeReceive, u * 2.2e9},
		{canonical.NVLinkBytes, u * 310e9},
		{canonical.NVLinkLimit, 18 * 2 * 26.562e9},
		{canonical.Power, 95 + u*580},
		{canonical.PowerLimit, 700},
		{canonical.Energy, 2.3e9 + float64(i)*1e7},
		{canonical.Temperature, math.Round(31 + u*42)},
		{canonical.MemoryTemperature, math.Round(36 + u*44)},
		{canonical.TemperatureWarning, 95},
		{canonical.TemperatureSlowdown, 90},
		{canonical.SMClock, 1980e6},
		{canonical.MemoryClock, 3201e6},
		{canonical.FramebufferUsed, (8 + 120*u) * (1 << 30)},
		{canonical.FramebufferFree, (132.8 - 120*u) * (1 << 30)},
		{canonical.FramebufferReserved, 0.5 * (1 << 30)},
		{canonical.FramebufferTotal, 140.8 * (1 << 30)},
		{canonical.FramebufferUsedRatio, (8 + 120*u) / 140.8},
		{canonical.PCIeLinkGeneration, 5},
		{canonical.PCIeLinkWidth, 16},
		{canonical.PCIeLinkGenerationMax, 5},
		{canonical.PCIeLinkWidthMax, 16},
	} {
		g.Values[r.field] = r.value
	}
	g.Values[canonical.ClockEvents] = math.NaN()
}

// sicken makes some devices unhealthy: one crit, one hot, one gone, one warn.
func sicken(_ time.Time, g *client.GPU) {
	switch g.GPU {
	case "1":
		g.Health, g.Action = canonical.HealthHot, canonical.ActionCheckHardware
		g.Values[canonical.Temperature] = 96
		g.Raised = []client.RaisedCondition{{Condition: canonical.CondGPUTemperature, State: canonical.HealthHot}}
		g.ClockEvents = []string{"sw_thermal"}
	case "3":
		g.Health = canonical.HealthCrit
		g.Values[canonical.XIDLast], g.Values[canonical.RemappedRowsUncorrectable] = 79, 2
		g.Action = canonical.ActionRebootNode
		g.Raised = []client.RaisedCondition{{Condition: canonical.CondXIDFatal, State: canonical.HealthCrit}, {Condition: canonical.CondPCIeReplay, State: canonical.HealthWarn}}
		g.Values[canonical.PCIeReplays] = 14
	case "5":
		*g = *g.Blank()
		g.Gone, g.Health, g.XIDs = true, canonical.HealthCrit, []uint32{79}
	case "6":
		g.Health, g.Action = canonical.HealthWarn, canonical.ActionResetGPU
		g.Values[canonical.RowRemapPending] = 1
		g.Raised = []client.RaisedCondition{{Condition: canonical.CondRowRemapPending, State: canonical.HealthWarn}}
	}
}

// waste makes half of the devices claim much and do little, one forgotten, and one gone.
func waste(_ time.Time, g *client.GPU) {
	set := func(util, real, memory float64, class canonical.Class) {
		g.RealUtilization, g.Class = real, class
		fill(g, 0)
		g.Values[canonical.NVMLUtilization] = util
		g.Values[canonical.FramebufferUsed], g.Values[canonical.FramebufferUsedRatio] = memory*(1<<30), memory/140.8
	}
	switch g.GPU {
	case "1", "3", "4":
		set(0.91, 0.39, 118, canonical.BusyLowSMUse)
	case "2":
		set(1, 0.07, 40, canonical.BusyLowSMUse)
	case "5":
		*g = *g.Blank()
		g.Gone, g.Health = true, canonical.HealthCrit
	case "6":
		set(0, 0.001, 58, canonical.Idle)
	}
}

// unprofile leaves GPU-Util alone of what is known of the use of devices, which is 0, 20, 40 and 100 %.
func unprofile(_ time.Time, g *client.GPU) {
	util := map[string]float64{"0": 0, "1": 0.2, "2": 0.4, "3": 1}[g.GPU]
	g.RealUtilization, g.Class, g.KnownSeconds = math.NaN(), canonical.ClassUnknown, 0
	for _, f := range []canonical.Field{
		canonical.SMActive, canonical.SMOccupancy, canonical.TensorActive, canonical.GraphicsEngineActive, canonical.DRAMActive, canonical.FP64Active,
		canonical.FP32Active, canonical.FP16Active, canonical.IntActive, canonical.TensorHMMAActive, canonical.TensorIMMAActive, canonical.TensorDFMAActive,
		canonical.TensorDMMAActive, canonical.TensorQMMAActive,
	} {
		g.Values[f] = math.NaN()
	}
	if g.Values[canonical.NVMLUtilization] = util; util == 0 {
		g.Class = canonical.Idle
	}
}

// story sets what GPUs do in a quarter of an hour: a training that writes checkpoints, one that
// is memory-bound in turns, a busy program that uses few SMs, a board that is lost, a job that
// begins, one that gets slower, a forgotten notebook, and a job that loads its data first.
func story(at time.Time, g *client.GPU) {
	left := noon.Sub(at)
	set := func(util, real float64, class canonical.Class) {
		g.RealUtilization, g.Class = real, class
		fill(g, 0)
		g.Values[canonical.NVMLUtilization] = util
	}
	wobble := 0.03 * math.Sin(at.Sub(noon).Seconds()/3)
	switch g.GPU {
	case "0":
		set(1, 0.72+wobble, canonical.TensorHeavyCompute)
		if left%(2*time.Minute) < 14*time.Second {
			set(0.4, 0.08, canonical.IOOrDataLoading)
		}
	case "1":
		set(0.95, 0.46+wobble, canonical.TensorCompute)
		if left/(40*time.Second)%2 == 0 {
			set(0.95, 0.3+wobble, canonical.MemoryBound)
		}
	case "2":
		set(0.9, 0.14+wobble, canonical.BusyLowSMUse)
	case "3":
		set(1, 0.81+wobble, canonical.FP64HPCCompute)
		if left < 70*time.Second {
			*g = *g.Blank()
			g.Gone, g.Health, g.XIDs = true, canonical.HealthCrit, []uint32{79}
		}
	case "4":
		set(0, 0.001, canonical.Idle)
		if left < 3*time.Minute {
			set(0.93, 0.5+wobble, canonical.ComputeActive)
		}
	case "5":
		set(1, 0.45+wobble+left.Seconds()/2000, canonical.ComputeHeavy)
		if left < time.Minute {
			set(1, 0.38+wobble, canonical.MemoryActive)
			g.Health, g.Action, g.Values[canonical.Temperature] = canonical.HealthHot, canonical.ActionCheckHardware, 96
			g.Raised = []client.RaisedCondition{{Condition: canonical.CondGPUTemperature, State: canonical.HealthHot}}
		}
	case "6":
		set(0, 0.001, canonical.Idle)
		g.Values[canonical.FramebufferUsed], g.Values[canonical.FramebufferUsedRatio] = 58*(1<<30), 58/140.8
	case "7":
		set(0.7, 0.1+wobble, canonical.IOOrDataLoading)
		if left < 4*time.Minute {
			set(0.97, 0.61+wobble, canonical.TensorCompute)
		}
	}
}
