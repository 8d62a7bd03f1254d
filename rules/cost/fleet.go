package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// The fleet: half of the nodes run batch jobs of 4 nodes each, the others run pods of one
// GPU each, in workloads of 16 and namespaces of 256 GPUs. The jobs belong to 100 users.
const (
	cluster         = "east" // of all nodes
	gpusPerNode     = 8
	nodesPerJob     = 4
	usersPerFleet   = 100
	usersPerAccount = 10
	gpusPerApp      = 16
	gpusPerSpace    = 256
	classesInUse    = 2
	throttleReason  = "power"
)

var (
	classes = []string{
		"idle", "tensor_heavy_compute", "tensor_compute", "fp64_hpc_compute", "io_or_data_loading", "memory_bound", "compute_heavy",
		"compute_active", "memory_active", "busy_low_sm_use", "low_utilization", "mixed_or_moderate", "unknown",
	}
	states  = []string{"ok", "hot", "warn", "crit", "unknown"}
	reasons = []string{"power", "thermal", "sync_boost", "board_limit", "low_utilization", "reliability"}
)

// series is one series of the fleet. Its value grows from base, by slope per second.
type series struct {
	labels      labels.Labels
	ref         storage.SeriesRef
	base, slope float64
}

// form is what is scraped: the exporters, or proxies with that --series.
type form string

const (
	exporter form = "exporter"
	lean     form = "lean"
	full     form = "full"
)

// formOrder lists all forms, in the order of the tables.
var formOrder = []form{exporter, lean, full}

// formsOf reads a list of forms.
func formsOf(list string) (all []form, err error) {
	for name := range strings.SplitSeq(list, ",") {
		if !slices.Contains(formOrder, form(name)) {
			return nil, fmt.Errorf("%q is not a form; write some of exporter,lean,full", name)
		}
		all = append(all, form(name))
	}
	return all, nil
}

// fleet returns the series of a number of nodes that the rules read.
func fleet(nodes int, as form) []series {
	var all []series
	for node := range nodes {
		for gpu := range gpusPerNode {
			if as == exporter {
				all = appendExported(all, node, gpu)
			} else {
				all = appendGPU(all, node, gpu, as)
			}
		}
	}
	return all
}

// readings are the families of dcgm-exporter that rules read, each with a value of a busy GPU
// and its growth per second.
var readings = []struct {
	name        string
	value, rate float64
}{
	{"DEV_GPU_TEMP", 55, 0}, {"DEV_MEMORY_TEMP", 60, 0}, {"DEV_POWER_USAGE", 300, 0}, {"DEV_TOTAL_ENERGY_CONSUMPTION", 0, 300e3}, {"DEV_PCIE_REPLAY_COUNTER", 0, 0},
	{"DEV_GPU_UTIL", 90, 0}, {"DEV_MEM_COPY_UTIL", 30, 0}, {"DEV_ENC_UTIL", 0, 0}, {"DEV_DEC_UTIL", 0, 0}, {"DEV_XID_ERRORS", 0, 0}, {"DEV_FB_FREE", 20000, 0}, {"DEV_FB_USED", 60000, 0},
	{"DEV_UNCORRECTABLE_REMAPPED_ROWS", 0, 0}, {"DEV_CORRECTABLE_REMAPPED_ROWS", 0, 0}, {"DEV_ROW_REMAP_FAILURE", 0, 0}, {"DEV_ECC_SBE_VOL_TOTAL", 0, 0}, {"DEV_ECC_DBE_VOL_TOTAL", 0, 0},
	{"DEV_CLOCK_THROTTLE_REASONS", 0, 0}, {"PROF_GR_ENGINE_ACTIVE", .9, 0}, {"PROF_SM_ACTIVE", .7, 0}, {"PROF_SM_OCCUPANCY", .5, 0}, {"PROF_PIPE_TENSOR_ACTIVE", .4, 0}, {"PROF_DRAM_ACTIVE", .3, 0},
	{"PROF_PIPE_FP16_ACTIVE", .1, 0}, {"PROF_PIPE_FP32_ACTIVE", .1, 0}, {"PROF_PCIE_TX_BYTES", 5e8, 0}, {"PROF_PCIE_RX_BYTES", 5e8, 0},
}

// appendExported appends the series of an exporter for a GPU with one pod.
func appendExported(all []series, node, gpu int) []series {
	host := nodeName(node)
	device := labels.FromStrings("cluster", cluster, "instance", host+":9400", "job", "dcgm-exporter", "Hostname", host, "gpu", fmt.Sprint(gpu), "UUID", uuidOf(node*gpusPerNode+gpu),
		"device", fmt.Sprintf("nvidia%d", gpu), "modelName", "NVIDIA H100 80GB HBM3", "namespace", "team", "pod", fmt.Sprintf("run-%d-%d", node, gpu), "container", "main")
	for _, r := range readings {
		all = append(all, series{labels: labels.NewBuilder(device).Set(model.MetricNameLabel, "DCGM_FI_"+r.name).Labels(), base: r.value, slope: r.rate})
	}
	return all
}

// appendGPU appends the series of a GPU and of its one workload.
func appendGPU(all []series, node, gpu int, as form) []series {
	n := node*gpusPerNode + gpu
	device := labels.FromStrings("cluster", cluster, "instance", nodeName(node)+":9401", "job", "kpulse-proxy",
		"hostname", nodeName(node), "gpu", fmt.Sprint(gpu), "uuid", uuidOf(n))
	add := func(base, slope float64, name string, more ...string) {
		b := labels.NewBuilder(device)
		b.Set(model.MetricNameLabel, "kpulse_"+name)
		for i := 0; i < len(more); i += 2 {
			b.Set(more[i], more[i+1])
		}
		all = append(all, series{labels: b.Labels(), base: base, slope: slope})
	}
	utilization := float64(n%100) / 100
	add(1, 0, "gpu_info", "model", []string{"NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"}[node%2], "driver_version", "580.105.08", "device", fmt.Sprintf("nvidia%d", gpu))
	add(1, 0, "gpu_present")
	add(0.9, 0, "gpu_nvml_utilization_ratio")
	add(0.4, 0, "gpu_tensor_active_ratio")
	add(0.3, 0, "gpu_dram_active_ratio")
	add(300+float64(n%400), 0, "gpu_power_watts")
	add(700, 0, "gpu_power_limit_watts")
	add(40+float64(n%40), 0, "gpu_temperature_celsius")
	add(95, 0, "gpu_temperature_warning_celsius")
	add(60<<30, 0, "gpu_framebuffer_used_bytes")
	add(0, 0, "gpu_pcie_replays_total")
	for _, severity := range []string{"correctable", "uncorrectable"} {
		for _, scope := range []string{"volatile", "aggregate"} {
			add(0, 0, "gpu_ecc_errors_total", "severity", severity, "scope", scope)
		}
	}
	add(0, 300+float64(n%400), "gpu_energy_joules_total")
	add(0, 1, "gpu_observed_seconds_total")
	add(0, utilization, "gpu_real_utilization_seconds_total")
	add(0, 1, "gpu_real_utilization_known_seconds_total")
	for i, class := range classes {
		add(0, inUse(i, n), "gpu_workload_class_seconds_total", "class", class, "bottleneck", "compute")
	}
	for _, state := range states {
		add(0, one(state == "ok"), "gpu_health_seconds_total", "state", state)
	}
	for _, reason := range reasons {
		add(0, one(reason == throttleReason)/10, "gpu_throttled_seconds_total", "reason", reason)
	}
	allocation := workload(node, n)
	if node%2 == 0 {
		job := n / (2 * nodesPerJob * gpusPerNode)
		add(1, 0, "allocation_info", append(allocation, "hpc_user", fmt.Sprintf("user-%d", job%usersPerFleet), "hpc_account", fmt.Sprintf("group-%d", job%usersPerFleet/usersPerAccount))...)
	}
	add(0, 1, "allocation_seconds_total", allocation...)
	add(0, utilization, "allocation_real_utilization_seconds_total", allocation...)
	add(0, 1, "allocation_real_utilization_known_seconds_total", allocation...)
	add(0, 300+float64(n%400), "allocation_energy_joules_total", allocation...)
	for i, class := range classes {
		if as == lean && inUse(i, n) == 0 {
			continue
		}
		add(0, inUse(i, n), "allocation_class_seconds_total", append(allocation, "class", class)...)
	}
	return all
}

// nodeName returns the host name of a node of the fleet.
func nodeName(node int) string { return fmt.Sprintf("node-%04d", node) }

// uuidOf returns the UUID of GPU n of the fleet.
func uuidOf(n int) string { return fmt.Sprintf("GPU-%08x-1111-2222-3333-444455556666", n) }

// workload returns the labels of the workload on GPU n of the fleet.
func workload(node, n int) []string {
	if node%2 == 0 {
		return []string{"hpc_job", fmt.Sprint(100000 + node/2/nodesPerJob)}
	}
	app := n / gpusPerApp
	return []string{
		"workload_namespace", fmt.Sprintf("team-%d", n/gpusPerSpace), "workload_pod", fmt.Sprintf("train-%d-worker-%d", app, n), "workload_container", "main",
		"workload_kind", "Job", "workload_name", fmt.Sprintf("train-%d", app),
	}
}

// inUse returns the share of class i on GPU n: each GPU has a few classes.
func inUse(i, n int) float64 { return one((i+n)%len(classes) < classesInUse) / classesInUse }

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// scrape appends a sample of each series.
func scrape(db storage.Appendable, all []series, start, at time.Time) error {
	app := db.Appender(context.Background())
	for i := range all {
		s := &all[i]
		ref, err := app.Append(s.ref, s.labels, at.UnixMilli(), s.base+s.slope*at.Sub(start).Seconds())
		if err != nil {
			return err
		}
		s.ref = ref
	}
	return app.Commit()
}
