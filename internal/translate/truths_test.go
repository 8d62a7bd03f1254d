package translate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// truth is one physical reading of two boards and how each dialect words it.
type truth struct {
	field  c.Field
	values [2]float64
	// Names of the family by dialect; numbers by board in the legacy unit and in SI.
	old, plain, renamed, base, column string
	legacy, si                        [2]string
}

var truths = []truth{
	{c.SMActive, [2]float64{0.75, 0.125}, "dcgm_fi_prof_sm_active", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO", "DCGM_FI_PROF_SM_UTIL_RATIO", "SMACT", [2]string{"0.750000", "0.125000"}, [2]string{"0.75", "0.125"}},
	{c.TensorActive, [2]float64{0.5, 0}, "dcgm_fi_prof_pipe_tensor_active", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_TENSOR_UTIL_RATIO", "DCGM_FI_PROF_TENSOR_UTIL_RATIO", "TENSO", [2]string{"0.500000", "0.000000"}, [2]string{"0.5", "0"}},
	{c.NVMLUtilization, [2]float64{0.57, 1}, "dcgm_gpu_utilization", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO", "DCGM_FI_DEV_GPU_UTIL_RATIO", "GPUTL", [2]string{"57", "100"}, [2]string{"0.57", "1"}},
	{c.MemoryCopyUtilization, [2]float64{0.29, 0}, "dcgm_mem_copy_utilization", "DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_MEMORY_UTIL_RATIO", "MCUTL", [2]string{"29", "0"}, [2]string{"0.29", "0"}},
	{c.DecoderUtilization, [2]float64{0.07, 0.01}, "dcgm_dec_utilization", "DCGM_FI_DEV_DEC_UTIL", "DCGM_FI_DEV_DEC_UTIL", "DCGM_FI_DEV_GPU_DEC_UTIL_RATIO", "DCUTL", [2]string{"7", "1"}, [2]string{"0.07", "0.01"}},
	{c.NVLinkBytes, [2]float64{206848000, 0}, "dcgm_nvlink_bandwidth_total", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", "NBWLT", [2]string{"202", "0"}, [2]string{"2.06848e+08", "0"}},
	{c.Power, [2]float64{412.337, 70.5}, "dcgm_power_usage", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_BOARD_POWER_WATTS", "DCGM_FI_DEV_BOARD_POWER_WATTS", "POWER", [2]string{"412.337", "70.5"}, [2]string{"412.337", "70.5"}},
	{c.Energy, [2]float64{15152422, 7}, "dcgm_total_energy_consumption", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", "TOTEC", [2]string{"15152422000", "7000"}, [2]string{"15152422", "7"}},
	{c.Temperature, [2]float64{71, 30}, "dcgm_gpu_temp", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS", "DCGM_FI_DEV_GPU_TEMP_CELSIUS", "TMPTR", [2]string{"71", "30"}, [2]string{"71", "30"}},
	{c.SMClock, [2]float64{1.98e9, 210e6}, "dcgm_sm_clock", "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_SM_CLOCK_HERTZ", "SMCLK", [2]string{"1980", "210"}, [2]string{"1.98e+09", "2.1e+08"}},
	{c.FramebufferUsed, [2]float64{1 << 30, 0}, "dcgm_fb_used", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_USED_BYTES", "FBUSD", [2]string{"1024", "0"}, [2]string{"1073741824", "0"}},
	{c.FramebufferFree, [2]float64{3 << 30, 4 << 30}, "dcgm_fb_free", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_FREE_BYTES", "FBFRE", [2]string{"3072", "4096"}, [2]string{"3221225472", "4294967296"}},
	{c.PCIeReplays, [2]float64{3, 0}, "dcgm_pcie_replay_counter", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_PCIE_REPLAY_TOTAL", "DCGM_FI_DEV_PCIE_REPLAY_TOTAL", "RPCTR", [2]string{"3", "0"}, [2]string{"3", "0"}},
	{c.XIDLast, [2]float64{79, 0}, "dcgm_xid_errors", "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR", "DCGM_FI_DEV_XID_ERROR", "XIDER", [2]string{"79", "0"}, [2]string{"79", "0"}},
	{c.ThrottledThermal, [2]float64{2.5, 0}, "dcgm_thermal_violation", "DCGM_FI_DEV_THERMAL_VIOLATION", "DCGM_FI_DEV_THERMAL_VIOLATION", "DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL", "TVIOL", [2]string{"2500000000", "0"}, [2]string{"2.5", "0"}},
}

// spokenIn renders the truths in one dialect.
func spokenIn(labels string, name func(*truth) string, number func(*truth) [2]string) string {
	var body strings.Builder
	for i := range truths {
		for gpu, value := range number(&truths[i]) {
			fmt.Fprintf(&body, "%s{%s} %s\n", name(&truths[i]), fmt.Sprintf(labels, gpu), value)
		}
	}
	return body.String()
}

// One physical truth gives the same frame in every dialect.
func TestDialectsAgree(t *testing.T) {
	legacy := func(s *truth) [2]string { return s.legacy }
	si := func(s *truth) [2]string { return s.si }
	dialects := map[string]string{
		"1.x":  spokenIn(`gpu="%[1]d",uuid="GPU-%[1]d",device="nvidia%[1]d"`, func(s *truth) string { return s.old }, legacy),
		"2.x":  spokenIn(`gpu="%[1]d", UUID="GPU-%[1]d",device="nvidia%[1]d"`, func(s *truth) string { return s.plain }, legacy),
		"4.6":  spokenIn(`gpu="%[1]d",UUID="GPU-%[1]d",device="nvidia%[1]d",hostname="node"`, func(s *truth) string { return s.renamed }, legacy),
		"4.9":  spokenIn(`gpu="%[1]d",gpu_uuid="GPU-%[1]d",device="nvidia%[1]d",hostname="node"`, func(s *truth) string { return s.base }, si),
		"dmon": spokenIn(`gpu="%[1]d",entity="GPU %[1]d",uuid="GPU-%[1]d",device="nvidia%[1]d"`, func(s *truth) string { return s.column }, legacy),
	}
	want := [2]readings{{}, {}}
	for i := range truths {
		for gpu, v := range truths[i].values {
			want[gpu][truths[i].field] = v
		}
	}
	var first *reader
	for name, body := range dialects {
		t.Run(name, func(t *testing.T) {
			r := translated(t, Options{FallbackHost: "node"}, body)
			r.checkDevices(
				c.Device{Hostname: "node", GPU: "0", UUID: "GPU-0", Name: "nvidia0"},
				c.Device{Hostname: "node", GPU: "1", UUID: "GPU-1", Name: "nvidia1", Board: 1},
			)
			for gpu := range want {
				r.checkRow(gpu, want[gpu])
			}
			r.checkDropped(Report{})
			if first == nil {
				first = r
			}
			for gpu := range want {
				for f, v := range r.frame.Row(gpu) {
					if other := first.frame.Row(gpu)[f]; v != other && !(math.IsNaN(v) && math.IsNaN(other)) {
						t.Errorf("%s of GPU %d is %v here and %v in another dialect", c.Fields[f].Name, gpu, v, other)
					}
				}
			}
		})
	}
}
