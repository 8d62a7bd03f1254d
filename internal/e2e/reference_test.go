package e2e

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute/computetest"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// What a body must come to: read by an implementation of its own, written from the
// design alone and slow and plain, and judged by the reference of compute. It has nothing
// in common with the program but the parser that checks both.

// setting is a configuration, as flags and as the reference needs it.
type setting struct {
	computetest.Options
	flags []string
}

// gpu is a board, or a MIG instance where instance is not empty.
type gpu struct{ uuid, instance string }

// readings are a row of canonical fields, NaN where absent.
type readings []float64

func noReadings() readings { return slices.Repeat(readings{math.NaN()}, int(canonical.NumFields)) }

// node is the readings of all GPUs of a body.
type node struct {
	gpus   map[gpu]readings
	models map[string]string // by uuid
	// implied boards have no row of their own.
	implied map[gpu]bool
	// xids are the counts of XIDs of the boards, by UUID.
	xids map[string][]canonical.XIDCount
}

// spellings are the names a field has had, and what its numbers mean. See the
// table of aliases; the lower-case ones are those of the exporter's 1.x.
var spellings = []struct {
	field, kind string
	names       string
}{
	{"sm", "fraction", "DCGM_FI_PROF_SM_ACTIVE DCGM_FI_PROF_SM_UTIL_RATIO dcgm_fi_prof_sm_active"},
	{"occupancy", "fraction", "DCGM_FI_PROF_SM_OCCUPANCY DCGM_FI_PROF_SM_OCCUPANCY_RATIO dcgm_fi_prof_sm_occupancy"},
	{"tensor", "fraction", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE DCGM_FI_PROF_TENSOR_UTIL_RATIO dcgm_fi_prof_pipe_tensor_active"},
	{"imma", "fraction", "DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE DCGM_FI_PROF_IMMA_UTIL_RATIO"},
	{"hmma", "fraction", "DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE DCGM_FI_PROF_HMMA_UTIL_RATIO"},
	{"dfma", "fraction", "DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE DCGM_FI_PROF_DFMA_UTIL_RATIO"},
	{"dram", "fraction", "DCGM_FI_PROF_DRAM_ACTIVE DCGM_FI_PROF_DRAM_UTIL_RATIO dcgm_fi_prof_dram_active"},
	{"fp64", "fraction", "DCGM_FI_PROF_PIPE_FP64_ACTIVE DCGM_FI_PROF_FP64_UTIL_RATIO dcgm_fi_prof_pipe_fp64_active"},
	{"fp32", "fraction", "DCGM_FI_PROF_PIPE_FP32_ACTIVE DCGM_FI_PROF_FP32_UTIL_RATIO dcgm_fi_prof_pipe_fp32_active"},
	{"fp16", "fraction", "DCGM_FI_PROF_PIPE_FP16_ACTIVE DCGM_FI_PROF_FP16_UTIL_RATIO dcgm_fi_prof_pipe_fp16_active"},
	{"int", "fraction", "DCGM_FI_PROF_PIPE_INT_ACTIVE DCGM_FI_PROF_INT_UTIL_RATIO"},
	{"engine", "fraction", "DCGM_FI_PROF_GR_ENGINE_ACTIVE DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO dcgm_fi_prof_gr_engine_active"},
	{"nvml", "percent", "DCGM_FI_DEV_GPU_UTIL dcgm_gpu_utilization"},
	{"nvml", "undecided", "DCGM_FI_DEV_GPU_UTIL_RATIO"},
	{"copy", "percent", "DCGM_FI_DEV_MEM_COPY_UTIL dcgm_mem_copy_utilization"},
	{"copy", "fraction", "DCGM_FI_DEV_MEMORY_UTIL_RATIO"},
	{"pcie_tx", "rate", "DCGM_FI_PROF_PCIE_TX_BYTES dcgm_fi_prof_pcie_tx_bytes"},
	{"pcie_rx", "rate", "DCGM_FI_PROF_PCIE_RX_BYTES dcgm_fi_prof_pcie_rx_bytes"},
	{"board_temperature", "celsius", "DCGM_FI_DEV_GPU_TEMP DCGM_FI_DEV_GPU_TEMP_CELSIUS dcgm_gpu_temp"},
	{"board_memory_temperature", "sensor", "DCGM_FI_DEV_MEMORY_TEMP DCGM_FI_DEV_MEMORY_TEMP_CELSIUS dcgm_memory_temp"},
	{"board_replays", "count", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER DCGM_FI_DEV_PCIE_REPLAY_TOTAL dcgm_pcie_replay_counter"},
	{"board_uncorrectable", "count", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL"},
	{"board_remap_failure", "count", "DCGM_FI_DEV_ROW_REMAP_FAILURE DCGM_FI_DEV_ROW_REMAP_FAILED"},
	{"board_remap_pending", "count", "DCGM_FI_DEV_ROW_REMAP_PENDING DCGM_FI_DEV_ROW_REMAP_PENDING"},
	{"board_xid", "count", "DCGM_FI_DEV_XID_ERRORS DCGM_FI_DEV_XID_ERROR dcgm_xid_errors"},
	{"board_double_bit", "count", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL DCGM_FI_DEV_ECC_DBE_VOL_TOTAL dcgm_ecc_dbe_volatile_total"},
	{"board_clock_bits", "count", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS DCGM_FI_DEV_CLOCKS_EVENT_REASONS"},
	{"board_link_crc", "count", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL dcgm_nvlink_flit_crc_error_count_total"},
	{"board_link_replay", "count", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL dcgm_nvlink_replay_error_count_total"},
	{"board_link_errors", "count", "DCGM_FI_DEV_NVLINK_COUNT_RX_ERRORS DCGM_FI_DEV_NVLINK_RX_ERROR_TOTAL"},
	{"board_link_failures", "count", "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS DCGM_FI_DEV_NVLINK_RECOVERY_FAILED_TOTAL"},
	{"board_margin", "celsius", "DCGM_FI_DEV_GPU_TEMP_LIMIT DCGM_FI_DEV_GPU_TEMP_MARGIN_CELSIUS"},
	{"board_recovery", "count", "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION DCGM_FI_DEV_GPU_RECOVERY_ACTION"},
	{"board_pages_pending", "count", "DCGM_FI_DEV_RETIRED_PENDING DCGM_FI_DEV_PAGE_RETIRED_PENDING dcgm_retired_pages_pending"},
	{"board_sram", "count", "DCGM_FI_DEV_THRESHOLD_SRM DCGM_FI_DEV_SRAM_EXCEEDED"},
	{"board_unrepairable", "count", "DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG DCGM_FI_DEV_MEMORY_UNREPAIRABLE"},
	{"board_spent_banks", "count", "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE DCGM_FI_DEV_BANK_REMAP_AVAIL_NONE"},
	{"board_fabric", "count", "DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY"},
	{"board_fabric_error", "count", "DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE DCGM_FI_DEV_FABRIC_MANAGER_ERROR"},
}

// fields of the spellings; those of a board are the board's, whichever row has them.
var fields = map[string]canonical.Field{
	"sm":                       canonical.SMActive,
	"occupancy":                canonical.SMOccupancy,
	"tensor":                   canonical.TensorActive,
	"imma":                     canonical.TensorIMMAActive,
	"hmma":                     canonical.TensorHMMAActive,
	"dfma":                     canonical.TensorDFMAActive,
	"dram":                     canonical.DRAMActive,
	"fp64":                     canonical.FP64Active,
	"fp32":                     canonical.FP32Active,
	"fp16":                     canonical.FP16Active,
	"int":                      canonical.IntActive,
	"engine":                   canonical.GraphicsEngineActive,
	"nvml":                     canonical.NVMLUtilization,
	"copy":                     canonical.MemoryCopyUtilization,
	"pcie_tx":                  canonical.PCIeTransmit,
	"pcie_rx":                  canonical.PCIeReceive,
	"board_temperature":        canonical.Temperature,
	"board_memory_temperature": canonical.MemoryTemperature,
	"board_replays":            canonical.PCIeReplays,
	"board_uncorrectable":      canonical.RemappedRowsUncorrectable,
	"board_remap_failure":      canonical.RowRemapFailure,
	"board_remap_pending":      canonical.RowRemapPending,
	"board_xid":                canonical.XIDLast,
	"board_double_bit":         canonical.ECCDoubleBitVolatile,
	"board_clock_bits":         canonical.ClockEvents,
	"board_link_crc":           canonical.NVLinkCRCFlitErrors,
	"board_link_replay":        canonical.NVLinkReplayErrors,
	"board_link_errors":        canonical.NVLinkReceiveErrors,
	"board_link_failures":      canonical.NVLinkRecoveriesFailed,
	"board_margin":             canonical.TemperatureMargin,
	"board_recovery":           canonical.RecoveryAction,
	"board_pages_pending":      canonical.RetiredPagesPending,
	"board_sram":               canonical.SRAMThresholdExceeded,
	"board_unrepairable":       canonical.MemoryUnrepairable,
	"board_spent_banks":        canonical.MemoryBanksNone,
	"board_fabric":             canonical.FabricHealth,
	"board_fabric_error":       canonical.FabricError,
}

// unescapedJob is the last label of a line in the captures that a parser rejects; it costs
// the line no more than this label.
var unescapedJob = regexp.MustCompile(`,hpc_job="[^"\n]*"[^"\n]*"}`)

// read gathers the readings of the rows of GPUs.
func read(body []byte) node {
	n := node{gpus: map[gpu]readings{}, models: map[string]string{}, implied: map[gpu]bool{}, xids: map[string][]canonical.XIDCount{}}
	entries, _ := split(unescapedJob.ReplaceAll(body, []byte("}")))
	unit := unitOfUtilRatio(entries)
	seen := map[string]bool{}
	own := map[gpu]readings{}    // board readings by the row that gave them
	busiest := map[gpu]float64{} // utilization of the busiest workload's row
	for _, e := range entries {
		n.countXIDs(e)
		id, ok := e.gpu()
		if !ok || seen[e.labels.String()] {
			continue
		}
		seen[e.labels.String()] = true
		if n.gpus[id] == nil {
			n.gpus[id], own[id] = noReadings(), noReadings()
		}
		if model := firstOf(e.labels, "modelName", "model_name"); n.models[id.uuid] == "" {
			n.models[id.uuid] = model
		}
		field, value, ok := meaning(e, unit)
		if ok && field == "nvml" && firstOf(e.labels, "pod", "exported_pod", "pod_name", "hpc_job") != "" {
			if most, known := busiest[id]; !known || !(value <= most) {
				busiest[id] = value
			}
			continue
		}
		target := n.gpus[id]
		if strings.HasPrefix(field, "board_") {
			target = own[id]
		}
		if f := fields[field]; ok && math.IsNaN(target[f]) {
			target[f] = value
		}
	}
	for id, value := range busiest { // unless the device has a row of its own
		if of := n.gpus[id]; math.IsNaN(of[canonical.NVMLUtilization]) {
			of[canonical.NVMLUtilization] = value
		}
	}
	n.raiseBoards(own)
	return n
}

// raiseBoards gives each board the highest of the board readings that its rows
// repeat, and of the bits those that any has.
func (n *node) raiseBoards(own map[gpu]readings) {
	for id, rows := range own {
		board := gpu{uuid: id.uuid}
		if n.gpus[board] == nil {
			n.gpus[board], n.implied[board] = noReadings(), true
		}
		for f, value := range rows {
			highest := n.gpus[board][f]
			switch {
			case math.IsNaN(value):
			case canonical.Field(f) == canonical.ClockEvents && !math.IsNaN(highest):
				n.gpus[board][f] = float64(int64(highest) | int64(value))
			case !(value <= highest):
				n.gpus[board][f] = value
			}
		}
	}
}

// gpu returns the GPU whose row e is, if it is one's.
func (e *entry) gpu() (gpu, bool) {
	if e.kind != textparse.EntrySeries || strings.HasPrefix(e.name, "kpulse_") || strings.HasPrefix(e.name, "DCGM_EXP_") {
		return gpu{}, false
	}
	for _, part := range []string{"nvlink", "nvswitch", "cpu", "cpucore", "GPU_CI_ID"} {
		if e.labels.Has(part) {
			return gpu{}, false
		}
	}
	id := gpu{firstOf(e.labels, "UUID", "uuid", "gpu_uuid"), e.labels.Get("GPU_I_ID")}
	return id, id.uuid != "" && e.labels.Get("gpu") != ""
}

// countXIDs takes in a row that the exporter counts XIDs in, of whatever codes.
func (n *node) countXIDs(e entry) {
	if e.kind == textparse.EntrySeries && strings.HasPrefix(e.name, "DCGM_EXP_XID_ERRORS_") {
		uuid := firstOf(e.labels, "UUID", "uuid", "gpu_uuid")
		code, _ := strconv.Atoi(e.labels.Get("xid"))
		n.xids[uuid] = append(n.xids[uuid], canonical.XIDCount{Code: uint32(code), Count: uint64(e.value)})
	}
}

func firstOf(ls labels.Labels, names ...string) string {
	for _, name := range names {
		if v := ls.Get(name); v != "" {
			return v
		}
	}
	return ""
}

// unitOfUtilRatio returns the unit of DCGM_FI_DEV_GPU_UTIL_RATIO in this body:
// DCGM 4.6 gave percents that name, 4.7 fractions.
func unitOfUtilRatio(entries []entry) string {
	unit := "undecided"
	for _, e := range entries {
		about := e.name == "DCGM_FI_DEV_GPU_UTIL_RATIO"
		switch {
		case e.kind == textparse.EntryHelp && about && strings.Contains(e.help, "in %"):
			return "percent"
		case e.kind == textparse.EntrySeries && about && e.value > 1 && e.value <= 100:
			return "percent"
		case e.kind == textparse.EntryHelp && about && strings.Contains(strings.ToLower(e.help), "ratio"),
			e.kind == textparse.EntrySeries && about && e.value > 0 && e.value < 1,
			e.kind == textparse.EntrySeries && e.name == "DCGM_FI_DEV_MEMORY_UTIL_RATIO",
			e.kind == textparse.EntrySeries && strings.HasPrefix(e.name, "DCGM_FI_DEV_FB_") && strings.HasSuffix(e.name, "_BYTES"):
			unit = "fraction"
		}
	}
	return unit
}

// meaning turns a sample into a reading; ok is false where there is none.
func meaning(e entry, unitOfUtilRatio string) (field string, v float64, ok bool) {
	kind := ""
	for _, s := range spellings {
		for name := range strings.FieldsSeq(s.names) {
			if name == e.name {
				field, kind = s.field, s.kind
			}
		}
	}
	if kind == "undecided" {
		kind = unitOfUtilRatio
	}
	v = e.value
	if math.IsNaN(v) || math.IsInf(v, 0) || v >= 9.2e18 || v < 0 && kind != "celsius" && kind != "sensor" {
		return field, 0, false
	}
	switch kind {
	case "undecided":
		return field, v, v == 0
	case "fraction":
		return field, min(v, 1), v <= 1.1
	case "percent":
		return field, v / 100, v <= 100
	case "celsius":
		return field, v, v <= 200
	case "sensor": // that not every board has; then the host engine writes 0
		return field, v, v <= 200 && v != 0
	case "rate":
		blank := v >= 140737488355328 && v < 140737488355344
		return field, v, !blank
	case "count":
		blank := v >= 2147483632 && v <= 2147483635
		return field, v, !blank
	}
	return field, 0, false
}

// expect returns the series that a first reading of body must give, by family,
// GPU and labels of their own.
func expect(body []byte, s setting) map[string]float64 {
	want := map[string]float64{}
	n := read(body)
	for id, r := range n.gpus {
		if id.instance == "" {
			health(want, id, computetest.Reading{Row: r, XIDs: n.xids[id.uuid]}, n.models[id.uuid], s)
		}
		if !n.implied[id] {
			activity(want, id, r, s)
		}
	}
	return want
}

// key names a series of a GPU; labels are sorted by name.
func key(family string, id gpu, labels string) string {
	return fmt.Sprintf("%s{%s/%s %s}", family, id.uuid, id.instance, labels)
}

// health adds what is known of a board's health.
func health(want map[string]float64, id gpu, r computetest.Reading, model string, s setting) {
	state, found := computetest.Health([]computetest.Reading{r}, model, false, s.Options)
	for i, f := range found {
		if f != "absent" {
			for state := range strings.FieldsSeq(s.States[i]) {
				labels := fmt.Sprintf("condition=%q state=%q", canonical.Condition(i), state)
				want[key("gpu_health_condition", id, labels)] = map[bool]float64{true: 1}[f == state]
			}
		}
	}
	for _, one := range []string{"ok", "hot", "warn", "crit", "unknown"} {
		want[key("gpu_health", id, fmt.Sprintf("state=%q", one))] = 0
	}
	want[key("gpu_health", id, fmt.Sprintf("state=%q", state))] = 1
}

// bottlenecks of the classes.
var bottlenecks = map[string]string{
	"idle": "idle", "tensor_heavy_compute": "compute", "tensor_compute": "compute", "fp64_hpc_compute": "compute",
	"io_or_data_loading": "io", "memory_bound": "memory", "compute_heavy": "compute", "compute_active": "compute",
	"memory_active": "memory", "busy_low_sm_use": "mixed", "low_utilization": "mixed", "mixed_or_moderate": "mixed",
	"unknown": "unknown",
}

// activity adds utilization, coverage and class of a GPU that has rows.
func activity(want map[string]float64, id gpu, r readings, s setting) {
	util, coverage, class := computetest.Activity(r, s.Options)
	if !math.IsNaN(util) {
		want[key("gpu_real_utilization_ratio", id, "")] = util
	}
	want[key("gpu_real_utilization_coverage_ratio", id, "")] = coverage
	for one, bottleneck := range bottlenecks {
		want[key("gpu_workload_class", id, fmt.Sprintf("bottleneck=%q class=%q", bottleneck, one))] = 0
	}
	want[key("gpu_workload_class", id, fmt.Sprintf("bottleneck=%q class=%q", bottlenecks[class], class))] = 1
}
