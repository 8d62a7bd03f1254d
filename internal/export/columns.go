package export

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// Column is one column of the CSV.
type Column struct {
	Name string
	// cell appends the cell of a row, nothing if there is no reading.
	cell func(dst []byte, r *row) []byte
	// field is the reading that it contains in full, NumFields for none.
	field canonical.Field
}

// row is a device in a reading.
type row struct {
	snapshot *canonical.Snapshot
	index    int // of the device
	device   *canonical.Device
	values   []float64
	verdict  *canonical.Verdict
	job      []canonical.Variable
	replays  float64 // PCIe replays a second since the tick before, NaN if unknown; set for the CSV
}

func (v *View) row(i int) row {
	return row{v.Snapshot, i, &v.Frame.Topology.Devices[i], v.Frame.Row(i), &v.Verdicts[i], v.Job, math.NaN()}
}

// compatible has the names, order, units and decimals of KempnerPulse 0.5 (its
// docs/export.md and the registry in its present layer), so that readers of its files
// read ours: percent, MiB, GB of 10⁹ bytes, MHz, joules. Three points differ: gpu_id is
// `7:1` for instance 1 of GPU 7, status and health may be unknown, and model is empty if
// the source does not give it.
var compatible = []Column{
	other("timestamp", func(dst []byte, r *row) []byte { return appendTime(dst, r.snapshot.Frame.At) }),
	named("gpu_id", idOf),
	named("model", func(d *canonical.Device) string { return shortModel(d.Model) }),
	other("real_util_pct", func(dst []byte, r *row) []byte { return appendNumber(dst, r.verdict.RealPercent, 2) }),
	judged("status", func(dst []byte, v *canonical.Verdict) []byte {
		return appendText(dst, canonical.Classes[v.Class].Title)
	}),
	other("health", appendHealth),
	in("sm_active_pct", canonical.SMActive, percents),
	in("tensor_active_pct", canonical.TensorActive, percents),
	in("dram_active_pct", canonical.DRAMActive, percents),
	in("gr_engine_active_pct", canonical.GraphicsEngineActive, percents),
	in("gpu_util_pct", canonical.NVMLUtilization, percents),
	in("mem_used_mib", canonical.FramebufferUsed, scale{1, 1 << 20, 4}),
	in("mem_total_mib", canonical.FramebufferTotal, scale{1, 1 << 20, 1}),
	in("mem_used_pct", canonical.FramebufferUsedRatio, percents),
	in("power_w", canonical.Power, decimal),
	in("gpu_temp_c", canonical.Temperature, decimal),
	in("mem_temp_c", canonical.MemoryTemperature, decimal),
	in("sm_occupancy_pct", canonical.SMOccupancy, percents),
	in("fp16_pipe_pct", canonical.FP16Active, percents),
	in("fp32_pipe_pct", canonical.FP32Active, percents),
	in("fp64_pipe_pct", canonical.FP64Active, percents),
	in("memcpy_util_pct", canonical.MemoryCopyUtilization, percents),
	in("pcie_rx_bytes_s", canonical.PCIeReceive, decimal),
	in("pcie_tx_bytes_s", canonical.PCIeTransmit, decimal),
	in("nvlink_gbps", canonical.NVLinkBytes, scale{1, 1e9, 4}),
	in("sm_clock_mhz", canonical.SMClock, scale{1, 1e6, 4}),
	in("mem_clock_mhz", canonical.MemoryClock, scale{1, 1e6, 4}),
	other("pcie_replay_rate_s", func(dst []byte, r *row) []byte { return appendNumber(dst, r.replays, 2) }),
	in("energy_j", canonical.Energy, scale{1, 1, 1}),
	in("tc_hmma_pct", canonical.TensorHMMAActive, percents),
	in("tc_imma_pct", canonical.TensorIMMAActive, percents),
	in("tc_dfma_pct", canonical.TensorDFMAActive, percents),
	in("tc_dmma_pct", canonical.TensorDMMAActive, percents),
	in("tc_qmma_pct", canonical.TensorQMMAActive, percents),
}

// defaultColumns are KempnerPulse's nine.
const defaultColumns = "timestamp,gpu_id,model,gpu_util_pct,mem_used_mib,real_util_pct,sm_active_pct,tensor_active_pct,dram_active_pct"

// other returns a column that contains no whole reading.
func other(name string, cell func(dst []byte, r *row) []byte) Column {
	return Column{name, cell, canonical.NumFields}
}

// deviceLabels are the labels of a device in JSON, and their columns in the CSV.
var deviceLabels = []struct {
	name, column string
	of           func(*canonical.Device) string
}{
	{"hostname", "hostname", func(d *canonical.Device) string { return d.Hostname }},
	{"gpu", "", func(d *canonical.Device) string { return d.GPU }}, // the ids have it
	{"uuid", "uuid", func(d *canonical.Device) string { return d.UUID }},
	{"mig_instance", "mig_instance", func(d *canonical.Device) string { return d.Instance }},
	{"mig_profile", "mig_profile", func(d *canonical.Device) string { return d.Profile }},
	{"model", "model_name", func(d *canonical.Device) string { return d.Model }},
	{"device", "device", func(d *canonical.Device) string { return d.Name }},
	{"pci_bus_id", "pci_bus_id", func(d *canonical.Device) string { return d.PCIBusID }},
	{"driver_version", "driver_version", func(d *canonical.Device) string { return d.Driver }},
}

// named returns the column of a text about a device.
func named(name string, text func(d *canonical.Device) string) Column {
	return other(name, func(dst []byte, r *row) []byte { return appendText(dst, text(r.device)) })
}

// judged returns the column of a result that a board known only from its instances lacks.
func judged(name string, add func(dst []byte, v *canonical.Verdict) []byte) Column {
	return other(name, func(dst []byte, r *row) []byte {
		if r.device.Implied {
			return dst
		}
		return add(dst, r.verdict)
	})
}

// judgements are our columns for a device's state and workloads.
var judgements = []Column{
	judged("gpu_workload_class", func(dst []byte, v *canonical.Verdict) []byte { return append(dst, canonical.Classes[v.Class].Name...) }),
	judged("bottleneck", func(dst []byte, v *canonical.Verdict) []byte {
		return append(dst, canonical.Classes[v.Class].Bottleneck...)
	}),
	judged("gpu_real_utilization_coverage_ratio", func(dst []byte, v *canonical.Verdict) []byte { return appendNumber(dst, v.Coverage, -1) }),
	other("gpu_health_condition", appendConditions),
	other("workloads", func(dst []byte, r *row) []byte { return appendWorkloads(dst, allocationsOf(r.snapshot, r.index)) }),
}

// jobPrefix begins the names of the columns of the batch job, whose values are the same in
// all rows.
const jobPrefix = "job_"

// Columns returns all columns: KempnerPulse's 34, then ours: the device's identity, all
// readings that are not in the 34, in the units of our series, and one column for each of
// jobNames, the possible names of the variables in View.Job.
func Columns(jobNames []string) []Column {
	all := slices.Clone(compatible)
	for _, label := range deviceLabels {
		if label.column != "" {
			all = append(all, named(label.column, label.of))
		}
	}
	all = append(all, judgements...)
	for f := range canonical.NumFields {
		if !slices.ContainsFunc(compatible, func(c Column) bool { return c.field == f }) {
			all = append(all, in(Key(f), f, exact))
		}
	}
	for _, name := range jobNames {
		all = append(all, other(JobColumn(name), func(dst []byte, r *row) []byte {
			for i := range r.job {
				if r.job[i].Name == name {
					return appendText(dst, r.job[i].Value)
				}
			}
			return dst
		}))
	}
	return all
}

// JobColumn returns the name of the column of a variable of the batch job.
func JobColumn(name string) string { return jobPrefix + strings.TrimPrefix(name, jobPrefix) }

// ParseColumns parses a choice of columns: default, all (KempnerPulse's 34), all+ (these
// and ours), or names separated by commas, whose order it keeps.
func ParseColumns(spec string, jobNames []string) (chosen []Column, err error) {
	const remedy = "write default, all, all+, or names that kpulse-proxy --backend=replay --once --export=all+ prints"
	switch spec {
	case "all":
		return slices.Clone(compatible), nil
	case "all+":
		return Columns(jobNames), nil
	case "default":
		spec = defaultColumns
	}
	all, known := Columns(jobNames), []string{}
	for _, c := range all {
		known = append(known, c.Name)
	}
	for _, name := range strings.FieldsFunc(spec, func(r rune) bool { return r == ',' || r == ' ' }) {
		i := slices.Index(known, name)
		if i < 0 {
			if near := diag.Nearest(name, known); near != "" {
				return nil, fmt.Errorf("%q is not a column; did you mean %s?", name, near)
			}
			return nil, fmt.Errorf("%q is not a column; %s", name, remedy)
		}
		chosen = append(chosen, all[i])
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%q names no column; %s", spec, remedy)
	}
	return chosen, nil
}
