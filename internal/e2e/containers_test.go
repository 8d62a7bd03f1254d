package e2e

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// containerObject is what gpu-container-exporter's clients decode: its GPUMetricResponse, tag by
// tag, then our additions. family is the source of a reading.
type containerObject struct {
	NodeName             string    `json:"node_name"`
	ModelName            string    `json:"model_name"`
	Device               string    `json:"device"`
	DeviceID             string    `json:"device_id"`
	DeviceUUID           string    `json:"device_uuid"`
	MIGProfile           string    `json:"mig_profile,omitempty"`
	MIGInstanceID        string    `json:"mig_instance_id,omitempty"`
	Pod                  string    `json:"pod"`
	Container            string    `json:"container"`
	Namespace            string    `json:"namespace"`
	WorkloadName         string    `json:"workload_name,omitempty"`
	WorkloadKind         string    `json:"workload_kind,omitempty"`
	SMActive             float64   `json:"sm_active" family:"PROF_SM_ACTIVE"`
	SMOccupancy          float64   `json:"sm_occupancy" family:"PROF_SM_OCCUPANCY"`
	TensorActive         float64   `json:"tensor_active" family:"PROF_PIPE_TENSOR_ACTIVE"`
	DRAMActive           float64   `json:"dram_active" family:"PROF_DRAM_ACTIVE"`
	PCIeTXBytes          float64   `json:"pcie_tx_bytes" family:"PROF_PCIE_TX_BYTES"`
	PCIeRXBytes          float64   `json:"pcie_rx_bytes" family:"PROF_PCIE_RX_BYTES"`
	NVLinkTXBytes        float64   `json:"nvlink_tx_bytes" family:"PROF_NVLINK_TX_BYTES"`
	NVLinkRXBytes        float64   `json:"nvlink_rx_bytes" family:"PROF_NVLINK_RX_BYTES"`
	GraphicsEngineActive float64   `json:"graphics_engine_active" family:"PROF_GR_ENGINE_ACTIVE"`
	FramebufferTotal     float64   `json:"framebuffer_total" family:"DEV_FB_TOTAL"`
	FramebufferUsed      float64   `json:"framebuffer_used" family:"DEV_FB_USED"`
	FramebufferFree      float64   `json:"framebuffer_free" family:"DEV_FB_FREE"`
	PCIeLinkGen          float64   `json:"pcie_link_gen" family:"DEV_PCIE_LINK_GEN"`
	PCIeLinkWidth        float64   `json:"pcie_link_width" family:"DEV_PCIE_LINK_WIDTH"`
	Temperature          float64   `json:"temperature" family:"DEV_GPU_TEMP"`
	MemoryTemperature    float64   `json:"memory_temperature" family:"DEV_MEMORY_TEMP"`
	PowerUsage           float64   `json:"power_usage" family:"DEV_POWER_USAGE"`
	GPUUtilization       float64   `json:"gpu_utilization" family:"DEV_GPU_UTIL"`
	IntPipeActive        float64   `json:"int_pipe_active" family:"PROF_PIPE_INT_ACTIVE"`
	FP16PipeActive       float64   `json:"fp16_pipe_active" family:"PROF_PIPE_FP16_ACTIVE"`
	FP32PipeActive       float64   `json:"fp32_pipe_active" family:"PROF_PIPE_FP32_ACTIVE"`
	FP64PipeActive       float64   `json:"fp64_pipe_active" family:"PROF_PIPE_FP64_ACTIVE"`
	ClocksEventReasons   float64   `json:"clocks_event_reasons" family:"DEV_CLOCKS_EVENT_REASONS"`
	XIDErrors            float64   `json:"xid_errors" family:"DEV_XID_ERRORS"`
	PowerViolation       float64   `json:"power_violation" family:"DEV_POWER_VIOLATION"`
	ThermalViolation     float64   `json:"thermal_violation" family:"DEV_THERMAL_VIOLATION"`
	SMClock              float64   `json:"sm_clock" family:"DEV_SM_CLOCK"`
	MemClock             float64   `json:"mem_clock" family:"DEV_MEM_CLOCK"`
	Timestamp            time.Time `json:"timestamp"`

	RealUtilization   *float64 `json:"real_utilization"`
	WorkloadClass     string   `json:"workload_class"`
	Health            string   `json:"health"`
	RecommendedAction string   `json:"recommended_action"`
}

// containerReading returns the exporter's value of a containerObject field for a device: plausible,
// and different for each device.
func containerReading(tag string, device int) float64 {
	d := float64(device)
	switch {
	case strings.HasSuffix(tag, "_active"), tag == "sm_occupancy":
		return 0.5 + d/16
	case strings.HasSuffix(tag, "_bytes"):
		return 1e6 * (d + 1)
	case strings.HasPrefix(tag, "framebuffer"):
		return 1000 * (d + 2)
	case strings.HasSuffix(tag, "_violation"):
		return 5e9 * (d + 1)
	case tag == "clocks_event_reasons":
		return 1
	case tag == "xid_errors":
		return 0
	}
	return 20 + d
}

// containerRows has the holders: two pods share board 0, board 1 is free, a job holds 2, and 3 is
// partitioned into an instance that a pod holds and a free one.
var containerRows = []struct {
	device int
	labels string
	want   containerObject
}{
	{0, `gpu="0",UUID="GPU-0",device="nvidia0",modelName="NVIDIA H100",Hostname="n1",container="main",namespace="ml",pod="train-0"`,
		containerObject{NodeName: "n1", ModelName: "NVIDIA H100", Device: "nvidia0", DeviceID: "0", DeviceUUID: "GPU-0", Pod: "train-0", Container: "main", Namespace: "ml"}},
	{0, `gpu="0",UUID="GPU-0",device="nvidia0",modelName="NVIDIA H100",Hostname="n1",container="side",namespace="ml",pod="probe"`,
		containerObject{NodeName: "n1", ModelName: "NVIDIA H100", Device: "nvidia0", DeviceID: "0", DeviceUUID: "GPU-0", Pod: "probe", Container: "side", Namespace: "ml"}},
	{1, `gpu="1",UUID="GPU-1",device="nvidia1",modelName="NVIDIA H100",Hostname="n1",container="",namespace="",pod=""`,
		containerObject{NodeName: "n1", ModelName: "NVIDIA H100", Device: "nvidia1", DeviceID: "1", DeviceUUID: "GPU-1"}},
	{2, `gpu="2",UUID="GPU-2",device="nvidia2",modelName="NVIDIA H100",Hostname="n1",hpc_job="4711"`,
		containerObject{NodeName: "n1", ModelName: "NVIDIA H100", Device: "nvidia2", DeviceID: "2", DeviceUUID: "GPU-2"}},
	{3, `gpu="3",UUID="GPU-3",device="nvidia3",modelName="NVIDIA H100",GPU_I_PROFILE="3g.40gb",GPU_I_ID="1",Hostname="n1",container="main",namespace="web",pod="api-1"`,
		containerObject{NodeName: "n1", ModelName: "NVIDIA H100", Device: "nvidia3", DeviceID: "3", DeviceUUID: "GPU-3", MIGProfile: "3g.40gb", MIGInstanceID: "1", Pod: "api-1", Container: "main", Namespace: "web"}},
	{3, `gpu="3",UUID="GPU-3",device="nvidia3",modelName="NVIDIA H100",GPU_I_PROFILE="3g.40gb",GPU_I_ID="2",Hostname="n1"`,
		containerObject{NodeName: "n1", ModelName: "NVIDIA H100", Device: "nvidia3", DeviceID: "3", DeviceUUID: "GPU-3", MIGProfile: "3g.40gb", MIGInstanceID: "2"}},
}

// containerPage returns the exporter's exposition of containerRows, and the objects that it must
// yield.
func containerPage() (text string, want []containerObject) {
	var b strings.Builder
	for _, row := range containerRows {
		o := row.want
		fields := reflect.ValueOf(&o).Elem()
		for i := range fields.NumField() {
			if family, is := fields.Type().Field(i).Tag.Lookup("family"); is {
				v := containerReading(fields.Type().Field(i).Tag.Get("json"), row.device)
				fields.Field(i).SetFloat(v)
				fmt.Fprintf(&b, "DCGM_FI_%s{%s} %v\n", family, row.labels, v)
			}
		}
		want = append(want, o)
	}
	return b.String(), want
}

// containersOf requests the list and checks what holds for every answer.
func containersOf(t *testing.T, c *child, query string) (list []containerObject) {
	t.Helper()
	code, body := page(t, c, "/container/metrics"+query)
	if code != 200 || !strings.HasPrefix(body, "[") {
		t.Fatalf("%s: %d %s", query, code, body)
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("%s: %v: %s", query, err, body)
	}
	return list
}

// TestContainersToTheLetter: gpu-container-exporter's clients decode what it would serve for the
// same exposition, and our additions.
func TestContainersToTheLetter(t *testing.T) {
	t.Parallel()
	text, want := containerPage()
	up, _ := changingUpstream(t, text)
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--poll=0")
	got := containersOf(t, c, "")
	if len(got) != len(want) {
		t.Fatalf("%d objects, want %d: %+v", len(got), len(want), got)
	}
	for i, o := range got {
		if o.RealUtilization == nil || *o.RealUtilization < 0.5 || *o.RealUtilization > 1 || o.WorkloadClass == "" || o.WorkloadClass == "unknown" ||
			o.Health != "ok" || o.RecommendedAction != "none" || time.Since(o.Timestamp).Abs() > patience {
			t.Errorf("ours: %+v", o)
		}
		o.RealUtilization, o.WorkloadClass, o.Health, o.RecommendedAction, o.Timestamp = nil, "", "", "", time.Time{}
		if o != want[i] {
			t.Errorf("got  %+v\nwant %+v", o, want[i])
		}
	}
}

// TestContainersOfBothForms: /container/metrics is the same in both forms, even for verdicts that
// the lean form omits.
func TestContainersOfBothForms(t *testing.T) {
	t.Parallel()
	text, want := containerPage()
	lists := map[string]string{}
	for form := range forms {
		up, _ := changingUpstream(t, text)
		c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--poll=0", "--series="+form)
		list := containersOf(t, c, "")
		if len(list) != len(want) {
			t.Errorf("%s: %d objects, want %d", form, len(list), len(want))
		}
		for i := range list {
			list[i].Timestamp = time.Time{}
		}
		said, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		lists[form] = string(said)
	}
	if lists["lean"] != lists["full"] || strings.Count(lists["lean"], `"recommended_action":"none"`) != len(want) {
		t.Errorf("lean: %s\nfull: %s", lists["lean"], lists["full"])
	}
}
