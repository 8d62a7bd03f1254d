package compute

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Thresholds are all values that the cascade and health compare readings with.
// Activities and utilizations are fractions in [0, 1], rates are bytes per
// second, temperatures degrees Celsius. Start from DefaultThresholds. Tags are keys of
// the config file; values tagged "-" have another form there.
type Thresholds struct {
	// Rule idle: all three below these, and no transfer.
	IdleUtilization float64 `yaml:"idle_utilization"`
	IdleEngine      float64 `yaml:"idle_engine"`
	IdleDRAM        float64 `yaml:"idle_dram"`
	// What counts as a transfer: memory copies, or PCIe in either direction, at
	// or above these.
	TransferMemoryCopy float64 `yaml:"transfer_memory_copy"`
	TransferPCIe       float64 `yaml:"transfer_pcie"`
	// Rule tensor_heavy_compute: both at or above.
	TensorHeavyTensor float64 `yaml:"tensor_heavy_tensor"`
	TensorHeavySM     float64 `yaml:"tensor_heavy_sm"`
	// Rule tensor_compute: both at or above.
	TensorTensor float64 `yaml:"tensor_tensor"`
	TensorSM     float64 `yaml:"tensor_sm"`
	// Rule fp64_hpc_compute: both at or above.
	FP64FP64 float64 `yaml:"fp64_fp64"`
	FP64SM   float64 `yaml:"fp64_sm"`
	// Rule io_or_data_loading: a transfer, and SM below.
	IOSM float64 `yaml:"io_sm"`
	// Rule memory_bound: DRAM at or above, SM below.
	MemoryBoundDRAM float64 `yaml:"memory_bound_dram"`
	MemoryBoundSM   float64 `yaml:"memory_bound_sm"`
	// Rules compute_heavy and compute_active: SM at or above.
	ComputeHeavySM  float64 `yaml:"compute_heavy_sm"`
	ComputeActiveSM float64 `yaml:"compute_active_sm"`
	// Rule memory_active: DRAM at or above.
	MemoryActiveDRAM float64 `yaml:"memory_active_dram"`
	// Rule busy_low_sm_use: engine at or above, SM below.
	BusyEngine float64 `yaml:"busy_engine"`
	BusySM     float64 `yaml:"busy_sm"`
	// Rule low_utilization: all three below.
	LowEngine float64 `yaml:"low_engine"`
	LowSM     float64 `yaml:"low_sm"`
	LowDRAM   float64 `yaml:"low_dram"`

	// Profiling is stalled if it reads 0 while NVML utilization is at or above.
	StalledUtilization float64 `yaml:"stalled_utilization"`
	// Its condition is raised after this many such readings in a row, if they span at least this
	// time.
	StalledReadings int           `yaml:"stalled_readings"`
	StalledSpan     time.Duration `yaml:"stalled_span"`

	// Conditions that come and go by themselves (clock events, links up, the fabric) are raised
	// after this many readings in a row.
	SteadyReadings int `yaml:"steady_readings"`
	// LinkTraining is how long NVLinks may take to come up after a board restarted.
	LinkTraining time.Duration `yaml:"link_training"`

	// Uncorrectable remapped rows from this number on are critical.
	RemappedRows float64 `yaml:"remapped_rows"`
	// More PCIe replays than this within a minute are a warning.
	PCIeReplays float64 `yaml:"pcie_replays"`
	// RiseHold is how long a rise of an error counter, or a change of the last
	// XID, keeps its condition raised.
	RiseHold time.Duration `yaml:"rise_hold"`
	// Temperatures from which a model is hot; the first row that matches counts.
	Temperatures []ModelTemperature `yaml:"-"`
	// Temperature from which boards of all other models are hot.
	Temperature float64 `yaml:"-"`
}

// ModelTemperature is the temperature in degrees Celsius at or above which boards are hot
// if their model name contains Model, such as A100 in NVIDIA A100-SXM4-40GB.
type ModelTemperature struct {
	Model   string
	Celsius float64
}

// DefaultThresholds returns the values of KempnerPulse, so that both programs
// agree on the same readings. "NVIDIA guidance" is its profiling metrics
// guide; "KempnerPulse's partition" marks a value that KempnerPulse chose
// because the vendor names none.
func DefaultThresholds() Thresholds {
	return Thresholds{
		IdleUtilization: 0.05, // KempnerPulse's partition
		IdleEngine:      0.05, // KempnerPulse's partition
		IdleDRAM:        0.05, // KempnerPulse's partition

		TransferMemoryCopy: 0.40, // KempnerPulse's partition
		TransferPCIe:       1e9,  // KempnerPulse's partition

		TensorHeavyTensor: 0.50, // KempnerPulse's partition
		TensorHeavySM:     0.60, // KempnerPulse's partition
		TensorTensor:      0.15, // KempnerPulse's partition
		TensorSM:          0.40, // KempnerPulse's partition
		FP64FP64:          0.20, // KempnerPulse's partition
		FP64SM:            0.50, // KempnerPulse's partition
		IOSM:              0.30, // KempnerPulse's partition
		MemoryBoundDRAM:   0.50, // KempnerPulse's partition; the practical peak is about 0.8
		MemoryBoundSM:     0.50, // NVIDIA guidance: below, ineffective use is likely
		ComputeHeavySM:    0.80, // NVIDIA guidance: necessary, not sufficient, for effective use
		ComputeActiveSM:   0.50, // NVIDIA guidance: below, ineffective use is likely
		MemoryActiveDRAM:  0.40, // KempnerPulse's partition
		BusyEngine:        0.40, // KempnerPulse's partition
		BusySM:            0.25, // KempnerPulse's partition
		LowEngine:         0.15, // KempnerPulse's partition
		LowSM:             0.15, // KempnerPulse's partition
		LowDRAM:           0.15, // KempnerPulse's partition

		// Ours: a device that runs kernels for a fifth of the time cannot leave every counter at
		// exactly 0.
		StalledUtilization: 0.20,
		StalledReadings:    3,                // ours: one or two may be the edge of a kernel that just began
		StalledSpan:        10 * time.Second, // ours: the counters themselves may be some seconds old

		SteadyReadings: 3,                // ours: a power brake flickers on half of all nodes now and then (NVSentinel #1668)
		LinkTraining:   10 * time.Minute, // ours: longer than a server takes to start; its links are down meanwhile (NVSentinel #1701)

		RemappedRows: 512,              // the limit of DCGM's health check
		PCIeReplays:  8,                // DCGM's health check: 8 a minute
		RiseHold:     10 * time.Minute, // ours: longer than any scrape interval, short enough to see the next rise
		// KempnerPulse's partition.
		Temperatures: []ModelTemperature{
			{"A100", 93},
			{"H100", 95},
			{"H200", 95},
			{"RTX 6000", 92},
			{"MI300", 95}, // where its memory slows down, in AMD's documents of amd-smi; its hot spot does at 100
			{"MI35", 100}, // where the hot spot of an MI350X does, in the same documents; its memory does at 115
		},
		Temperature: 93, // KempnerPulse's partition
	}
}

// warning returns the temperature from which a board of that model is hot.
func (t *Thresholds) warning(model string) float64 {
	i := slices.IndexFunc(t.Temperatures, func(m ModelTemperature) bool {
		return strings.Contains(model, m.Model)
	})
	if i < 0 {
		return t.Temperature
	}
	return t.Temperatures[i].Celsius
}

// hottest is the highest temperature a reading can have (DESIGN's range check):
// a threshold above it would never raise anything.
const hottest = 200

// check returns the thresholds that are out of range.
func (t *Thresholds) check() (wrong []*OptionError) {
	figures := reflect.ValueOf(t).Elem()
	for i := range figures.NumField() {
		key, kind := figures.Type().Field(i).Tag.Get("yaml"), figures.Field(i).Kind()
		switch {
		case key == "-" || kind != reflect.Float64:
		case key == "transfer_pcie" || key == "remapped_rows" || key == "pcie_replays":
			if v := figures.Field(i).Float(); !(v >= 0 && v <= math.MaxFloat64) {
				wrong = append(wrong, Reject("thresholds."+key, "%v is out of range: make %s a finite number of at least 0", v, key))
			}
		default:
			if v := figures.Field(i).Float(); !(v >= 0 && v <= 1) {
				wrong = append(wrong, Reject("thresholds."+key, "%v is not a fraction: make %s one from 0 to 1, such as 0.05 for 5 percent", v, key))
			}
		}
	}
	if t.RiseHold <= 0 {
		wrong = append(wrong, Reject("thresholds.rise_hold", "%v is too short: make rise_hold a positive duration, such as 10m", t.RiseHold))
	}
	if t.StalledReadings < 1 {
		wrong = append(wrong, Reject("thresholds.stalled_readings", "%d is too few: make stalled_readings a number of at least 1, such as 3", t.StalledReadings))
	}
	if t.SteadyReadings < 1 {
		wrong = append(wrong, Reject("thresholds.steady_readings", "%d is too few: make steady_readings a number of at least 1, such as 3", t.SteadyReadings))
	}
	if t.LinkTraining < 0 {
		wrong = append(wrong, Reject("thresholds.link_training", "%v is too short: make link_training a duration of at least 0, such as 10m", t.LinkTraining))
	}
	if t.StalledSpan < 0 {
		wrong = append(wrong, Reject("thresholds.stalled_span", "%v is too short: make stalled_span a duration of at least 0, such as 10s", t.StalledSpan))
	}
	for _, m := range t.Temperatures {
		if m.Model == "" {
			wrong = append(wrong, Reject("temperatures.", "a warning temperature of %v has no model: name a part of the model's name, such as H100", m.Celsius))
			continue
		}
		wrong = append(wrong, checkTemperature(m.Model, m.Model, m.Celsius)...)
	}
	return append(wrong, checkTemperature("other", "other models", t.Temperature)...)
}

func checkTemperature(key, models string, celsius float64) []*OptionError {
	if celsius > 0 && celsius <= hottest {
		return nil
	}
	return []*OptionError{Reject("temperatures."+key, "warning temperature of %s is %v: make it above 0 and at most %d degrees Celsius", models, celsius, hottest)}
}
