package dcgm

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	uuid0 = "GPU-a1b2c3d4-0000-1111-2222-333344445550"
	uuid1 = "GPU-a1b2c3d4-0001-1111-2222-333344445550"
	mig0  = "MIG-00000000-0000-1111-2222-333344445550"
	mig1  = "MIG-00000001-0000-1111-2222-333344445550"
	mig2  = "MIG-00000002-0000-1111-2222-333344445550"
)

const board0 = "" +
	"| 0      | Name: NVIDIA H100 80GB HBM3                                          |\n" +
	"|        | PCI Bus ID: 00000000:10:00.0                                         |\n" +
	"|        | Device UUID: " + uuid0 + "                |\n"

const board1 = "" +
	"| 1      | Name: NVIDIA H100 80GB HBM3                                          |\n" +
	"|        | PCI Bus ID: 00000000:20:00.0                                         |\n" +
	"|        | Device UUID: " + uuid1 + "                |\n"

const rule = "+--------+----------------------------------------------------------------------+\n"

const heading = rule + "| GPU ID | Device Information                                                   |\n" + rule

// named returns a board as discovery prints it.
func named(entity int, uuid, bus string) board {
	b := newBoard(entity)
	b.UUID, b.PCIBusID, b.Model = uuid, bus, "NVIDIA H100 80GB HBM3"
	return b
}

func TestDiscovery(t *testing.T) {
	both := []board{named(0, uuid0, "00000000:10:00.0"), named(1, uuid1, "00000000:20:00.0")}
	gone := both[1]
	gone.Inactive = true
	lost := newBoard(1)
	lost.Inactive, lost.Lost = true, true
	const nameless = "| 1      | Name: <<<NULL>>>                                                     |\n" +
		"|        | PCI Bus ID: <<<NULL>>>                                               |\n" +
		"|        | Device UUID: <<<NULL>>>                                              |\n"
	tests := []struct {
		name, text string
		want       []board
	}{
		{"3.3 to 4.4", "2 GPUs found.\n" + heading + board0 + rule + board1 + rule +
			"0 NvSwitches found.\n+-----------+\n| Switch ID |\n+-----------+\n+-----------+\n0 CPUs found.\n", both},
		{"2.1: CRLF, no other tables", strings.ReplaceAll("2 GPUs found.\n"+heading+board0+rule+board1+rule, "\n", "\r\n"), both},
		{"4.5 and later, with switches and a Grace", "2 GPUs found (Active).\nNote: Use -a flag to show all GPUs, including those that are not active.\n" +
			heading + board0 + rule + board1 + rule +
			"2 NvSwitches found.\n+-----------+\n| Switch ID |\n+-----------+\n| 0         |\n| 1         |\n+-----------+\n" +
			"1 ConnectX found.\n+----------+\n| ConnectX |\n+----------+\n| 0        |\n+----------+\n" +
			"1 CPU found.\n" + rule + "| CPU ID | Device Information                                                   |\n" + rule +
			"| 0      | Name: Grace                                                          |\n" + rule, both},
		{"-a, one inactive", "2 GPUs found (All).\n" + heading + board0 + "|        | Status: Active |\n" + rule +
			"| 1      | Name: NVIDIA H100 80GB HBM3 (last known)    |\n" +
			"|        | PCI Bus ID: 00000000:20:00.0 (last known)   |\n" +
			"|        | Device UUID: " + uuid1 + " (last known) |\n" +
			"|        | Status: Inactive |\n" + rule, []board{both[0], gone}},
		{"3.3, one lost", "2 GPUs found.\n" + heading + board0 + rule + nameless + rule, []board{both[0], lost}},
		{"-a of 4.6, one lost", "2 GPUs found (All).\n" + heading + board0 + rule +
			"| 1      | Status: LOST                                                         |\n" +
			"|        | Name: <<<NULL>>> (last known)                                        |\n" +
			"|        | PCI Bus ID: <<<NULL>>> (last known)                                  |\n" +
			"|        | Device UUID: <<<NULL>>>                                              |\n" + rule, []board{both[0], lost}},
		{"cut within a board", "2 GPUs found.\n" + heading + board0 + rule + "| 1      | Name: NVIDIA H100 80GB HB", []board{
			both[0], func() board { b := newBoard(1); b.Model = "NVIDIA H100 80GB HB"; return b }(),
		}},
		{"no bar at the end, lines in another order, a line that is new", heading +
			"| 0      | Device UUID: " + uuid0 + "\n|        | Serial: 1\n|        | PCI Bus ID: 00000000:10:00.0\n|        | Name: NVIDIA H100 80GB HBM3\n",
			both[:1]},
		{"values that say nothing", heading + "| 0 | Name: <<<NULL>>> |\n| | PCI Bus ID: N/A |\n| | Device UUID: unknown |\n", []board{newBoard(0)}},
		{"-a, cut before the status", heading + "| 1      | Name: NVIDIA H100 80GB HBM3 (last known)    |\n", []board{
			func() board { b := newBoard(1); b.Model, b.Inactive = "NVIDIA H100 80GB HBM3", true; return b }(),
		}},
		{"a last known name, and active", heading + "| 1      | Name: NVIDIA H100 80GB HBM3 (last known)    |\n|        | Status: Active |\n", []board{
			func() board { b := newBoard(1); b.Model, b.Inactive = "NVIDIA H100 80GB HBM3", true; return b }(),
		}},
		{"statuses alone", heading + "| 0 | Status: ACTIVE |\n| 1 | Status: Inactive |\n", []board{
			newBoard(0), func() board { b := newBoard(1); b.Inactive = true; return b }(),
		}},
		{"a table without a heading", board0, nil},
		{"an error", "Error: Cannot get GPU list from remote node. Return: -21: Host engine connection invalid/disconnected\n", nil},
		{"no GPUs", "0 GPUs found.\n" + heading + "0 NvSwitches found.\n", nil},
		{"a description of no board", heading + "|        | Name: x |\n" + board0, both[:1]},
		{"nothing", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { same(t, parseDiscovery([]byte(tt.text)), tt.want) })
	}
}

const hierarchy = "" +
	"+-------------------+--------------------------------------------------------------------+\n" +
	"| Instance Hierarchy                                                                     |\n" +
	"+===================+====================================================================+\n" +
	"| GPU 0             | GPU " + uuid0 + " (EntityID: 0)         |\n" +
	"| -> I 0/9          | GPU Instance (EntityID: 1)                                         |\n" +
	"|    -> CI 0/9/0    | Compute Instance (EntityID: 1)                                     |\n" +
	"| -> I 0/2          | GPU Instance (EntityID: 0)                                         |\n" +
	"|    -> CI 0/2/0    | Compute Instance (EntityID: 0)                                     |\n" +
	"|    -> CI 0/2/1    | Compute Instance (EntityID: 2)                                     |\n" +
	"+-------------------+--------------------------------------------------------------------+\n" +
	"| GPU 1             | GPU " + uuid1 + " (EntityID: 1)         |\n" +
	"| -> I 1/5          | GPU Instance (EntityID: 7)                                         |\n" +
	"+-------------------+--------------------------------------------------------------------+\n"

func TestHierarchy(t *testing.T) {
	cut := func(entity int, uuid string, instances ...Device) board {
		b := newBoard(entity)
		b.UUID, b.instances = uuid, instances
		return b
	}
	tests := []struct {
		name, text string
		want       []board
	}{
		{"two boards", hierarchy, []board{
			cut(0, uuid0, instance(1, "9"), instance(0, "2")),
			cut(1, uuid1, instance(7, "5")),
		}},
		{"no MIG", strings.Join(strings.SplitAfter(hierarchy, "\n")[:3], ""), nil},
		{"an id twice, an instance without ids or board", "| -> I 0/1 | GPU Instance (EntityID: 0) |\n| GPU 0 | GPU x (EntityID: 0) |\n" +
			"| -> I 0/1 | GPU Instance (EntityID: 3) |\n| -> I 0/1 | GPU Instance (EntityID: 4) |\n| -> I 0/2 | GPU Instance |\n" +
			"| -> I 3 | GPU Instance (EntityID: 5) |\n| -> I 0/x | GPU Instance (EntityID: 6) |\n| -> CI 0/1 | x |\n| -> CI 0/8/0 | x |\n| GPU 1 | gone |\n", []board{
			cut(0, "", instance(3, "1")),
		}},
		{"an id that is cut", "| GPU 1             | GPU " + uuid0 + " (EntityID: 1", nil},
		{"an error", "Error: Unable to connect to host engine. Host engine connection invalid/disconnected.\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { same(t, parseHierarchy([]byte(tt.text)), tt.want) })
	}
}

func TestList(t *testing.T) {
	listed := func(index, uuid, model string, loose ...canonical.MIGDevice) board {
		b := board{index: index, loose: loose}
		b.UUID, b.Model = uuid, model
		return b
	}
	const h100 = "NVIDIA H100 80GB HBM3"
	tests := []struct {
		name, text string
		want       []board
	}{
		{"MIG", "GPU 0: NVIDIA H100 80GB HBM3 (UUID: " + uuid0 + ")\n" +
			"  MIG 3g.40gb     Device  0: (UUID: " + mig0 + ")\n" +
			"  MIG 1c.1g.10gb+me Device  1: (UUID: " + mig1 + ")\n" +
			"GPU 1: NVIDIA H100 80GB HBM3 (UUID: " + uuid1 + ")\n", []board{
			listed("0", uuid0, h100, mig(0, mig0, "3g.40gb"), mig(1, mig1, "1g.10gb+me")), listed("1", uuid1, h100),
		}},
		{"before R470", "GPU 0: A100-SXM4-40GB (UUID: " + uuid0 + ")\n  MIG 1c.3g.20gb Device 0: (UUID: MIG-" + uuid0 + "/1/0)\n", []board{
			listed("0", uuid0, "A100-SXM4-40GB", mig(0, "MIG-"+uuid0+"/1/0", "3g.20gb")),
		}},
		{"devices of nothing, and of a board that cannot be read", "  MIG 3g.40gb Device 0: (UUID: " + mig0 + ")\n" +
			"GPU 0: NVIDIA H100 (UUID: " + uuid0 + ")\nGPU x: (broken)\n  MIG 3g.40gb Device 0: (UUID: " + mig0 + ")\n  MIG 3g.40gb Device: (UUID: MIG-)\n",
			[]board{listed("0", uuid0, "NVIDIA H100")}},
		{"devices that say too little", "GPU 0: NVIDIA H100 (UUID: " + uuid0 + ")\n  MIG 3g.40gb Slice 0: (UUID: " + mig0 + ")\n" +
			"  MIG 3g.40gb Device x: (UUID: " + mig0 + ")\n  MIG 3g.40gb Device 1: (UUID: unknown)\n", []board{listed("0", uuid0, "NVIDIA H100")}},
		{"no devices", "No devices found.\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			boards := parseSMI([]byte(tt.text))
			delete(boards, "")
			if len(boards) != len(tt.want) {
				t.Errorf("%d boards, want %d", len(boards), len(tt.want))
			}
			for _, want := range tt.want {
				if got := boards[want.UUID]; got == nil || got.index != want.index || got.Model != want.Model || !slices.Equal(got.loose, want.loose) {
					t.Errorf("%+v, want %+v", got, want)
				}
			}
		})
	}
}

// reportText has the form of `nvidia-smi -q -x`.
const reportText = `<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<driver_version>580.105.08</driver_version>
	<gpu id="00000000:10:00.0">
		<product_name>NVIDIA H100 80GB HBM3</product_name>
		<mig_devices>
			<mig_device><index>0</index><gpu_instance_id>2</gpu_instance_id><compute_instance_id>0</compute_instance_id></mig_device>
			<mig_device><index>1</index><gpu_instance_id>2</gpu_instance_id><compute_instance_id>1</compute_instance_id></mig_device>
			<mig_device><index>2</index><gpu_instance_id>9</gpu_instance_id><compute_instance_id>0</compute_instance_id></mig_device>
			<mig_device><index>N/A</index><gpu_instance_id>9</gpu_instance_id></mig_device>
		</mig_devices>
		<uuid>` + uuid0 + `</uuid>
		<processes><process_info><gpu_instance_id>N/A</gpu_instance_id><pid>1</pid></process_info></processes>
	</gpu>
	<gpu id="00000000:20:00.0">
		<mig_devices>
			None
		</mig_devices>
		<uuid>` + uuid1 + `</uuid>
	</gpu>
</nvidia_smi_log>
`

func TestReport(t *testing.T) {
	want := map[migIndex]string{{uuid0, 0}: "2", {uuid0, 1}: "2", {uuid0, 2}: "9"}
	if got := parseReport([]byte(reportText)); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	device := func(index, instance, uuid string) string {
		return "<gpu><mig_devices><mig_device><index>" + index + "</index><gpu_instance_id>" + instance + "</gpu_instance_id></mig_device></mig_devices><uuid>" + uuid + "</uuid></gpu>"
	}
	begun, _, _ := strings.Cut(reportText, "<processes>")
	for _, text := range []string{
		"", "<", "<a><b>", "<gpu>", "<gpu><uuid>x</uuid></gpu>", reportText[:len(reportText)/3], begun, "NVIDIA-SMI has failed",
		device("0", "2", "x"), device("x", "2", uuid0), device("0", "N/A", uuid0),
	} {
		if got := parseReport([]byte(text)); len(got) != 0 {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(heading+board0+rule+board1, hierarchy, "GPU 0 580.1", "GPU 0: x (UUID: "+uuid0+")\n  MIG 1g.10gb Device 0: (UUID: "+mig0+")\n", "GPU 0: x (UUID: "+uuid0+")\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n", reportText)
	f.Add("| 0 | Name: x\n|0|", "| GPU 0 | (EntityID: 0)\n| I 0/0 | (EntityID: 0)|", "GPU x", "GPU\nMIG\n", "Link\nGPU\nLink 0: Inf GB/s\n", "<gpu><mig_devices><mig_device/></mig_devices></gpu>")
	f.Fuzz(func(t *testing.T, discovery, hierarchy, driver, list, links, report string) {
		o := &outputs{discovery: []byte(discovery), hierarchy: []byte(hierarchy), driver: []byte(driver), list: []byte(list), links: []byte(links), report: []byte(report)}
		n := flatten(o.parse())
		all := discovery + hierarchy + driver + list + links
		stands := func(s string) {
			if s != "" && len(s) <= maxText && printableASCII(all) && !strings.Contains(all, s) {
				t.Errorf("%q is not in the texts", s)
			}
			if len(s) > maxText || strings.ContainsAny(s, "\x00\x1b\n") {
				t.Errorf("%q is not fit to be shown", s)
			}
		}
		last := Unknown
		for i, d := range n.Devices {
			stands(d.UUID)
			stands(d.Model)
			stands(d.PCIBusID)
			stands(d.Driver)
			stands(d.Profile)
			if v := d.NVLinkLimit; !(v >= 0 && v < 1e18) {
				t.Errorf("the NVLinks of device %d carry %v", i, v)
			}
			switch {
			case d.IsInstance():
				if before := n.Devices[i-1]; before.Board != d.Board || before.IsInstance() && id(before.Instance) >= id(d.Instance) {
					t.Errorf("devices %+v are out of order", n.Devices)
				}
			case d.Entity <= last || d.Board != i:
				t.Errorf("board %d behind %d", d.Entity, last)
			default:
				last = d.Entity
			}
		}
		s, err := n.Choose(nil)
		if err != nil || !s.All {
			t.Errorf("%v, %v", s, err)
		}
		n.Entities(&s)
	})
}

func printableASCII(s string) bool {
	for _, c := range []byte(s) {
		if c < ' ' && c != '\n' || c > '~' {
			return false
		}
	}
	return true
}

// same compares deeply.
func same(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

func instance(entity int, id string) Device {
	d := NewInstance(entity, id, "")
	return d
}

func mig(index int, uuid, profile string) canonical.MIGDevice {
	return canonical.MIGDevice{Index: index, UUID: uuid, Profile: profile}
}

func TestUUID(t *testing.T) {
	for text, want := range map[string]string{
		uuid0: uuid0, " " + uuid0 + "\r": uuid0, "GPU-1": "GPU-1",
		"GPU-": "", "GPU-1 2": "", "GPU-1,2": "", `GPU-1"`: "", mig0: "", "N/A": "",
	} {
		if got := gpuUUID(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// What drivers print for boards whose links are all, partly or not up.
func TestLinks(t *testing.T) {
	gpu := func(uuid string) string { return "GPU 0: NVIDIA H100 80GB HBM3 (UUID: " + uuid + ")\n" }
	tests := []struct {
		name, text string
		want       float64
	}{
		{"four links", gpu(uuid0) + "\t Link 0: 14.062 GB/s\n\t Link 1: 14.062 GB/s\n\t Link 2: 14.062 GB/s\n\t Link 3: 14.062 GB/s\n", 112.496e9},
		{"one that is slower", gpu(uuid0) + "         Link 0: 26.562 GB/s\n         Link 1: 1.562 GB/s\n", 56.248e9},
		{"a whole number, CRLF", gpu(uuid0) + "\t Link 0: 50 GB/s\r\n", 100e9},
		{"one that is not up", gpu(uuid0) + "\t Link 0: <inactive>\n\t Link 1: 25.781 GB/s\n\t Link 2: inactive\n", 51.562e9},
		{"none that is up", gpu(uuid0) + "NVML: Unable to retrieve NVLink information as all links are inActive\n", 0},
		{"the same, newer", gpu(uuid0) + "\t Unable to retrieve NVLink information as all links are inActive\n" + gpu(uuid1) + "\t Link 0: 25 GB/s\n", 0},
		{"no links", gpu(uuid0), 0},
		{"another board's", gpu(uuid1) + "\t Link 0: 25 GB/s\n", 0},
		{"a board that is not known", gpu(uuid0) + "\t Link 0: 25 GB/s\nGPU 1: (UUID: unknown)\n\t Link 0: 25 GB/s\n", 50e9},
		{"nobody's", "\t Link 0: 25 GB/s\n" + gpu(uuid0), 0},
		{"a speed that is none", gpu(uuid0) + "\t Link 0: 25 GB/s\n\t Link 1: NaN GB/s\n", 0},
		{"as fast as can be, and one that rests", gpu(uuid0) + "\t Link 0: 1000 GB/s\n\t Link 1: 0 GB/s\n", 2000e9},
		{"a word for a speed", gpu(uuid0) + "\t Link 0: 25 GB/s\n\t Link 1: fast GB/s\n", 0},
		{"a sign that is not known", gpu(uuid0) + "\t Link 0: 25 GB/s\n\t Link 1: ~inactive\n", 0},
		{"slightly beyond reason", gpu(uuid0) + "\t Link 0: 1000.001 GB/s\n", 0},
		{"beyond reason", gpu(uuid0) + "\t Link 0: 1e300 GB/s\n", 0},
		{"below nothing", gpu(uuid0) + "\t Link 0: -25 GB/s\n", 0},
		{"another unit", gpu(uuid0) + "\t Link 0: 25 GB/s\n\t Link 1: 25000 MB/s\n", 0},
		{"cut", gpu(uuid0) + "\t Link 0: 25 GB/s\n\t Link 1: 26.5", 0},
		{"counters of the old form", gpu(uuid0) + "\t Link 0: Tx0: 2 KBytes, Rx0: 3 KBytes\n", 0},
		{"nothing", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := flatten((&outputs{discovery: []byte(heading + board0 + rule), links: []byte(tt.text)}).parse())
			if len(n.Devices) != 1 || n.Devices[0].NVLinkLimit != tt.want {
				t.Errorf("%+v, want %v", n.Devices, tt.want)
			}
		})
	}
}

// A list of boards is whole if it is as long as it says, whatever follows it.
func TestListsAll(t *testing.T) {
	const table = "+--------+\n| GPU ID | Device Information |\n+--------+\n| 0      | Name: a |\n|        | Device UUID: GPU-00000000-0000-0000-0000-000000000000 |\n+--------+\n"
	const failed = "Error: Cannot get NvSwitch list from remote node. Return: This request is serviced by a module of DCGM that is not currently loaded\n"
	for text, want := range map[string]bool{
		"1 GPU found (Active).\n" + table + failed:                                                      true,
		"1 GPU found.\n" + table + "0 NvSwitches found.\n+-----------+\n| Switch ID |\n+-----------+\n": true,
		"0 GPUs found.\n" + failed:                                                                      true,
		"2 GPUs found (Active).\n" + table:                                                              false,
		"1 NvSwitch found.\n" + table:                                                                   false,
		table:                                                                                           false,
		failed:                                                                                          false,
		"Error: Cannot get GPU list.\n":                                                                 false,
		"":                                                                                              false,
		"-1 GPUs found.\n" + table + failed:                                                             false,
	} {
		if got := listsAll([]byte(text)); got != want {
			t.Errorf("%v of\n%s", got, text)
		}
	}
}
