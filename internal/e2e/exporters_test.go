package e2e

import (
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// changingUpstream serves the body that was stored last.
func changingUpstream(t *testing.T, first string) (up *upstream, set func(string)) {
	var body atomic.Value
	body.Store(first)
	up = startUpstream(func() ([]byte, error) { return []byte(body.Load().(string)), nil })
	t.Cleanup(up.stop)
	return up, func(s string) { body.Store(s) }
}

// wants checks that text contains each of the lines.
func wants(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("want %s in\n%s", line, text)
		}
	}
}

// TestVirtualGPUs: with --kubernetes-virtual-gpus, dcgm-exporter serves a row for the device and
// one for each pod. The device's utilization is that of its own row, in any order; pods share its
// time and energy by theirs. Without a row of the device, the pods' rows are copies, and all pods
// have equal shares.
func TestVirtualGPUs(t *testing.T) {
	t.Parallel()
	const (
		device = "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-1\"} 90\n"
		heavy  = `{gpu="0",UUID="GPU-1",container="c",namespace="n",pod="heavy",pod_uid="1",vgpu="0"} `
		idle   = `{gpu="0",UUID="GPU-1",container="c",namespace="n",pod="idle",pod_uid="2",vgpu="1"} `
		util   = "DCGM_FI_DEV_GPU_UTIL" + heavy + "60\nDCGM_FI_DEV_GPU_UTIL" + idle + "0\n"
		memory = "DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-1\"} 3000\nDCGM_FI_DEV_FB_USED" + idle + "500\nDCGM_FI_DEV_FB_USED" + heavy + "1500\n"
		power  = "DCGM_FI_DEV_POWER_USAGE" + heavy + "400\nDCGM_FI_DEV_POWER_USAGE" + idle + "400\n"

		some = `[0-9.e-]*[1-9][0-9e-]*`
	)
	labels := func(pod string) string {
		return `{hostname="n",gpu="0",uuid="GPU-1",workload_namespace="n",workload_pod="` + pod + `",workload_container="c",workload_kind="",workload_name="",hpc_job=""`
	}
	up, set := changingUpstream(t, util+device+power)
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--source.min-interval=0s", "--poll=0", "--node-name=n")
	page(t, c, "/metrics")
	time.Sleep(10 * time.Millisecond) // the next reading then stands for some time
	set(device + memory + power + util)
	_, text := page(t, c, "/metrics?series=full")
	wants(t, text, `kpulse_gpu_nvml_utilization_ratio{hostname="n",gpu="0",uuid="GPU-1"} 0.9`, `kpulse_gpu_allocations{hostname="n",gpu="0",uuid="GPU-1"} 2`)
	for pod, values := range map[string][]string{"heavy": {"0.6", "1572864000", some}, "idle": {"0", "524288000", "0"}} {
		for i, series := range []string{"nvml_utilization_ratio", "framebuffer_used_bytes", "seconds_total", "energy_joules_total", "info"} {
			block, value := labels(pod)+"} ", values[min(i, 2)]
			if series == "info" {
				block, value = labels(pod)+`,share="measured"} `, "1"
			}
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta("kpulse_allocation_"+series+block) + value + `$`).MatchString(text) {
				t.Errorf("want %s of %s to be %s in\n%s", series, pod, value, family(text, "kpulse_allocation_"+series))
			}
		}
	}
	time.Sleep(10 * time.Millisecond)
	set(util + power)
	page(t, c, "/metrics")
	time.Sleep(10 * time.Millisecond) // the time until the page before was shared by what its rows said
	_, text = page(t, c, "/metrics")
	wants(t, text, "kpulse_allocation_info"+labels("idle")+`,share="equal"} 1`)
	if strings.Contains(text, "kpulse_allocation_nvml") || !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta("kpulse_allocation_seconds_total"+labels("idle"))+`\} `+some+`$`).MatchString(text) {
		t.Errorf("want equal shares by copies in\n%s", family(text, "kpulse_allocation_seconds_total"))
	}
}

// TestFabric: the cluster's UUID comes as a label only, the clique as a label or a value, depending
// on the exporter's counters, and links in rows of their own (4.8.2 on GB300).
func TestFabric(t *testing.T) {
	t.Parallel()
	const uuid = `DCGM_FI_DEV_FABRIC_CLUSTER_UUID="00000000-0000-0000-0000-000000000001"`
	up, set := changingUpstream(t, "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-1\","+uuid+"} 61\n"+
		"DCGM_FI_DEV_FABRIC_CLIQUE_ID{gpu=\"0\",UUID=\"GPU-1\","+uuid+"} 4\n"+
		"DCGM_FI_DEV_NVLINK_GET_STATE{nvlink=\"1\",gpu=\"0\",gpu_uuid=\"GPU-1\"} 1\nDCGM_FI_DEV_NVLINK_GET_STATE{nvlink=\"2\",gpu=\"0\",gpu_uuid=\"GPU-1\"} 0\n")
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--source.min-interval=0s", "--poll=0", "--node-name=n")
	_, text := page(t, c, "/metrics")
	const board = `{hostname="n",gpu="0",uuid="GPU-1"`
	wants(t, text, "# TYPE kpulse_gpu_fabric_info gauge", `kpulse_gpu_nvlink_links_active`+board+`} 1`,
		`kpulse_gpu_fabric_info`+board+`,cluster_uuid="00000000-0000-0000-0000-000000000001",clique_id="4"} 1`,
		`kpulse_source_unknown_families{source="`+up.url+`/metrics",backend="prometheus"} 0`)
	set(`DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",DCGM_FI_DEV_FABRIC_CLIQUE_ID="5"} 61` + "\n")
	_, text = page(t, c, "/metrics")
	wants(t, text, `kpulse_gpu_fabric_info`+board+`,cluster_uuid="",clique_id="5"} 1`)
	set(oneGPU)
	if _, text = page(t, c, "/metrics"); strings.Contains(text, "gpu_fabric_info") {
		t.Errorf("want no fabric in\n%s", text)
	}
}
