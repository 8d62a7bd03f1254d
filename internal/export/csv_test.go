package export

import (
	"encoding/csv"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// kempnerPulse lists KempnerPulse's columns, from its docs/export.md.
const kempnerPulse = `timestamp gpu_id model real_util_pct status health
	sm_active_pct tensor_active_pct dram_active_pct gr_engine_active_pct gpu_util_pct
	mem_used_mib mem_total_mib mem_used_pct power_w gpu_temp_c mem_temp_c
	sm_occupancy_pct fp16_pipe_pct fp32_pipe_pct fp64_pipe_pct memcpy_util_pct
	pcie_rx_bytes_s pcie_tx_bytes_s nvlink_gbps sm_clock_mhz mem_clock_mhz pcie_replay_rate_s energy_j
	tc_hmma_pct tc_imma_pct tc_dfma_pct tc_dmma_pct tc_qmma_pct`

var jobNames = []string{"job_id", "rank"}

func names(columns []Column) []string {
	var all []string
	for _, c := range columns {
		all = append(all, c.Name)
	}
	return all
}

func columnsOf(t testing.TB, spec string) []Column {
	t.Helper()
	columns, err := ParseColumns(spec, jobNames)
	if err != nil {
		t.Fatal(err)
	}
	return columns
}

func TestParseColumns(t *testing.T) {
	theirs := strings.Fields(kempnerPulse)
	if len(theirs) != 34 {
		t.Fatalf("%d columns", len(theirs))
	}
	for _, c := range []struct {
		spec string
		want []string
	}{
		{"all", theirs},
		{"default", []string{
			"timestamp", "gpu_id", "model", "gpu_util_pct", "mem_used_mib",
			"real_util_pct", "sm_active_pct", "tensor_active_pct", "dram_active_pct",
		}},
		{" power_w , gpu_id,,gpu_xid_last, job_rank", []string{"power_w", "gpu_id", "gpu_xid_last", "job_rank"}},
	} {
		if got := names(columnsOf(t, c.spec)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v\nwant %v", c.spec, got, c.want)
		}
	}
	all := names(columnsOf(t, "all+"))
	if !slices.Equal(all[:34], theirs) {
		t.Errorf("all+ begins with %v", all[:34])
	}
	for _, name := range []string{"uuid", "mig_instance", "gpu_workload_class", "gpu_real_utilization_coverage_ratio", "gpu_health_condition", "gpu_pcie_replays_total", "job_id", "job_rank"} {
		if !slices.Contains(all[34:], name) {
			t.Errorf("all+ lacks %s", name)
		}
	}
	for i, name := range all {
		if slices.Contains(all[i+1:], name) {
			t.Errorf("two columns are named %s", name)
		}
	}
	for spec, want := range map[string]string{
		"gpu_id,real_util": `"real_util" is not a column; did you mean real_util_pct?`,
		"a,gpu_id,b":       `"a" is not a column; write default, all, all+, or names`,
		"":                 `names no column`,
		",":                `names no column`,
		"ALL":              `"ALL" is not a column`,
	} {
		if _, err := ParseColumns(spec, jobNames); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", spec, err, want)
		}
	}
}

// TestEveryReadingHasAColumn: each field changes exactly one column of all+; for PCIe
// replays that is the counter beside the rate.
func TestEveryReadingHasAColumn(t *testing.T) {
	columns, view := columnsOf(t, "all+"), full()
	cells := func(values []float64) (all []string) {
		r := row{snapshot: view.Snapshot, device: &canonical.Device{}, verdict: &canonical.Verdict{}, values: values, replays: math.NaN()}
		for _, c := range columns {
			all = append(all, string(c.cell(nil, &r)))
		}
		return all
	}
	values := slices.Repeat([]float64{math.NaN()}, int(canonical.NumFields))
	blank := cells(values)
	for f := range values {
		values[f] = 1e14
		changed := []string{}
		for i, cell := range cells(values) {
			if cell != blank[i] {
				changed = append(changed, columns[i].Name)
			}
		}
		if len(changed) != 1 {
			t.Errorf("%s is in the columns %v, want one", Key(canonical.Field(f)), changed)
		}
		values[f] = math.NaN()
	}
}

// full has a device with all readings, and one without any.
func full() *View {
	v := &View{Snapshot: &canonical.Snapshot{}, Job: []canonical.Variable{{Name: "job_id", Value: "4711"}}}
	v.Frame.Shape(&canonical.Topology{Devices: []canonical.Device{
		{Hostname: "n,1", GPU: "0", UUID: "GPU-a", Model: "NVIDIA H100 80GB HBM3", Driver: "580\n1"},
		{Hostname: "n,1", GPU: "3", UUID: "GPU-b", Board: 1},
	}})
	v.Frame.At = time.UnixMilli(1743782400129)
	r := v.Frame.Row(0)
	for i := range r {
		r[i] = 0.123456
	}
	for f, value := range map[canonical.Field]float64{
		canonical.FramebufferUsed: 3 << 29, canonical.FramebufferTotal: 80 << 30, canonical.Power: 412.46, canonical.Temperature: 61,
		canonical.MemoryTemperature: 0, canonical.PCIeReceive: 1.5e9, canonical.PCIeTransmit: 3, canonical.NVLinkBytes: 202.00128e9,
		canonical.SMClock: 1.98e9, canonical.MemoryClock: 2619e6, canonical.Energy: 2307328912.345, canonical.PCIeReplays: 7,
		canonical.XIDLast: 79, canonical.ThrottledThermal: 1.25,
	} {
		r[f] = value
	}
	v.Verdicts = []canonical.Verdict{
		{RealUtilization: 0.6589, RealPercent: 65.89, Coverage: 0.65, Class: canonical.BusyLowSMUse, Health: canonical.HealthCrit},
		{RealUtilization: math.NaN(), RealPercent: math.NaN(), Coverage: 0, Class: canonical.ClassUnknown, Health: canonical.HealthUnknown},
	}
	v.Verdicts[0].Findings.Set(canonical.CondXIDFatal, canonical.Raised)
	v.Verdicts[0].Findings.Set(canonical.CondXIDRecent, canonical.Raised)
	v.Frame.AllocationSet = &canonical.AllocationSet{Allocations: []canonical.Allocation{
		{Device: 0, Workload: canonical.Workload{Namespace: "ml", Pod: "p", Container: "c"}},
		{Device: 0, Workload: canonical.Workload{Job: "12,3"}},
		{Device: 1, Workload: canonical.Workload{Pod: "q", Job: "9"}},
	}}
	return v
}

// TestCSV: KempnerPulse's units and decimals, worked out by hand, and empty cells for what
// was not read.
func TestCSV(t *testing.T) {
	var out strings.Builder
	w := NewCSV(&out, columnsOf(t, "all"))
	v := full()
	if err := w.Write(v); err != nil {
		t.Fatal(err)
	}
	v.Frame.At = v.Frame.At.Add(4 * time.Second)
	v.Frame.Row(0)[canonical.PCIeReplays] = 8
	if err := w.Write(v); err != nil {
		t.Fatal(err)
	}
	const head = `0,H100,65.89,"busy, low SM use",CRIT,12.35,12.35,12.35,12.35,12.35,1536.0000,81920.0,12.35,412.4600,61.0000,0.0000,` +
		`12.35,12.35,12.35,12.35,12.35,1500000000.0000,3.0000,202.0013,1980.0000,2619.0000,`
	const tail = `,2307328912.3,12.35,12.35,12.35,12.35,12.35` + "\n"
	nothing := `3,,,unknown,UNKNOWN` + strings.Repeat(",", 28) + "\n"
	want := strings.Join(strings.Fields(kempnerPulse), ",") + "\n" +
		"1743782400.12," + head + tail + "1743782400.12," + nothing +
		"1743782404.12," + head + "0.25" + tail + "1743782404.12," + nothing
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestCSVOfOurColumns(t *testing.T) {
	var out strings.Builder
	spec := "gpu_id,hostname,driver_version,gpu_workload_class,bottleneck,gpu_real_utilization_coverage_ratio,gpu_health_condition,workloads," +
		"gpu_xid_last,gpu_throttled_seconds_total_thermal,gpu_pcie_replays_total,job_id,job_rank"
	v := full()
	if err := NewCSV(&out, columnsOf(t, spec)).Write(v); err != nil {
		t.Fatal(err)
	}
	const want = `0,"n,1",580 1,busy_low_sm_use,mixed,0.65,xid_fatal;xid_recent,"ml/p/c;job 12,3",79,1.25,7,4711,` + "\n" +
		`3,"n,1",,unknown,unknown,0,,q job 9,,,,4711,` + "\n"
	if _, got, _ := strings.Cut(out.String(), "\n"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if _, err := csv.NewReader(strings.NewReader(out.String())).ReadAll(); err != nil {
		t.Error(err)
	}
}

// TestInstances: a board known only from its instances has no class, an instance no health.
func TestInstances(t *testing.T) {
	var out strings.Builder
	v := snapshot()
	v.Devices = []int{1, 2}
	if err := NewCSV(&out, columnsOf(t, "gpu_id,status,health,mig_instance,mig_profile,gpu_workload_class,gpu_health_condition")).Write(v); err != nil {
		t.Fatal(err)
	}
	const want = "1,,WARN,,,,pcie_replay;power_brake\n1:7,unknown,,7,1g.10gb,unknown,\n"
	if _, got, _ := strings.Cut(out.String(), "\n"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestReplayRate: a rate needs two counts of one device that do not decrease, and follows
// the device while others come and go.
func TestReplayRate(t *testing.T) {
	var out strings.Builder
	w := NewCSV(&out, columnsOf(t, "gpu_id,pcie_replay_rate_s"))
	at := time.UnixMilli(0)
	tick := func(after time.Duration, counts map[string]float64, ids ...string) {
		v, topology := &View{Snapshot: &canonical.Snapshot{}}, &canonical.Topology{}
		for _, id := range ids {
			topology.Devices = append(topology.Devices, canonical.Device{GPU: id, UUID: "GPU-" + id})
		}
		v.Frame.Shape(topology)
		at = at.Add(after)
		v.Frame.At = at
		for i, id := range ids {
			if n, ok := counts[id]; ok {
				v.Frame.Row(i)[canonical.PCIeReplays] = n
			}
		}
		v.Verdicts = make([]canonical.Verdict, len(ids))
		if err := w.Write(v); err != nil {
			t.Fatal(err)
		}
	}
	tick(0, map[string]float64{"0": 5, "1": 1}, "0", "1")
	tick(2*time.Second, map[string]float64{"0": 6, "1": 1}, "0", "1")
	tick(0, map[string]float64{"0": 7, "1": 1}, "0", "1")           // no time has passed
	tick(time.Second, map[string]float64{"1": 4, "2": 9}, "1", "2") // 0 went, 2 came
	tick(time.Second, map[string]float64{"0": 8, "1": 2}, "0", "1") // 0 is back, 1 was reset
	tick(time.Second, nil, "0", "1")                                // nothing was read
	tick(time.Second, map[string]float64{"0": 8, "1": 2}, "0", "1") // no count before this one
	tick(500*time.Millisecond, map[string]float64{"0": 9, "1": 2}, "0", "1")
	const want = "gpu_id,pcie_replay_rate_s\n0,\n1,\n0,0.50\n1,0.00\n0,\n1,\n1,3.00\n2,\n0,\n1,\n0,\n1,\n0,\n1,\n0,2.00\n1,0.00\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestShortModel(t *testing.T) {
	for model, want := range map[string]string{
		"NVIDIA H100 80GB HBM3": "H100", "NVIDIA A100-SXM4-40GB": "A100", "NVIDIA RTX 6000 Ada Generation": "RTX6000",
		"NVIDIA RTX A6000": "RTX", "AMD Instinct MI300X": "MI300X", "Tesla V100-SXM2": "Tesla", "RTX6000": "RTX6000", "H100": "H100", "": "",
	} {
		if got := shortModel(model); got != want {
			t.Errorf("%q: %q, want %q", model, got, want)
		}
	}
}

// counting counts writes.
type counting struct{ n int }

func (c *counting) Write(p []byte) (int, error) { c.n++; return len(p), nil }

// TestSteadyCSV: a tick is one write, so that readers see whole ticks, and allocates
// nothing.
func TestSteadyCSV(t *testing.T) {
	out := &counting{}
	w, v := NewCSV(out, columnsOf(t, "all")), full()
	tick := func() {
		v.Frame.At = v.Frame.At.Add(time.Second)
		if err := w.Write(v); err != nil {
			t.Fatal(err)
		}
	}
	tick()
	if n := testing.AllocsPerRun(100, tick); n != 0 {
		t.Errorf("a tick allocates %v times", n)
	}
	if out.n != 1+101 { // AllocsPerRun warms up once
		t.Errorf("%d writes", out.n)
	}
}

// TestCSVOfNothing: ticks without devices write the header, once.
func TestCSVOfNothing(t *testing.T) {
	var out strings.Builder
	w, v := NewCSV(&out, columnsOf(t, "gpu_id,power_w")), &View{Snapshot: &canonical.Snapshot{}}
	for range 2 {
		if err := w.Write(v); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "gpu_id,power_w\n" {
		t.Errorf("got %q", out.String())
	}
}

func TestCSVReportsErrors(t *testing.T) {
	if err := NewCSV(closed{}, columnsOf(t, "all")).Write(full()); !errors.Is(err, errClosed) {
		t.Errorf("got %v", err)
	}
}
