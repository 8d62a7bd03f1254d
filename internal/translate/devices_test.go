package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// temp is a sample of a device with these labels.
func temp(labels string, celsius int) string {
	return fmt.Sprintf("DCGM_FI_DEV_GPU_TEMP{%s} %d\n", labels, celsius)
}

func TestLabelsOfADevice(t *testing.T) {
	tests := []struct {
		name   string
		labels string
		want   *c.Device // nil if it is none
	}{
		{"plain", `gpu="0",UUID="A",device="nvidia0",modelName="M",Hostname="h",pci_bus_id="p",DCGM_FI_DRIVER_VERSION="1"`,
			&c.Device{Hostname: "h", GPU: "0", UUID: "A", Name: "nvidia0", Model: "M", PCIBusID: "p", Driver: "1"}},
		{"the new names", `gpu="0",gpu_uuid="A",device="nvidia0",model_name="M",hostname="h",pci_bus_id="p",DCGM_FI_SYSTEM_DRIVER_VERSION="1"`,
			&c.Device{Hostname: "h", GPU: "0", UUID: "A", Name: "nvidia0", Model: "M", PCIBusID: "p", Driver: "1"}},
		{"any case", `GPU="0",Uuid="A",MODELNAME="M",HOSTNAME="h"`, &c.Device{Hostname: "h", GPU: "0", UUID: "A", Model: "M"}},
		{"another order", `pod="x",UUID="A",hpc_job="7",gpu="0"`, &c.Device{Hostname: "fallback", GPU: "0", UUID: "A"}},
		{"labels of a pod behind its own", `gpu="0",UUID="A",Hostname="h",hostname="pod-label",uuid="B"`, &c.Device{Hostname: "h", GPU: "0", UUID: "A"}},
		{"blank strings", `gpu="0",UUID="A",modelName="<<<NOT_SUPPORTED>>>",Hostname="<<<NULL>>>",GPU_I_PROFILE="<<<NULL>>>",GPU_I_ID="<<<NULL>>>",DCGM_FI_DRIVER_VERSION="SKIPPING DCGM VALUE"`,
			&c.Device{Hostname: "fallback", GPU: "0", UUID: "A"}},
		{"a blank one, then one that is not", `gpu="0",uuid="",gpu_uuid="A"`, &c.Device{Hostname: "fallback", GPU: "0", UUID: "A"}},
		{"escapes", `gpu="0",UUID="A",modelName="a \"b\" \\c"`, &c.Device{Hostname: "fallback", GPU: "0", UUID: "A", Model: `a "b" \c`}},
		{"a profile without an instance", `gpu="0",UUID="A",GPU_I_PROFILE="1g.5gb"`, &c.Device{Hostname: "fallback", GPU: "0", UUID: "A"}},
		{"dmon", `gpu="0",entity="GPU 0"`, &c.Device{Hostname: "fallback", GPU: "0"}},
		{"dmon without a board", `entity="GPU-I 9",gpu_instance_entity="9"`, nil},
		{"no uuid", `gpu="0",Hostname="h"`, nil},
		{"a blank uuid", `gpu="0",UUID="<<<NULL>>>"`, nil},
		{"no gpu", `UUID="A"`, nil},
		{"a link", `nvlink="0",gpu="0",gpu_uuid="A"`, nil},
		{"a link in another case", `gpu="0",gpu_uuid="A",NvLink="0"`, nil},
		{"a link without a number", `nvlink="",gpu="0",gpu_uuid="A"`, &c.Device{Hostname: "fallback", GPU: "0", UUID: "A"}},
		{"a switch", `nvswitch="0",gpu="0",uuid="A"`, nil},
		{"a CPU", `cpu="0",gpu="0",uuid="A"`, nil},
		{"a core", `cpucore="1",gpu="0",uuid="A"`, nil},
		{"a compute instance", `gpu="0",UUID="A",GPU_I_ID="1",GPU_CI_ID="0"`, nil},
		{"none", ``, nil},
		{"a long name", strings.Repeat("gpu", 30) + `="0",UUID="A"`, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := translated(t, Options{FallbackHost: "fallback"}, temp(test.labels, 40))
			if test.want == nil {
				r.checkDevices()
				return
			}
			r.checkDevices(*test.want)
			r.checkRow(0, readings{c.Temperature: 40})
		})
	}
}

func TestHostname(t *testing.T) {
	const labelled, bare = `gpu="0",UUID="A",Hostname="label"`, `gpu="0",UUID="A",pod="p"`
	const instance = `gpu="0",UUID="A",GPU_I_ID="1",hostname="other"`
	tests := []struct {
		name string
		opts Options
		body string
		want string
	}{
		{"the node's name wins", Options{NodeName: "node", FallbackHost: "url"}, temp(labelled, 1), "node"},
		{"the label goes before the URL", Options{FallbackHost: "url"}, temp(labelled, 1), "label"},
		{"the URL is the last resort", Options{FallbackHost: "url"}, temp(bare, 1), "url"},
		{"one of the loopback interface names no host", Options{FallbackHost: "url"}, temp(`gpu="0",UUID="A",Hostname="localhost"`, 1), "url"},
		{"one device has one hostname", Options{FallbackHost: "url"}, temp(bare, 1) + temp(labelled, 1), "label"},
		{"that of the board for its instances", Options{FallbackHost: "url"}, temp(instance, 1) + temp(labelled, 1), "label"},
		{"that of an instance for its board", Options{FallbackHost: "url"}, temp(bare, 1) + temp(instance, 1), "other"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := translated(t, test.opts, test.body)
			for _, d := range r.frame.Topology.Devices {
				if d.Hostname != test.want {
					t.Errorf("hostname %q, want %q", d.Hostname, test.want)
				}
			}
		})
	}
}

func TestOrderOfDevices(t *testing.T) {
	var body strings.Builder
	for _, labels := range []string{
		`gpu="10",UUID="J",Hostname="a"`, `gpu="x",UUID="X",Hostname="a"`, `gpu="2",UUID="C",Hostname="b"`,
		`gpu="2",UUID="B",GPU_I_ID="13",Hostname="a"`, `gpu="2",UUID="B",GPU_I_ID="7",Hostname="a"`,
		`gpu="9",UUID="I",Hostname="a"`, `gpu="8",UUID="A",GPU_I_ID="1",Hostname="a"`, `gpu="2",UUID="A",Hostname="a"`,
	} {
		body.WriteString(temp(labels, 1))
	}
	r := translated(t, Options{}, body.String())
	r.checkDevices(
		c.Device{Hostname: "a", GPU: "2", UUID: "A", Board: 0},
		c.Device{Hostname: "a", GPU: "2", UUID: "A", Board: 0, Instance: "1"},
		c.Device{Hostname: "a", GPU: "2", UUID: "B", Board: 2, Implied: true},
		c.Device{Hostname: "a", GPU: "2", UUID: "B", Board: 2, Instance: "7"},
		c.Device{Hostname: "a", GPU: "2", UUID: "B", Board: 2, Instance: "13"},
		c.Device{Hostname: "a", GPU: "9", UUID: "I", Board: 5},
		c.Device{Hostname: "a", GPU: "10", UUID: "J", Board: 6},
		c.Device{Hostname: "a", GPU: "x", UUID: "X", Board: 7},
		c.Device{Hostname: "b", GPU: "2", UUID: "C", Board: 8},
	)
}

// All rows of a device describe it; the first that gives a property sets it.
func TestDeviceInfo(t *testing.T) {
	r := newReader(t, Options{FallbackHost: "h"})
	r.read(temp(`gpu="0",UUID="A"`, 40) + `DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="A",modelName="first",device="nvidia0"} 0
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="A",modelName="second",pci_bus_id="p"} 100
`)
	r.checkDevices(c.Device{Hostname: "h", GPU: "0", UUID: "A", Model: "first", Name: "nvidia0", PCIBusID: "p"})
	r.checkRow(0, readings{c.Temperature: 40, c.XIDLast: 0, c.SMClock: 100e6})

	// A new driver is a new topology, and so is going back to the old one.
	for i, driver := range []string{"1", "2", "1"} {
		before := r.frame.Topology.Generation
		r.read(temp(`gpu="0",UUID="A",DCGM_FI_DRIVER_VERSION="`+driver+`"`, 40))
		if got := r.frame.Topology; got.Devices[0].Driver != driver || got.Generation != before+1 {
			t.Errorf("reading %d: driver %q at generation %d, want %q at %d", i, got.Devices[0].Driver, got.Generation, driver, before+1)
		}
	}
}

// A device is in a frame if and only if the reading has a row of it.
func TestDevicesComeAndGo(t *testing.T) {
	const a, b, aPod = `gpu="0",UUID="A"`, `gpu="1",UUID="B"`, `gpu="0",UUID="A",pod="p"`
	r := newReader(t, Options{})
	steps := []struct {
		body       string
		uuids      string
		generation uint64
	}{
		{"", "", 0},
		{temp(a, 40), "A", 1},
		{temp(a, 41), "A", 1},
		{temp(aPod, 42), "A", 1},
		{temp(a, 43) + temp(b, 50), "AB", 2},
		{temp(b, 51) + temp(a, 44), "AB", 2},
		{temp(b, 52), "B", 3},
		{temp(b, 53) + `something_else{gpu="0",uuid="A"} 1` + "\n", "AB", 4},
		{"", "", 5},
		{temp(a, 45), "A", 6},
	}
	var kept *c.Topology
	var keptDevices []c.Device
	for i, step := range steps {
		r.read(step.body)
		top := r.frame.Topology
		var uuids strings.Builder
		for _, d := range top.Devices {
			uuids.WriteString(d.UUID)
		}
		if uuids.String() != step.uuids || top.Generation != step.generation {
			t.Fatalf("step %d: devices %s at generation %d, want %s at %d", i, uuids.String(), top.Generation, step.uuids, step.generation)
		}
		if i == 4 {
			kept, keptDevices = top, slices.Clone(top.Devices)
		}
	}
	if !slices.Equal(kept.Devices, keptDevices) {
		t.Error("a topology changed after it was handed out")
	}
	r.checkRow(0, readings{c.Temperature: 45})
}

// TestPropertiesOfADevice: each row of a device may add properties, and each instance to those of
// an implied board.
func TestPropertiesOfADevice(t *testing.T) {
	const one, two = `gpu="0",UUID="A",GPU_I_ID="1"`, `gpu="0",UUID="A",GPU_I_ID="2"`
	var body string
	for _, labels := range []string{
		one, one + `,Hostname="h"`, one + `,modelName="m"`, one + `,device="d"`, one + `,pci_bus_id="b"`,
		two, two + `,DCGM_FI_DRIVER_VERSION="v"`, two + `,DCGM_FI_DEV_FABRIC_CLUSTER_UUID="u"`, two + `,DCGM_FI_DEV_FABRIC_CLIQUE_ID="7"`, two + `,GPU_I_PROFILE="p"`,
	} {
		body += temp(labels, 40)
	}
	translated(t, Options{}, body).checkDevices(
		c.Device{Hostname: "h", GPU: "0", UUID: "A", Model: "m", Name: "d", PCIBusID: "b", Driver: "v", Cluster: "u", Clique: "7", Implied: true},
		c.Device{Hostname: "h", GPU: "0", UUID: "A", Instance: "1", Model: "m", Name: "d", PCIBusID: "b"},
		c.Device{Hostname: "h", GPU: "0", UUID: "A", Instance: "2", Profile: "p", Driver: "v", Cluster: "u", Clique: "7"},
	)
}

// Only boards get the sum of both directions: the traffic of an instance is not that of its
// board.
func TestNVLinkOfInstances(t *testing.T) {
	r := translated(t, Options{}, `DCGM_FI_PROF_NVLINK_TX_BYTES{gpu="0",UUID="A",GPU_I_ID="1"} 1
DCGM_FI_PROF_NVLINK_RX_BYTES{gpu="0",UUID="A",GPU_I_ID="1"} 2
`)
	r.checkRow(0, readings{})
	r.checkRow(1, readings{c.NVLinkTransmit: 1, c.NVLinkReceive: 2})
}

// Readings of the board that its instances repeat are the board's; the largest counts.
func TestBoardLevelReadings(t *testing.T) {
	const board, one, two = `gpu="0",UUID="A"`, `gpu="0",UUID="A",GPU_I_ID="1"`, `gpu="0",UUID="A",GPU_I_ID="2"`
	tests := []struct {
		name string
		body string
		want readings
	}{
		{"the board's own is the largest", temp(board, 60) + temp(one, 50) + temp(two, 40), readings{c.Temperature: 60}},
		{"an instance's is", temp(board, 50) + temp(one, 40) + temp(two, 60), readings{c.Temperature: 60}},
		{"instances alone", temp(one, 41) + temp(two, 40), readings{c.Temperature: 41}},
		{"one of them is blank", temp(one, 250) + temp(two, 40), readings{c.Temperature: 40}},
		{"the board's is blank", temp(board, 250) + temp(two, 40), readings{c.Temperature: 40}},
		{"all of them are", temp(one, 250) + temp(two, 250), readings{}},
		{"below zero", temp(board, -20) + temp(two, -10), readings{c.Temperature: -10}},
		{"a limit in force goes before a requested one", temp(one, 1) + "PMLMT{" + one + "} 500\nEPLMT{" + one + "} 400\n", readings{c.Temperature: 1, c.PowerLimit: 400}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := translated(t, Options{}, test.body)
			r.checkRow(0, test.want)
			for i := range r.frame.Topology.Devices[1:] {
				r.checkRow(i+1, readings{})
			}
		})
	}
}

func TestDerivedReadings(t *testing.T) {
	const gib = 1 << 30
	tests := []struct {
		name string
		body string
		want readings
	}{
		{"the total is given", "FBTTL 16384 FBUSD 4096 FBFRE 1024", readings{c.FramebufferTotal: 16 * gib, c.FramebufferUsed: 4 * gib, c.FramebufferFree: gib, c.FramebufferUsedRatio: 0.25}},
		{"the total is a sum", "FBUSD 1024 FBFRE 2048 FBRSV 1024", readings{c.FramebufferTotal: 4 * gib, c.FramebufferUsed: gib, c.FramebufferFree: 2 * gib, c.FramebufferReserved: gib, c.FramebufferUsedRatio: 0.25}},
		{"an old driver has no reserved memory", "FBUSD 1024 FBFRE 1024 FBRSV 9223372036854775794", readings{c.FramebufferUsed: gib, c.FramebufferFree: gib}},
		{"the total is blank", "FBTTL 9223372036854775794 FBUSD 1024 FBFRE 1024", readings{c.FramebufferUsed: gib, c.FramebufferFree: gib}},
		{"the total is blank and its parts are given", "FBTTL 9223372036854775794 FBUSD 1024 FBFRE 512 FBRSV 512", readings{c.FramebufferTotal: 2 * gib, c.FramebufferUsed: gib, c.FramebufferFree: gib / 2, c.FramebufferReserved: gib / 2, c.FramebufferUsedRatio: 0.5}},
		{"free is missing", "FBUSD 1024 FBRSV 1024", readings{c.FramebufferUsed: gib, c.FramebufferReserved: gib}},
		{"used is missing", "FBFRE 1024", readings{c.FramebufferFree: gib}},
		{"there is no memory", "FBTTL 0 FBUSD 0", readings{c.FramebufferTotal: 0, c.FramebufferUsed: 0}},
		{"more is used than there is", "FBTTL 1024 FBUSD 2048", readings{c.FramebufferTotal: gib, c.FramebufferUsed: 2 * gib}},
		{"more is used by rounding", "FBTTL 1024 FBUSD 1025", readings{c.FramebufferTotal: gib, c.FramebufferUsed: 1025 << 20, c.FramebufferUsedRatio: 1}},
		{"NVLink is given", "NBWLT 10 NVLTX 1 NVLRX 2", readings{c.NVLinkBytes: 10240000, c.NVLinkTransmit: 1, c.NVLinkReceive: 2}},
		{"NVLink is a sum", "NVLTX 1 NVLRX 2", readings{c.NVLinkBytes: 3, c.NVLinkTransmit: 1, c.NVLinkReceive: 2}},
		{"NVLink has one direction", "NVLTX 1", readings{c.NVLinkTransmit: 1}},
		{"NVLink is blank", "NBWLT 9223372036854775794 NVLTX 1 NVLRX 2", readings{c.NVLinkBytes: 3, c.NVLinkTransmit: 1, c.NVLinkReceive: 2}},
		{"the limit in force", "PMLMT 500 EPLMT 400", readings{c.PowerLimit: 400}},
		{"the limit requested", "PMLMT 500", readings{c.PowerLimit: 500}},
		{"both limits are blank", "PMLMT 140737488355328 EPLMT 140737488355328", readings{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var body strings.Builder
			words := strings.Fields(test.body)
			for i := 0; i < len(words); i += 2 {
				fmt.Fprintf(&body, "%s{gpu=\"0\",entity=\"GPU 0\"} %s\n", words[i], words[i+1])
			}
			translated(t, Options{}, body.String()).checkRow(0, test.want)
		})
	}
}

// A lost board keeps rows that the exporter counts by itself: they add no device, and keep
// none.
func TestWhatTheExporterCountsMakesNoDevice(t *testing.T) {
	const own = `DCGM_EXP_XID_ERRORS_COUNT{gpu="%[1]d",UUID="%[2]s",window_size_in_ms="300000"} 0
DCGM_EXP_GPU_HEALTH_STATUS{gpu="%[1]d",UUID="%[2]s",health_watch="ALL",health_error_code="DCGM_FR_OK"} 0
DCGM_EXP_OF_TOMORROW{gpu="%[1]d",UUID="%[2]s"} 1
`
	a, b := temp(`gpu="0",UUID="A"`, 40), temp(`gpu="1",UUID="B"`, 50)
	owns := fmt.Sprintf(own, 0, "A") + fmt.Sprintf(own, 1, "B")
	r := newReader(t, Options{})
	for i, step := range []struct {
		body   string
		want   []c.Device
		absent string // their UUIDs
	}{
		{owns, nil, ""}, // no device is read, so none counts as absent
		{a + b + owns, []c.Device{{GPU: "0", UUID: "A"}, {GPU: "1", UUID: "B", Board: 1}}, ""},
		{owns + a + b, []c.Device{{GPU: "0", UUID: "A"}, {GPU: "1", UUID: "B", Board: 1}}, ""},
		{owns + a, []c.Device{{GPU: "0", UUID: "A"}}, "B"},
		{a, []c.Device{{GPU: "0", UUID: "A"}}, ""},
		{a + owns, []c.Device{{GPU: "0", UUID: "A"}}, "B"},
		{b + owns, []c.Device{{GPU: "1", UUID: "B"}}, "A"},
		{owns, nil, ""},
	} {
		r.read(step.body)
		t.Logf("step %d", i)
		r.checkDevices(step.want...)
		if got := absentOf(r); got != step.absent {
			t.Errorf("absent %q, want %q", got, step.absent)
		}
	}
}

// absentOf lists the absent boards, by UUID if it is known.
func absentOf(r *reader) string {
	var names []string
	for _, d := range r.frame.Topology.Absent {
		names = append(names, cmp.Or(d.UUID, d.Hostname+"/"+d.GPU))
	}
	return strings.Join(names, " ")
}

// TestSilentBoards: a board that gives no reading is absent, but lost only if the source says so; nor does the exporter's
// own count of its XIDs say so.
func TestSilentBoards(t *testing.T) {
	a := temp(`gpu="0",UUID="A"`, 40)
	const lost, silent = `gpu_lost{gpu="2",UUID="C"} 1` + "\n", `gpu_lost{gpu="2",UUID="C",silent="true"} 1` + "\n"
	const xids = "DCGM_EXP_XID_ERRORS_COUNT{gpu=\"2\",UUID=\"C\"} 0\n"
	r := newReader(t, Options{})
	for _, step := range []struct {
		body string
		want bool
	}{{a + silent, false}, {a + lost, true}, {a + silent, false}, {a + xids, false}, {a + silent + xids, false}, {a + lost + xids, true}, {a + xids + lost, true}, {a + silent + xids, false}} {
		for range 2 {
			r.read(step.body)
			if top := r.frame.Topology; absentOf(r) != "C" || len(top.Lost) != 1 || top.Lost[0] != step.want {
				t.Errorf("%s: absent %s, lost %v, want %t", step.body, absentOf(r), top.Lost, step.want)
			}
		}
	}
	// The other name of a board says it too.
	r.read(a + `gpu_lost{gpu="10",entity="GPU 10"} 1` + "\n" + silent)
	if top := r.frame.Topology; absentOf(r) != "C /10" || top.Lost[0] || !top.Lost[1] {
		t.Errorf("absent %s, lost %v", absentOf(r), top.Lost)
	}
}

// Boards that a source names as lost are absent while others are read. A board with a
// reading is not, nor is the board of an instance with one.
func TestLostBoards(t *testing.T) {
	a := temp(`gpu="0",UUID="A"`, 40)
	const named = `gpu_lost{gpu="2",UUID="C",pci_bus_id="1A",modelName="M"} 1
gpu_lost{gpu="10",entity="GPU 10",pci_bus_id=""} 1
`
	instance := temp(`gpu="2",UUID="C",GPU_I_ID="7",GPU_I_PROFILE="1g"`, 40)
	r := newReader(t, Options{FallbackHost: "n"})
	for _, step := range []struct{ body, want string }{
		{a + named, "C n/10"},
		{named + a, "C n/10"},
		{named, ""},
		{a + temp(`gpu="2",UUID="C"`, 40) + named, "n/10"},
		{a + instance + named, "n/10"},
		{a + temp(`gpu="10",UUID="J"`, 40) + named, "C"},
		{a + named + `gpu_lost{gpu="10",UUID="J"} 1` + "\n", "C J"},
		{a + named + `gpu_lost{gpu="2",UUID="C",GPU_I_ID="7"} 1` + "\n", "C n/10"},
		{a + named, "C n/10"},
		{a + "DCGM_EXP_XID_ERRORS_COUNT{gpu=\"2\",UUID=\"C\"} 0\n" + named, "C n/10"},
		{a + `gpu_lost{gpu="0",UUID="C"} 1` + "\n", "C"},
		{a + `gpu_lost{gpu="0",entity="GPU 0",Hostname="n"} 1` + "\n", ""},
		{a + `gpu_lost{gpu="0",entity="GPU 0",Hostname="m"} 1` + "\n", "m/0"},
		{a, ""},
	} {
		r.read(step.body)
		if got := absentOf(r); got != step.want {
			t.Errorf("absent %q of %s want %q", got, step.body, step.want)
		}
		steady := r.frame.Topology
		if len(r.report.UnknownFamilies) > 0 {
			t.Errorf("unknown %v", r.report.UnknownFamilies)
		}
		if r.read(step.body); r.frame.Topology != steady {
			t.Errorf("another topology of the same body\n%s", step.body)
		}
	}
	r.read(a + named)
	if d := r.frame.Topology.Absent[0]; d != (c.Device{Hostname: "n", GPU: "2", UUID: "C", PCIBusID: "1A", Model: "M"}) {
		t.Errorf("%+v", d)
	}
	for limit, want := range map[int]string{1: "", 2: "C", 3: "C n/10"} {
		few := newReader(t, Options{FallbackHost: "n", MaxDevices: limit})
		if few.read(a + named); absentOf(few) != want {
			t.Errorf("%q where %d devices are allowed, want %q", absentOf(few), limit, want)
		}
	}
}
