//go:build cgo && linux

package nvml

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/source/nvml/nvmltest"
)

const (
	fabricHealth = "0 DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY"
	fabricError  = "0 DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE"
	fabricClique = "0 " + dcgm.CliqueFamily
)

// inFabric is the answer of a registered board.
func inFabric(last uint8, clique uint32, mask uint32, summary uint8) nvml.GpuFabricInfo_v3 {
	return nvml.GpuFabricInfo_v3{
		ClusterUuid: [16]uint8{0xa1, 0xb2, 0xc3, 0xd4, 15: last}, CliqueId: clique, State: nvml.GPU_FABRIC_STATE_COMPLETED,
		HealthMask: mask, HealthSummary: summary,
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
		m.boards[0].cut(7, "1g.10gb")
		r := newReader(t, m, nil)
		defer r.Close()
		var is nvml.GpuFabricInfo_v3
		r.fabric = func(nvml.Device, int) (nvml.GpuFabricInfo_v3, nvml.Return) { return is, nvml.SUCCESS }
		failed := inFabric(9, 1, 0, nvml.GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY)
		failed.Status = uint32(nvml.ERROR_UNKNOWN)
		for i, step := range []struct {
			is                              nvml.GpuFabricInfo_v3
			health, failed, clique, cluster string
		}{
			{nvml.GpuFabricInfo_v3{State: nvml.GPU_FABRIC_STATE_NOT_SUPPORTED}, "0", "", "", ""},
			{nvml.GpuFabricInfo_v3{State: nvml.GPU_FABRIC_STATE_IN_PROGRESS, Status: 9}, "0", "", "", ""},
			{inFabric(1, 0, 0, nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY), "1", "0", "0", "a1b2c3d4-0000-0000-0000-000000000001"},
			{inFabric(1, 32766, 0, nvml.GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY), "3", "0", "32766", "a1b2c3d4-0000-0000-0000-000000000001"},
			{inFabric(2, 3, 0, nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY), "1", "0", "3", "a1b2c3d4-0000-0000-0000-000000000002"},
			{failed, "2", "999", "", ""},
			{inFabric(2, 3, 0, nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY), "1", "0", "3", "a1b2c3d4-0000-0000-0000-000000000002"},
			{nvml.GpuFabricInfo_v3{State: nvml.GPU_FABRIC_STATE_IN_PROGRESS}, "0", "", "", ""},
			// A zero UUID is a cluster too: boards behind the switches of one node have it (nvidia-smi -q).
			{nvml.GpuFabricInfo_v3{State: nvml.GPU_FABRIC_STATE_COMPLETED}, "0", "0", "0", "00000000-0000-0000-0000-000000000000"},
		} {
			is = step.is
			for range 2 {
				all := r.read()
				if all[fabricHealth] != step.health || all[fabricError] != step.failed || all[fabricClique] != step.clique || r.clusterOf() != step.cluster {
					t.Errorf("step %d: health %q, error %q, clique %q in %q", i, all[fabricHealth], all[fabricError], all[fabricClique], r.clusterOf())
				}
				if board := r.view.boards[0]; board.Cluster != step.cluster {
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

// A driver that does not know the newer version of the answer is asked for the older
// one, and a board without a fabric is asked once.
func TestFabricOfOlderDrivers(t *testing.T) {
	for _, test := range []struct {
		name   string
		newer  nvml.Return
		older  nvml.Return
		health string
		answer nvml.Return // of the first round
		asked  int         // within four rounds, the first before the first reading
	}{
		{"older", nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.SUCCESS, "2", nvml.SUCCESS, 1 + 4},
		{"no such argument", nvml.ERROR_INVALID_ARGUMENT, nvml.SUCCESS, "2", nvml.SUCCESS, 1 + 4},
		{"older still", nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_FUNCTION_NOT_FOUND, "", nvml.ERROR_FUNCTION_NOT_FOUND, 2},
		{"no fabric", nvml.ERROR_NOT_SUPPORTED, nvml.SUCCESS, "", nvml.ERROR_NOT_SUPPORTED, 1},
		{"no permission", nvml.ERROR_NO_PERMISSION, nvml.SUCCESS, "", nvml.ERROR_NO_PERMISSION, 1},
		{"older, no fabric", nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_NOT_SUPPORTED, "", nvml.ERROR_NOT_SUPPORTED, 2},
		{"an error that passes", nvml.ERROR_UNKNOWN, nvml.SUCCESS, "", nvml.ERROR_UNKNOWN, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(1)
				delete(m.lacks, fabricCall)
				r := newReader(t, m, nil)
				defer r.Close()
				asked := 0
				r.fabric = func(_ nvml.Device, version int) (nvml.GpuFabricInfo_v3, nvml.Return) {
					if asked++; version == 3 {
						return inFabric(1, 1, 0, 1), test.newer
					}
					return inFabric(1, 1, 0, summarize(1<<nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_UNHEALTHY)), test.older
				}
				row := newRow()
				if answer := newFabric().ask(nil, r.fabric, row); answer != test.answer {
					t.Errorf("the first answer is %d, want %d", answer, test.answer)
				}
				if none := math.IsNaN(row[columns("FMHSUM")[0]]); none != (test.health == "") {
					t.Errorf("the first answer has no health: %v", none)
				}
				asked = 0
				for range 3 {
					if got := r.read()[fabricHealth]; got != test.health {
						t.Errorf("health %q, want %q", got, test.health)
					}
				}
				if asked != test.asked {
					t.Errorf("asked %d times, want %d", asked, test.asked)
				}
			})
		})
	}
}

// Both versions of the answer, from a library. The older has no summary: the mask has another one.
func TestFabricInfo(t *testing.T) {
	truths := nvmltest.H100(1)
	scenario := filepath.Join(t.TempDir(), "scenario")
	s := nvmltest.FromTruth(truths)
	s.Values = append(s.Values, nvmltest.Value{Of: "0", Key: "fabric_health", Number: 3}, nvmltest.Value{Of: "0", Key: "fabric_error", Number: 999})
	s.Write(t, scenario)
	t.Setenv(nvmltest.ScenarioEnv, scenario)
	r, err := New(Options{LibraryPath: nvmltest.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Read(t.Context(), new(raw.Batch)); err != nil {
		t.Fatal(err)
	}
	device, answer := r.lib.DeviceGetHandleByIndex(0)
	if answer != nvml.SUCCESS {
		t.Fatal(answer)
	}
	for version, summary := range map[int]uint8{3: nvml.GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY, 2: nvml.GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY} {
		is, answer := fabricInfo(device, version)
		is.Version = 0
		want := nvml.GpuFabricInfo_v3{
			ClusterUuid: [16]uint8{0xfa, 0xb1, 15: 0xc}, CliqueId: 5, State: nvml.GPU_FABRIC_STATE_COMPLETED, Status: 999,
			HealthMask: 426 - 1<<4, HealthSummary: summary,
		}
		if is != want || answer != nvml.SUCCESS {
			t.Errorf("version %d: %+v, answer %d", version, is, answer)
		}
	}
}

// The aspects of the mask, each with two bits except for the configuration, and together.
func TestSummarize(t *testing.T) {
	for _, test := range []struct {
		name string
		mask uint32
		want uint8
	}{
		{"nothing is told", 0, 0},
		{"all is well, as the stack's driver says", 426, 1},
		{"one aspect alone is well", 2, 1},
		{"less bandwidth", 426 - 1, 3},
		{"a route recovers", 426 - 1<<2, 3},
		{"a route is given up", 426 - 1<<4, 2},
		{"access timeouts recover", 426 - 1<<6, 3},
		{"another rack's GUID", 426 + 1<<8, 2},
		{"too few NVLinks", 426 + 4<<8, 2},
		{"less bandwidth and no partition", 426 - 1 + 3<<8, 2},
	} {
		if got := summarize(test.mask); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}
