package dcgmtest_test

import (
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
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

const noSwitches = `0 NvSwitches found.
+-----------+
| Switch ID |
+-----------+
+-----------+
`

func TestDiscoveryList(t *testing.T) {
	equal(t, run(t, node(dcgmtest.Boards(2)...), "discovery -l").stdout, "2 GPUs found (Active).\n"+boards+noSwitches)
	s := node(dcgmtest.Boards(3)...)
	s.GPUs[2].Lost = true
	head, _, _ := strings.Cut(run(t, s, "discovery -l").stdout, "+")
	equal(t, head, "2 GPUs found (Active).\n"+
		"Note: Use -a flag to show all GPUs, including those that are not active.\n")
}

func TestDiscoveryHierarchy(t *testing.T) {
	gpu := func(index int, uuid string) dcgmtest.GPU {
		return dcgmtest.GPU{Index: index, UUID: uuid, Instances: []dcgmtest.Instance{{ID: 1, Entity: 7 * index}, {ID: 2, Entity: 7*index + 1}}}
	}
	s := node(gpu(0, "GPU-f04cff15-f427-9612-3f5e-60a6e0cd2018"),
		dcgmtest.Boards(2)[1], gpu(2, "GPU-4d75f16a-433f-d7d0-5a15-8348bc3661bf"))
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
