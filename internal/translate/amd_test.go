package translate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// amdGoldens are pages of AMD's device-metrics-exporter, after its documentation and issues 115, 135, 211, 353 and 495. No hardware was tried.
var amdGoldens = []golden{
	{
		file:    "amd-mi210.prom", // with the operator's prefix
		devices: []c.Device{{Hostname: "mi210-a", GPU: "0", UUID: "692227000101", Model: "AMD Instinct MI210", Driver: "6.12.12"}},
		rows: []readings{{
			c.NVMLUtilization: .12, c.MemoryCopyUtilization: .03, c.DRAMActive: .03, c.Power: 48, c.Energy: 1234567.8, c.Temperature: 44, c.MemoryTemperature: 53,
			c.SMClock: 1.7e9, c.MemoryClock: 1.6e9, c.FramebufferTotal: 65520 << 20, c.FramebufferUsed: 614 << 20, c.FramebufferUsedRatio: 614. / 65520, c.FramebufferFree: 64906 << 20,
			c.PCIeLinkGeneration: 4, c.PCIeLinkGenerationMax: 4, c.ECCSingleBitVolatile: 5, c.ECCDoubleBitVolatile: 0,
		}},
		holds: []c.Allocation{{Workload: c.Workload{Namespace: "notebooks", Pod: "ws-tf-0", Container: "ws-tf"}}},
	},
	{
		file: "amd-mi300x-spx.prom", // with the profiler, and a job of Slurm
		devices: []c.Device{
			{Hostname: "mi300-b", GPU: "0", UUID: "692341000201", Model: "AMD Instinct MI300X", Driver: "6.14.14"},
			{Hostname: "mi300-b", GPU: "1", UUID: "692341000202", Model: "AMD Instinct MI300X", Driver: "6.14.14", Board: 1},
		},
		rows: []readings{
			{
				c.NVMLUtilization: 1, c.MemoryCopyUtilization: .34, c.DRAMActive: .34, c.Power: 742, c.Energy: 9.5e6, c.Temperature: 81, c.MemoryTemperature: 66,
				c.SMClock: 2.106e9, c.MemoryClock: 1.3e9, c.FramebufferTotal: 196592 << 20, c.FramebufferUsed: 150000 << 20, c.FramebufferUsedRatio: 150000. / 196592, c.FramebufferFree: 46592 << 20,
				c.GraphicsEngineActive: .995, c.SMActive: .7125, c.SMOccupancy: .205, c.TensorActive: .555, c.PCIeLinkGeneration: 5, c.PCIeLinkGenerationMax: 5,
				c.PCIeReplays: 2, c.ECCSingleBitVolatile: 3, c.ECCDoubleBitVolatile: 1, c.NVLinkCRCDataErrors: 7, c.NVLinkReceiveErrors: 2, c.ClockEvents: 0x44,
			},
			{
				c.NVMLUtilization: 0, c.MemoryCopyUtilization: 0, c.DRAMActive: 0, c.Power: 141, c.Energy: 8.5e6, c.Temperature: 41, c.MemoryTemperature: 33,
				c.FramebufferTotal: 196592 << 20, c.FramebufferUsed: 284 << 20, c.FramebufferUsedRatio: 284. / 196592, c.FramebufferFree: 196308 << 20,
				c.GraphicsEngineActive: 0, c.SMActive: 0, c.SMOccupancy: 0, c.TensorActive: 0, c.PCIeReplays: 0, c.ECCDoubleBitVolatile: 0, c.ClockEvents: 0,
			},
		},
		holds: []c.Allocation{
			{Workload: c.Workload{Job: "4711"}, User: "ada", Partition: "gpu"}, {Device: 1, Workload: c.Workload{Job: "4711"}, User: "ada", Partition: "gpu"},
		},
	},
	{
		file: "amd-mi300x-cpx.prom", // the sensors and the activity of the engines are the board's, on the first partition
		devices: []c.Device{
			{Hostname: "mi300-c", GPU: "8", UUID: "692341000203", Model: "AMD Instinct MI300X", Driver: "6.14.14", Implied: true},
			{Hostname: "mi300-c", GPU: "8", UUID: "692341000203", Instance: "0", Profile: "cpx", Model: "AMD Instinct MI300X", Driver: "6.14.14"},
			{Hostname: "mi300-c", GPU: "8", UUID: "692341000203", Instance: "1", Profile: "cpx", Model: "AMD Instinct MI300X", Driver: "6.14.14"},
			{Hostname: "mi300-c", GPU: "8", UUID: "692341000203", Instance: "2", Profile: "cpx", Model: "AMD Instinct MI300X", Driver: "6.14.14"},
			{Hostname: "mi300-c", GPU: "8", UUID: "692341000203", Instance: "3", Profile: "cpx", Model: "AMD Instinct MI300X", Driver: "6.14.14"},
		},
		rows: []readings{
			{c.Power: 655, c.Temperature: 70, c.MemoryTemperature: 60, c.Energy: 7e6, c.PCIeReplays: 0, c.SMClock: 2.1e9},
			{c.SMActive: 0, c.TensorActive: 0, c.GraphicsEngineActive: 0, c.FramebufferTotal: 24574 << 20, c.FramebufferUsed: 0, c.FramebufferUsedRatio: 0, c.FramebufferFree: 24574 << 20},
			{c.SMActive: .1, c.TensorActive: .05, c.GraphicsEngineActive: .2, c.FramebufferTotal: 24574 << 20, c.FramebufferUsed: 1000 << 20, c.FramebufferUsedRatio: 1000. / 24574, c.FramebufferFree: 23574 << 20},
			{c.SMActive: .2, c.TensorActive: .1, c.GraphicsEngineActive: .4, c.FramebufferTotal: 24574 << 20, c.FramebufferUsed: 2000 << 20, c.FramebufferUsedRatio: 2000. / 24574, c.FramebufferFree: 22574 << 20},
			{c.SMActive: .3, c.TensorActive: .15, c.GraphicsEngineActive: .6, c.FramebufferTotal: 24574 << 20, c.FramebufferUsed: 3000 << 20, c.FramebufferUsedRatio: 3000. / 24574, c.FramebufferFree: 21574 << 20},
		},
		holds: []c.Allocation{{Device: 3, Workload: c.Workload{Namespace: "ai", Pod: "serve-2", Container: "m"}}},
	},
	{
		file: "amd-mi355x-dpx.prom", // without the profiler
		devices: []c.Device{
			{Hostname: "mi355-d", GPU: "0", UUID: "692441000300", Model: "AMD Instinct MI355X", Driver: "6.14.14", Implied: true},
			{Hostname: "mi355-d", GPU: "0", UUID: "692441000300", Instance: "0", Profile: "dpx", Model: "AMD Instinct MI355X", Driver: "6.14.14"},
			{Hostname: "mi355-d", GPU: "2", UUID: "692441000302", Model: "AMD Instinct MI355X", Driver: "6.14.14", Implied: true, Board: 2},
			{Hostname: "mi355-d", GPU: "2", UUID: "692441000302", Instance: "0", Profile: "dpx", Model: "AMD Instinct MI355X", Driver: "6.14.14", Board: 2},
		},
		rows: []readings{{c.Power: 900, c.Temperature: 75}, {c.FramebufferTotal: 147432 << 20, c.FramebufferUsed: 1024 << 20, c.FramebufferUsedRatio: 1024. / 147432, c.FramebufferFree: 146408 << 20}},
	},
	{
		file: "amd-guest.prom", // boards without a serial number, and of the desktop; the last has zeros for readings
		devices: []c.Device{
			{Hostname: "vm-1", GPU: "0", UUID: "9fff74b9-0000-1000-8044-4a2fb30adeb0", Model: "AMD", Driver: "6.14.14"},
			{Hostname: "vm-1", GPU: "1", UUID: "vm-1/1", Model: "AMD Aqua Vanjaram [Instinct MI325X VF]", Driver: "6.14.14", Board: 1},
			{Hostname: "vm-1", GPU: "2", UUID: "vm-1/2", Model: "AMD Radeon RX 7900 XTX", Driver: "6.14.14", Board: 2},
			{Hostname: "vm-1", GPU: "3", UUID: "vm-1/3", Model: "AMD Radeon 8060S", Driver: "6.14.14", Board: 3},
		},
		rows: []readings{
			{c.NVMLUtilization: .83, c.FramebufferTotal: 262128 << 20, c.ECCDoubleBitVolatile: 0},
			{c.NVMLUtilization: .05, c.FramebufferTotal: 262128 << 20},
			{c.NVMLUtilization: .6, c.Power: 250, c.Temperature: 60, c.GraphicsEngineActive: .59},
			{},
		},
		report: Report{Dropped: dropped(1, 0, 0, 0)},
	},
}

// TestCardSensors: pages in the order of the exporter, with a prefix of the site's own. Guests, partitions and boards of other series have 0
// for sensors that they lack; a board that has 0 everywhere has no readings. The labels are those that no config file removes.
func TestCardSensors(t *testing.T) {
	page := `average_package_power G 0|average_package_power M 0|average_package_power L 0|average_package_power P 0|average_package_power R 0|average_package_power H 0|
edge_temperature G 0|edge_temperature M 0|edge_temperature L 0|edge_temperature P 0|edge_temperature H 44|energy_consumed G 0|gfx_activity G 5|gfx_activity L 0|
gfx_activity R 60|hbm_temperature G 0|hbm_temperature H0 52|hbm_temperature H1 57|hbm_temperature H2 0|junction_temperature M 81|junction_temperature H 60|
junction_temperature R 250|memory_temperature H 53|package_power M 742|power_usage M 740|power_usage H 48|prof_gui_util_percent R 59|prof_occupancy_percent R 0|
prof_sm_active R 0|prof_sm_active P 30|used_vram G 300|clock S 2100|clock V 900|clock X 1300|pcie_speed R 2|pcie_max_speed R 16|`
	label := func(id, series, serial, mode, part, more string) string {
		const labels = `{card_model="N/A",card_series=%q,gpu_compute_partition_type=%q,gpu_id=%q,gpu_partition_id=%q,hostname="n",serial_number=%q%s}`
		return fmt.Sprintf(labels, series, mode, id, part, serial, more)
	}
	labels := map[string]string{
		"G": label("0", "MI300X VF", "N/A", "spx", "0", ""), "M": label("1", "MI300X", "7", "spx", "NA", ""), "L": label("2", "MI300X", "9", "spx", "0", ""),
		"R": label("3", "Radeon PRO W7900", "", "none", "0", ""), "H": label("4", "MI210", "8", "none", "0", ""), "P": label("6", "MI300X", "5", "cpx", "1", ""),
	}
	for i := range 3 {
		labels[fmt.Sprint("H", i)] = label("4", "MI210", "8", "none", "0", fmt.Sprintf(`,hbm_index="%d"`, i))
	}
	for name, clock := range map[string]string{"S": "system", "V": "video", "X": "memory"} {
		labels[name] = label("1", "MI300X", "7", "spx", "NA", `,clock_type="`+clock+`"`)
	}
	var body strings.Builder
	for line := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSuffix(page, "|"), "\n", ""), "|") {
		f := strings.Fields(line)
		fmt.Fprintf(&body, "site_%s%s%s %s\n", map[bool]string{false: "gpu_"}[strings.HasPrefix(f[0], "pcie_")], f[0], labels[f[1]], f[2])
	}
	r := translated(t, Options{}, body.String())
	for i, want := range []readings{
		{c.NVMLUtilization: .05, c.FramebufferUsed: 300 << 20},
		{c.Temperature: 81, c.Power: 742, c.SMClock: 2.1e9, c.MemoryClock: 1.3e9},
		{},
		{c.NVMLUtilization: .6, c.GraphicsEngineActive: .59, c.PCIeLinkGeneration: 1, c.PCIeLinkGenerationMax: 4},
		{c.Temperature: 44, c.MemoryTemperature: 57, c.Power: 48},
		{},
		{c.SMActive: .3},
	} {
		r.checkRow(i, want)
	}
	if d := r.frame.Topology.Devices[0]; d.UUID != "n/0" || d.Model != "AMD MI300X VF" {
		t.Errorf("the guest's board is %+v", d)
	}
}

// TestCardsBesideOthers: a page that holds NVIDIA's and AMD's boards, whichever come first, has the readings of both pages, and
// reads the families of one exporter for its own boards only.
func TestCardsBesideOthers(t *testing.T) {
	theirs, cards := testdata(t, "h200-tensor.prom"), testdata(t, "amd-mi300x-spx.prom")+testdata(t, "amd-guest.prom")
	cards = regexp.MustCompile(`(?m)^(# \w+ )?(gpu|pcie)_`).ReplaceAllString(cards, "${1}site_${2}_")
	stray := `site_gpu_hbm_temperature{gpu="0",UUID="GPU-20000000-0000-0000-0000-000000000000"} 99` + "\n"
	parts := [2]*reader{translated(t, Options{}, theirs), translated(t, Options{}, cards)}
	for _, page := range []string{theirs + cards + stray, cards + theirs + stray} {
		r := translated(t, Options{}, page)
		for i := range r.frame.Topology.Devices {
			d, found := &r.frame.Topology.Devices[i], false
			for _, part := range parts {
				at := slices.IndexFunc(part.frame.Topology.Devices, func(one c.Device) bool { return one.Identity() == d.Identity() })
				if found = found || at >= 0; at >= 0 && fmt.Sprint(r.frame.Row(i)) != fmt.Sprint(part.frame.Row(at)) {
					t.Errorf("%s has\n%v, and alone\n%v", d.Model, r.frame.Row(i), part.frame.Row(at))
				}
			}
			if !found {
				t.Errorf("who is %+v?", d)
			}
		}
		if n := len(r.frame.Topology.Devices); n != 7 {
			t.Errorf("%d devices", n)
		}
	}
}

// TestCardSamplesAreCountedOnce: what is too old or out of range is no reading, and counted once, whether it has a rule or not.
func TestCardSamplesAreCountedOnce(t *testing.T) {
	const labels = `{card_series="MI300X",gpu_compute_partition_type="spx",gpu_id="0",hostname="n",serial_number="1",clock_type="system"} `
	r := newReader(t, Options{})
	r.batch.At = time.Unix(1e9, 0)
	r.batch.Body = []byte("gpu_used_vram" + labels + "5\ngpu_package_power" + labels + "742 1000\ngpu_clock" + labels + "2100 1000\n" +
		"gpu_junction_temperature" + labels + "999\ngpu_hbm_temperature" + labels + "999\n")
	r.scanner.Scan(&r.batch)
	r.tr.Translate(&r.frame, &r.batch, &r.report)
	r.checkRow(0, readings{c.FramebufferUsed: 5 << 20})
	if got := r.report.Dropped; got[c.DropStale] != 2 || got[c.DropOutOfRange] != 2 {
		t.Errorf("dropped are %v", got)
	}
}

// TestCardFields: what the exporter's config file has to name for missing readings; other sources take a counters file.
func TestCardFields(t *testing.T) {
	missing := []c.Field{c.SMActive, c.TensorActive, c.FP64Active}
	r := translated(t, Options{}, testdata(t, "amd-mi355x-dpx.prom"))
	want := []string{`"GPUConfig": {"ProfilerMetrics": {"all": true}}`,
		`only if GPUConfig has a list "Fields", which leaves out what it does not name, there: "GPU_PROF_SM_ACTIVE", "GPU_PROF_TENSOR_ACTIVE_PERCENT"`}
	if got := r.tr.ConfigFields(missing); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := translated(t, Options{}, testdata(t, "v4.9.prom")).tr.ConfigFields(missing); got != nil {
		t.Errorf("of another exporter: %q", got)
	}
}

// TestLabelsOfPodsAreNoCard: a pod of NVIDIA's exporter may have labels of these names.
func TestLabelsOfPodsAreNoCard(t *testing.T) {
	r := translated(t, Options{}, strings.ReplaceAll(testdata(t, "v4.9.prom"), "UUID=", `job_id="7",job_user="eve",serial_number="1",gpu_id="9",gpu_compute_partition_type="cpx",gpu_partition_id="1",UUID=`))
	r.read(string(r.batch.Body) + "gpu_power_usage{node=\"a\"} 3\n") // a family of somebody's own
	plain := translated(t, Options{}, testdata(t, "v4.9.prom"))
	r.checkDevices(plain.frame.Topology.Devices...)
	r.checkHolds(plain.frame.AllocationSet.Allocations...)
	for i := range plain.frame.Len() {
		for f, v := range plain.frame.Row(i) {
			if got := r.frame.Row(i)[f]; got != v && (c.Given(got) || c.Given(v)) {
				t.Errorf("device %d: %s is %v, not %v", i, c.Fields[f].Name, got, v)
			}
		}
	}
}
