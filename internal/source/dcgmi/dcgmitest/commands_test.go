package dcgmitest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

const boards = `+--------+----------------------------------------------------------------------+
| GPU ID | Device Information                                                   |
+--------+----------------------------------------------------------------------+
| 0      | Name: NVIDIA H100 80GB HBM3                                          |
|        | PCI Bus ID: 00000000:10:00.0                                         |
|        | Device UUID: GPU-a1b2c3d4-0000-1111-2222-333344445550                |
+--------+----------------------------------------------------------------------+
| 1      | Name: NVIDIA H100 80GB HBM3                                          |
|        | PCI Bus ID: 00000000:20:00.0                                         |
|        | Device UUID: GPU-a1b2c3d4-0001-1111-2222-333344445550                |
+--------+----------------------------------------------------------------------+
`

const (
	switches = `+-----------+
| Switch ID |
+-----------+
| 0         |
| 1         |
+-----------+
`
	noConnectX = `0 ConnectX found.
+----------+
| ConnectX |
+----------+
+----------+
`
	noCPUs = `0 CPUs found.
+--------+----------------------------------------------------------------------+
| CPU ID | Device Information                                                   |
+--------+----------------------------------------------------------------------+
+--------+----------------------------------------------------------------------+
`
)

func TestDiscoveryList(t *testing.T) {
	for version, want := range map[string]string{
		"3.3.8": "2 GPUs found.\n" + boards + "2 NvSwitches found.\n" + switches,
		"3.3.9": "2 GPUs found.\n" + boards + "2 NvSwitches found.\n" + switches + noCPUs,
		"4.4.2": "2 GPUs found.\n" + boards + "2 NvSwitches found.\n" + switches + noConnectX + noCPUs,
		"4.6.0": "2 GPUs found (Active).\n" + boards + "2 NvSwitches found.\n" + switches + noConnectX + noCPUs,
	} {
		s := node(version, dcgmitest.Boards(2)...)
		s.Switches = 2
		equal(t, run(t, s, "discovery -l").stdout, want)
	}
	s := node("4.6.0", dcgmitest.Boards(3)...)
	s.GPUs[2].Inactive, s.Switches = true, 1
	got := run(t, s, "discovery -l").stdout
	head, _, _ := strings.Cut(got, "+")
	equal(t, head, "2 GPUs found (Active).\n"+
		"Note: Use -a flag to show all GPUs, including those that are not active.\n")
	if !strings.Contains(got, "\n1 NvSwitch found.\n") {
		t.Error(got)
	}
}

func TestDiscoveryHierarchy(t *testing.T) {
	gpu := func(index int, uuid string) dcgmitest.GPU {
		return dcgmitest.GPU{Index: index, UUID: uuid, Instances: []dcgmitest.Instance{
			{ID: 1, Entity: 7 * index, Compute: []dcgmitest.Compute{{ID: 0, Entity: 7 * index}}},
			{ID: 2, Entity: 7*index + 1, Compute: []dcgmitest.Compute{{ID: 0, Entity: 7*index + 1}}},
		}}
	}
	s := node("4.6.0", gpu(0, "GPU-f04cff15-f427-9612-3f5e-60a6e0cd2018"),
		dcgmitest.Boards(2)[1], gpu(2, "GPU-4d75f16a-433f-d7d0-5a15-8348bc3661bf"))
	equal(t, run(t, s, "discovery -c").stdout, `+-------------------+--------------------------------------------------------------------+
| Instance Hierarchy                                                                     |
+===================+====================================================================+
| GPU 0             | GPU GPU-f04cff15-f427-9612-3f5e-60a6e0cd2018 (EntityID: 0)         |
| -> I 0/1          | GPU Instance (EntityID: 0)                                         |
|    -> CI 0/1/0    | Compute Instance (EntityID: 0)                                     |
| -> I 0/2          | GPU Instance (EntityID: 1)                                         |
|    -> CI 0/2/0    | Compute Instance (EntityID: 1)                                     |
+-------------------+--------------------------------------------------------------------+
| GPU 2             | GPU GPU-4d75f16a-433f-d7d0-5a15-8348bc3661bf (EntityID: 2)         |
| -> I 2/1          | GPU Instance (EntityID: 14)                                        |
|    -> CI 2/1/0    | Compute Instance (EntityID: 14)                                    |
| -> I 2/2          | GPU Instance (EntityID: 15)                                        |
|    -> CI 2/2/0    | Compute Instance (EntityID: 15)                                    |
+-------------------+--------------------------------------------------------------------+
`)
}

func TestProfileList(t *testing.T) {
	s := node("4.2.3", dcgmitest.Boards(1)...)
	head := `+----------------+----------+------------------------------------------------------+
| Group.Subgroup | Field ID | Field Tag                                            |
+----------------+----------+------------------------------------------------------+
`
	if got := run(t, s, "profile -l -i 0").stdout; !strings.HasPrefix(got, head+
		"| A.0            | 1001     | gr_engine_active                                     |\n") ||
		strings.Contains(got, "| 1091 ") || !strings.Contains(got, "| B.0            | 1040     |") {
		t.Error(got)
	}
	s.PreHopper = true
	exe := dcgmitest.Install(t, s)
	got := runExe(t, exe, "profile -l").stdout
	if !strings.Contains(got, "| A.3            | 1007     |") || !strings.Contains(got, "| D.0            | 1001     |") {
		t.Error(got)
	}
	var tree struct {
		Body map[string]struct {
			Children map[string]struct{ Value string }
		}
	}
	if err := json.Unmarshal([]byte(runExe(t, exe, "profile -l -j").stdout), &tree); err != nil {
		t.Fatal(err)
	}
	first := tree.Body["0_0"].Children
	if first["Group.Subgroup"].Value != "A.1" || first["Field ID"].Value != "1002" || len(tree.Body) != 14 {
		t.Errorf("%+v", tree)
	}
}

func TestPause(t *testing.T) {
	s := node("4.2.3", dcgmitest.Boards(1)...)
	s.PreHopper = true
	exe := dcgmitest.Install(t, s)
	reads := func(text string) {
		t.Helper()
		row := strings.Split(runExe(t, exe, "dmon -e 155,1001 -c 1").stdout, "\n")[2]
		if row[29:29+len(text)] != text || strings.Contains(row[:29], "N/A") {
			t.Errorf("%q, want %s in the second column only", row, text)
		}
	}
	reads("0.")
	equal(t, runExe(t, exe, "profile --pause").stdout, "Successfully paused profiling.\n")
	reads("N/A")
	equal(t, runExe(t, exe, "profile --resume").stdout, "Successfully resumed profiling.\n")
	reads("0.")
}

func TestFieldList(t *testing.T) {
	lines := strings.Split(run(t, node("4.2.3"), "dmon -l").stdout, "\n")
	rule := strings.Repeat("_", 80)
	equal(t, strings.Join(lines[:4], "\n"), rule+"\n"+
		"Long Name                                         Short Name          Field ID  \n"+rule+"\n"+
		"sm_clock                                           SMCLK               100")
	for _, line := range lines[3 : len(lines)-1] {
		if words := strings.Fields(line); len(words) != 3 {
			t.Errorf("%q", line)
		}
	}
}

func TestBuildInfo(t *testing.T) {
	got := run(t, node("4.4.1"), "-v").stdout
	if !strings.HasPrefix(got, "\nLocal build info:\nVersion : 4.4.1\n") || !strings.Contains(got, "\n\nHostengine build info:\nVersion : 4.4.1\n") {
		t.Errorf("%q", got)
	}
}
