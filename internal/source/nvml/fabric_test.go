//go:build cgo && linux

package nvml

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

const (
	fabricHealth = "0 DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY"
	fabricError  = "0 DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE"
	fabricClique = "0 " + dcgm.CliqueFamily
	fabricStatus = "0 DCGM_FI_DEV_FABRIC_MANAGER_STATUS"
	fabricMask   = "0 DCGM_FI_DEV_FABRIC_HEALTH_MASK"
)

// inFabric is the answer of a registered board.
func inFabric(last uint8, clique uint32, summary uint8) nvml.GpuFabricInfo_v3 {
	return nvml.GpuFabricInfo_v3{
		ClusterUuid: [16]uint8{0xa1, 0xb2, 0xc3, 0xd4, 15: last}, CliqueId: clique, State: nvml.GPU_FABRIC_STATE_COMPLETED,
		HealthSummary: summary,
	}
}

// clusterOf returns the cluster in the labels of a reading's clique.
func (r *reader) clusterOf() string {
	for _, s := range r.b.Samples {
		if r.b.Dict.Family(s.Family).Name == dcgm.CliqueFamily {
			return strings.TrimSuffix(label(r.b.Dict.Block(s.Labels), "DCGM_FI_DEV_FABRIC_CLUSTER_UUID"), `"}`)
		}
	}
	return ""
}

// The fabric of a board that registers, changes its cluster, and fails.
func TestFabric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		delete(m.lacks, fabricCall)
		m.boards[0].addInstance(7, "1g.10gb")
		r := newReader(t, m, nil)
		defer r.Close()
		var is nvml.GpuFabricInfo_v3
		r.fabric = func(nvml.Device) (nvml.GpuFabricInfo_v3, nvml.Return) { return is, nvml.SUCCESS }
		failed := inFabric(9, 1, nvml.GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY)
		failed.Status = uint32(nvml.ERROR_UNKNOWN)
		slow, older := inFabric(2, 3, nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY), inFabric(2, 3, noSummary)
		// The mask as nvml.h shifts it: bandwidth degraded, no recovery, routes healthy, an access timeout.
		slow.HealthMask = nvml.GPU_FABRIC_HEALTH_MASK_DEGRADED_BW_TRUE<<nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_DEGRADED_BW |
			nvml.GPU_FABRIC_HEALTH_MASK_ROUTE_RECOVERY_FALSE<<nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_RECOVERY |
			nvml.GPU_FABRIC_HEALTH_MASK_ROUTE_UNHEALTHY_FALSE<<nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_UNHEALTHY |
			nvml.GPU_FABRIC_HEALTH_MASK_ACCESS_TIMEOUT_RECOVERY_TRUE<<nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ACCESS_TIMEOUT_RECOVERY
		for i, step := range []struct {
			is                              nvml.GpuFabricInfo_v3
			health, failed, clique, cluster string
			status, mask                    string
		}{
			{nvml.GpuFabricInfo_v3{State: nvml.GPU_FABRIC_STATE_NOT_SUPPORTED}, "0", "", "", "", "0", "0"},
			{nvml.GpuFabricInfo_v3{State: nvml.GPU_FABRIC_STATE_IN_PROGRESS, Status: 9}, "0", "", "", "", "2", "0"},
			{nvml.GpuFabricInfo_v3{State: nvml.GPU_FABRIC_STATE_NOT_STARTED}, "0", "", "", "", "1", "0"},
			{inFabric(1, 0, nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY), "1", "0", "0", "a1b2c3d4-0000-0000-0000-000000000001", "3", "0"},
			{inFabric(1, 32766, nvml.GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY), "3", "0", "32766", "a1b2c3d4-0000-0000-0000-000000000001", "3", "0"},
			{inFabric(2, 3, nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY), "1", "0", "3", "a1b2c3d4-0000-0000-0000-000000000002", "3", "0"},
			{failed, "2", "999", "", "", "4", "0"},
			{inFabric(2, 3, nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY), "1", "0", "3", "a1b2c3d4-0000-0000-0000-000000000002", "3", "0"},
			{nvml.GpuFabricInfo_v3{State: nvml.GPU_FABRIC_STATE_IN_PROGRESS}, "0", "", "", "", "2", "0"},
			// A zero UUID is a cluster too: boards behind the switches of one node have it (nvidia-smi -q).
			{nvml.GpuFabricInfo_v3{State: nvml.GPU_FABRIC_STATE_COMPLETED}, "0", "0", "0", "00000000-0000-0000-0000-000000000000", "3", "0"},
			{slow, "1", "0", "3", "a1b2c3d4-0000-0000-0000-000000000002", "3", "105"}, // 0b01101001
			{older, "", "0", "3", "a1b2c3d4-0000-0000-0000-000000000002", "3", "0"},
		} {
			is = step.is
			for range 2 {
				all := r.read()
				if all[fabricHealth] != step.health || all[fabricError] != step.failed || all[fabricClique] != step.clique || r.clusterOf() != step.cluster {
					t.Errorf("step %d: health %q, error %q, clique %q in %q", i, all[fabricHealth], all[fabricError], all[fabricClique], r.clusterOf())
				}
				if board := r.node.batcher.boards[0]; board.Cluster != step.cluster {
					t.Errorf("step %d: the board is in cluster %q", i, board.Cluster)
				}
				if all["0/7 "+dcgm.CliqueFamily] != step.clique {
					t.Errorf("step %d: the instance has clique %q", i, all["0/7 "+dcgm.CliqueFamily])
				}
			}
			if text := string(r.b.AppendText(nil)); strings.Count(text, step.cluster) > 2 && step.cluster != "" {
				t.Errorf("step %d: families other than the clique have the cluster as a label", i)
			}
		}
	})
}

// A board without a fabric is asked once.
func TestBoardWithoutFabric(t *testing.T) {
	for _, test := range []struct {
		answer nvml.Return
		asked  int // within three rounds
	}{
		{nvml.ERROR_NOT_SUPPORTED, 1}, {nvml.ERROR_NO_PERMISSION, 1}, {nvml.ERROR_ARGUMENT_VERSION_MISMATCH, 1}, {nvml.ERROR_UNKNOWN, 3},
	} {
		f, row, asked := newFabric(), newRow(), 0
		for i := range 3 {
			answer := f.ask(nil, func(nvml.Device) (nvml.GpuFabricInfo_v3, nvml.Return) {
				asked++
				return inFabric(1, 1, 1), test.answer
			}, row)
			if want := test.answer; answer != want && (i == 0 || test.asked > 1 || answer != nvml.SUCCESS) {
				t.Errorf("answer %d, want %d", answer, want)
			}
		}
		if asked != test.asked || !math.IsNaN(row[f.columns[0]]) {
			t.Errorf("%d: asked %d times, health %v", test.answer, asked, row[f.columns[0]])
		}
	}
}
