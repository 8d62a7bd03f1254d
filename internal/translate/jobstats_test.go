package translate

import (
	"maps"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// ofDCGM is what dcgm-exporter says of a board with two jobs, a free one, and a MIG instance with a
// job whose id is no number.
const ofDCGM = `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",device="nvidia3",modelName="NVIDIA H100",hpc_job="4711"} 57
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",device="nvidia3",modelName="NVIDIA H100",hpc_job="4712"} 57
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",device="nvidia3",modelName="NVIDIA H100",hpc_job="4711",pod="second"} 57
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-b",device="nvidia4",modelName="NVIDIA H100"} 0
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",device="nvidia3",modelName="NVIDIA H100",hpc_job="4711"} 1024
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a",device="nvidia3",modelName="NVIDIA H100",hpc_job="4711"} 611.257
DCGM_FI_DEV_POWER_USAGE{gpu="2",UUID="GPU-c",device="nvidia5",modelName="NVIDIA H100",GPU_I_ID="7",GPU_I_PROFILE="1g.10gb",hpc_job="x"} 80.5
DCGM_FI_PROF_SM_ACTIVE{gpu="2",UUID="GPU-c",device="nvidia5",modelName="NVIDIA H100",GPU_I_ID="7",GPU_I_PROFILE="1g.10gb",hpc_job="x"} 0.21
`

// TestJobstats: each job has a row for each of its devices with the labels and units of
// nvidia_gpu_prometheus_exporter, and nvidia_gpu_jobId the same labels.
func TestJobstats(t *testing.T) {
	r := newReader(t, Options{Compat: []Version{Jobstats}})
	const (
		first  = ` jobid="4711" minor_number="3" name="NVIDIA H100" ordinal="0" uuid="GPU-a"`
		second = ` jobid="4712" minor_number="3" name="NVIDIA H100" ordinal="0" uuid="GPU-a"`
		slice  = ` GPU_I_ID="7" jobid="x" minor_number="5" name="NVIDIA H100 MIG 1g.10gb" ordinal="2" uuid="GPU-c"`
	)
	want := map[string]float64{
		"nvidia_gpu_duty_cycle" + first: 57, "nvidia_gpu_duty_cycle" + second: 57,
		`nvidia_gpu_duty_cycle minor_number="4" name="NVIDIA H100" ordinal="1" uuid="GPU-b"`: 0,
		"nvidia_gpu_memory_used_bytes" + first:                                               1073741824, "nvidia_gpu_memory_used_bytes" + second: 1073741824,
		"nvidia_gpu_power_usage_milliwatts" + first: 611257, "nvidia_gpu_power_usage_milliwatts" + second: 611257,
		"nvidia_gpu_power_usage_milliwatts" + slice: 80500,
		"nvidia_gpu_sm_util_percent" + slice:        0.21, // a ratio despite its name
		"nvidia_gpu_jobId" + first:                  4711, "nvidia_gpu_jobId" + second: 4712,
	}
	text := r.render(ofDCGM)
	if n := strings.Count(text, `jobid="4711"`); n != 4 {
		t.Errorf("job 4711 has %d series, of 4 families, for two holders:\n%s", n, text)
	}
	if got := seriesOf(t, text); !maps.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	// A job that ends and one that begins, on the same devices.
	again := seriesOf(t, r.render(strings.ReplaceAll(ofDCGM, "4712", "4713")))
	if again["nvidia_gpu_jobId"+strings.ReplaceAll(second, "4712", "4713")] != 4713 || len(again) != len(want) {
		t.Errorf("after a change: %v", again)
	}

	// What it renders gives the same readings and jobs, and what a source serves itself is left out.
	back := newReader(t, Options{Compat: []Version{Jobstats, V2}})
	turned := seriesOf(t, back.render(text))
	if _, twice := turned["nvidia_gpu_duty_cycle"+first]; twice {
		t.Error("a family of the source is served again")
	}
	if v := turned[`DCGM_FI_DEV_POWER_USAGE UUID="GPU-a" device="nvidia3" gpu="0" jobid="4711" minor_number="3" modelName="NVIDIA H100" name="NVIDIA H100" ordinal="0"`]; v != 611.257 {
		t.Errorf("power under the name of 2.x: %v in %v", v, turned)
	}
	devices := back.frame.Topology.Devices
	if len(devices) != 4 || devices[0].GPU != "0" || devices[0].Name != "nvidia3" || devices[0].Model != "NVIDIA H100" || devices[3].Instance != "7" {
		t.Errorf("read back: %+v", devices)
	}
	var jobs []string
	for _, a := range back.frame.AllocationSet.Allocations {
		jobs = append(jobs, a.Job)
	}
	if got := strings.Join(jobs, " "); got != "4711 4712 x" {
		t.Errorf("jobs read back: %s", got)
	}
	if v := back.frame.Row(0)[canonical.Power]; v != 611.257 {
		t.Errorf("power read back: %v W", v)
	}
}

// TestJobstatsPage reads lines of the exporter itself, but not beside those of dcgm-exporter, whose rows
// may have such labels from their pods.
func TestJobstatsPage(t *testing.T) {
	r := translated(t, Options{}, `nvidia_gpu_duty_cycle{GPU_I_ID="",jobid="8",minor_number="1",name="NVIDIA A100",ordinal="0",userid="1001",uuid="GPU-a"} 90
nvidia_gpu_memory_total_bytes{GPU_I_ID="3",jobid="",minor_number="1",name="NVIDIA A100 MIG 1g.5gb",ordinal="0",userid="",uuid="MIG-b"} 5e+09
`)
	devices := r.frame.Topology.Devices
	if len(devices) != 1 || devices[0].Name != "nvidia1" || devices[0].Model != "NVIDIA A100" || r.frame.AllocationSet.Allocations[0].Job != "8" {
		t.Errorf("%+v, %+v", devices, r.frame.AllocationSet.Allocations)
	}
	r.checkRow(0, readings{canonical.NVMLUtilization: 0.9})

	r = translated(t, Options{}, `nvidia_gpu_duty_cycle{jobid="8",minor_number="1",name="NVIDIA A100",ordinal="1",uuid="GPU-c"} 90
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-c",modelName="NVIDIA A100",name="my-app",jobid="9",ordinal="0"} 40
`)
	devices = r.frame.Topology.Devices
	if len(devices) != 1 || devices[0].GPU != "1" || devices[0].Model != "NVIDIA A100" || len(r.frame.AllocationSet.Allocations) != 0 {
		t.Errorf("%+v, %+v", devices, r.frame.AllocationSet.Allocations)
	}
	r.checkRow(0, readings{canonical.NVMLUtilization: 0.4})
}
