package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// The fleet: half of the nodes run batch jobs of 4 nodes each, the others pods of
// one GPU each in workloads of 16, in namespaces of 256 GPUs. The jobs are of 100 users.
const (
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

// series is one series of the fleet. Its value grows with slope per second from
// base.
type series struct {
	labels      labels.Labels
	ref         storage.SeriesRef
	base, slope float64
}

// fleet returns the series that the rules read of so many nodes.
func fleet(nodes int) []series {
	var all []series
	for node := range nodes {
		for gpu := range gpusPerNode {
			all = appendGPU(all, node, gpu)
		}
	}
	return all
}

// appendGPU appends the series of a GPU and of its one workload.
func appendGPU(all []series, node, gpu int) []series {
	n := node*gpusPerNode + gpu
	device := labels.FromStrings("cluster", "east", "instance", fmt.Sprintf("node-%04d:9401", node), "job", "kpulse-proxy",
		"hostname", fmt.Sprintf("node-%04d", node), "gpu", fmt.Sprint(gpu), "uuid", uuidOf(n))
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
	for i, class := range classes {
		add(0, inUse(i, n), "allocation_class_seconds_total", append(allocation, "class", class)...)
	}
	return all
}

// uuidOf is the id of GPU n of the fleet.
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

// inUse is the share of class i on GPU n: each GPU has a few classes.
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
