package config

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/compute"
)

// thresholds are the names of compute.Thresholds, but for its temperatures.
var thresholds = []setting[Config]{
	{"idle_utilization", fraction(func(t *compute.Thresholds) *float64 { return &t.IdleUtilization })},
	{"idle_engine", fraction(func(t *compute.Thresholds) *float64 { return &t.IdleEngine })},
	{"idle_dram", fraction(func(t *compute.Thresholds) *float64 { return &t.IdleDRAM })},
	{"transfer_memory_copy", fraction(func(t *compute.Thresholds) *float64 { return &t.TransferMemoryCopy })},
	{"transfer_pcie", amount("write bytes per second such as 1e9", func(t *compute.Thresholds) *float64 { return &t.TransferPCIe })},
	{"tensor_heavy_tensor", fraction(func(t *compute.Thresholds) *float64 { return &t.TensorHeavyTensor })},
	{"tensor_heavy_sm", fraction(func(t *compute.Thresholds) *float64 { return &t.TensorHeavySM })},
	{"tensor_tensor", fraction(func(t *compute.Thresholds) *float64 { return &t.TensorTensor })},
	{"tensor_sm", fraction(func(t *compute.Thresholds) *float64 { return &t.TensorSM })},
	{"fp64_fp64", fraction(func(t *compute.Thresholds) *float64 { return &t.FP64FP64 })},
	{"fp64_sm", fraction(func(t *compute.Thresholds) *float64 { return &t.FP64SM })},
	{"io_sm", fraction(func(t *compute.Thresholds) *float64 { return &t.IOSM })},
	{"memory_bound_dram", fraction(func(t *compute.Thresholds) *float64 { return &t.MemoryBoundDRAM })},
	{"memory_bound_sm", fraction(func(t *compute.Thresholds) *float64 { return &t.MemoryBoundSM })},
	{"compute_heavy_sm", fraction(func(t *compute.Thresholds) *float64 { return &t.ComputeHeavySM })},
	{"compute_active_sm", fraction(func(t *compute.Thresholds) *float64 { return &t.ComputeActiveSM })},
	{"memory_active_dram", fraction(func(t *compute.Thresholds) *float64 { return &t.MemoryActiveDRAM })},
	{"busy_engine", fraction(func(t *compute.Thresholds) *float64 { return &t.BusyEngine })},
	{"busy_sm", fraction(func(t *compute.Thresholds) *float64 { return &t.BusySM })},
	{"low_engine", fraction(func(t *compute.Thresholds) *float64 { return &t.LowEngine })},
	{"low_sm", fraction(func(t *compute.Thresholds) *float64 { return &t.LowSM })},
	{"low_dram", fraction(func(t *compute.Thresholds) *float64 { return &t.LowDRAM })},
	{"stalled_utilization", fraction(func(t *compute.Thresholds) *float64 { return &t.StalledUtilization })},
	{"stalled_readings", count("write a number of readings such as 3", func(t *compute.Thresholds) *int { return &t.StalledReadings })},
	{"stalled_span", duration("write a duration such as 10s", func(t *compute.Thresholds) *time.Duration { return &t.StalledSpan })},
	{"remapped_rows", amount("write a number of rows such as 0", func(t *compute.Thresholds) *float64 { return &t.RemappedRows })},
	{"rise_hold", duration("write a duration such as 10m", func(t *compute.Thresholds) *time.Duration { return &t.RiseHold })},
}

func readThresholds(d *document, e entry, c *Config) {
	readKeys(d, e, thresholds, c, "write thresholds such as idle_engine: 0.05")
}

// fraction reads a threshold in [0, 1].
func fraction(of func(*compute.Thresholds) *float64) func(*document, entry, *Config) {
	return amount("write a fraction such as 0.05 for 5 percent", of)
}

func amount(want string, of func(*compute.Thresholds) *float64) func(*document, entry, *Config) {
	return func(d *document, e entry, c *Config) {
		if v, ok := d.number(e, want); ok {
			d.judge(e, c, func(o *compute.Options) { *of(&o.Thresholds) = v })
		}
	}
}

func count(want string, of func(*compute.Thresholds) *int) func(*document, entry, *Config) {
	return func(d *document, e entry, c *Config) {
		if n, ok := d.count(e, want); ok {
			d.judge(e, c, func(o *compute.Options) { *of(&o.Thresholds) = n })
		}
	}
}

func duration(want string, of func(*compute.Thresholds) *time.Duration) func(*document, entry, *Config) {
	return func(d *document, e entry, c *Config) {
		if v, ok := d.duration(e, want); ok {
			d.judge(e, c, func(o *compute.Options) { *of(&o.Thresholds) = v })
		}
	}
}
