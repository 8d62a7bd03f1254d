package e2e

import (
	"fmt"
	"math"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// A second implementation of what we conclude from an exposition, written from
// the design alone: slow and plain, in percent, and with nothing in common with
// the program but the parser that judges both.

// setting is a configuration of the judgement, as flags and as the reference
// needs it.
type setting struct {
	flags                []string
	sm, tensor, dram, gr float64 // weights, of any sum
	missingIsZero        bool
	minCoverage          float64 // share
}

// gpu is a board, or a MIG instance where instance is not empty.
type gpu struct{ uuid, instance string }

// readings of a GPU in percent, °C, bytes per second and counts; what is absent
// is not in the map.
type readings map[string]float64

func (r readings) has(field string) bool { _, ok := r[field]; return ok }

// node is what a body says about all of its GPUs.
type node struct {
	gpus   map[gpu]readings
	models map[string]string // by uuid
	// implied boards have no row of their own.
	implied map[gpu]bool
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
}

// read gathers what the rows of GPUs say.
func read(body []byte) node {
	n := node{gpus: map[gpu]readings{}, models: map[string]string{}, implied: map[gpu]bool{}}
	entries, _ := split(body)
	unit := unitOfUtilRatio(entries)
	seen := map[string]bool{}
	own := map[gpu]readings{} // board readings by the row that gave them
	for _, e := range entries {
		id, ok := e.gpu()
		if !ok || seen[e.labels.String()] {
			continue
		}
		seen[e.labels.String()] = true
		if n.gpus[id] == nil {
			n.gpus[id], own[id] = readings{}, readings{}
		}
		if model := firstOf(e.labels, "modelName", "model_name"); n.models[id.uuid] == "" {
			n.models[id.uuid] = model
		}
		field, value, ok := meaning(e, unit)
		target := n.gpus[id]
		if strings.HasPrefix(field, "board_") {
			target = own[id]
		}
		if ok && !target.has(field) {
			target[field] = value
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
			n.gpus[board], n.implied[board] = readings{}, true
		}
		for field, value := range rows {
			if field == "board_clock_bits" {
				value = float64(int64(n.gpus[board][field]) | int64(value))
			}
			if !n.gpus[board].has(field) || value > n.gpus[board][field] {
				n.gpus[board][field] = value
			}
		}
	}
}

// gpu tells whose row e is, if it is a GPU's.
func (e *entry) gpu() (gpu, bool) {
	if e.kind != textparse.EntrySeries || strings.HasPrefix(e.name, "kpulse_") {
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

func firstOf(ls labels.Labels, names ...string) string {
	for _, name := range names {
		if v := ls.Get(name); v != "" {
			return v
		}
	}
	return ""
}

// unitOfUtilRatio tells what DCGM_FI_DEV_GPU_UTIL_RATIO counts in this body:
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
			e.kind == textparse.EntrySeries && strings.HasSuffix(e.name, "_HERTZ"),
			e.kind == textparse.EntrySeries && strings.HasPrefix(e.name, "DCGM_FI_DEV_FB_") && strings.HasSuffix(e.name, "_BYTES"),
			e.labels.Has("DCGM_FI_SYSTEM_DRIVER_VERSION"):
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
	case "fraction":
		return field, min(v, 1) * 100, v <= 1.1
	case "percent":
		return field, v, v <= 100
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
			health(want, id, r, n.models[id.uuid])
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
func health(want map[string]float64, id gpu, r readings, model string) {
	hot := 93.0
	if strings.Contains(model, "H100") || strings.Contains(model, "H200") {
		hot = 95
	}
	if strings.Contains(model, "RTX 6000") {
		hot = 92
	}
	state, rank := "unknown", map[string]int{"unknown": 0, "ok": 1, "hot": 2, "warn": 3, "crit": 4}
	reach := func(to string) {
		if rank[to] > rank[state] {
			state = to
		}
	}
	raise := func(condition, to string, read, holds bool) {
		if !read {
			return
		}
		value := 0.0
		if holds {
			value = 1
			reach(to)
		}
		want[key("gpu_health_condition", id, fmt.Sprintf("condition=%q state=%q", condition, to))] = value
	}
	for _, basic := range []string{"remap_failure", "uncorrectable", "replays", "temperature", "memory_temperature"} {
		if r.has("board_" + basic) {
			reach("ok")
		}
	}
	fatal := map[float64]bool{48: true, 64: true, 74: true, 79: true, 95: true, 119: true, 120: true, 140: true}
	bits := int64(r["board_clock_bits"])
	profiled := false
	for _, f := range []string{"sm", "occupancy", "tensor", "imma", "hmma", "dfma", "dram", "fp64", "fp32", "fp16", "int", "engine"} {
		profiled = profiled || r.has(f)
	}
	raise("row_remap_failure", "crit", r.has("board_remap_failure"), r["board_remap_failure"] > 0)
	raise("uncorrectable_remapped_rows", "crit", r.has("board_uncorrectable"), r["board_uncorrectable"] > 0)
	raise("gpu_temperature", "hot", r.has("board_temperature"), r["board_temperature"] >= hot)
	raise("memory_temperature", "hot", r.has("board_memory_temperature"), r["board_memory_temperature"] >= hot)
	raise("xid_fatal", "crit", r.has("board_xid"), fatal[r["board_xid"]])
	raise("row_remap_pending", "warn", r.has("board_remap_pending"), r["board_remap_pending"] > 0)
	raise("thermal_slowdown", "hot", r.has("board_clock_bits"), bits&(32|64) != 0)
	raise("power_brake", "warn", r.has("board_clock_bits"), bits&128 != 0)
	// A first reading rises over none, changes nothing and is not yet the third.
	raise("pcie_replay", "warn", r.has("board_replays"), false)
	raise("xid_recent", "warn", r.has("board_xid"), false)
	raise("ecc_double_bit", "crit", r.has("board_double_bit"), false)
	raise("nvlink_errors", "warn", r.has("board_link_crc") || r.has("board_link_replay"), false)
	raise("profiling_stalled", "warn", r.has("nvml") && profiled, false)
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
	util, known, coverage := utilization(r, s)
	class := "unknown"
	if known {
		class = classify(r, util, s.missingIsZero)
		want[key("gpu_real_utilization_ratio", id, "")] = util / 100
	}
	want[key("gpu_real_utilization_coverage_ratio", id, "")] = coverage
	for one, bottleneck := range bottlenecks {
		value := 0.0
		if one == class {
			value = 1
		}
		want[key("gpu_workload_class", id, fmt.Sprintf("bottleneck=%q class=%q", bottleneck, one))] = value
	}
}

// utilization returns the score in percent, whether it is known, and the share
// of the weight that was read.
func utilization(r readings, s setting) (util float64, known bool, coverage float64) {
	var sum, present float64
	inputs := 0
	add := func(field string, weight float64) {
		if r.has(field) {
			sum += r[field] * weight
			present += weight
			inputs++
		}
	}
	add("sm", s.sm)
	add("tensor", s.tensor)
	add("dram", s.dram)
	if r.has("engine") {
		add("engine", s.gr)
	} else {
		add("nvml", s.gr)
	}
	total := s.sm + s.tensor + s.dram + s.gr
	coverage = present / total
	switch {
	case stalled(r):
		return 0, false, coverage
	case s.missingIsZero:
		return min(sum/total, 100), inputs > 0, coverage
	case present == 0 || coverage < s.minCoverage-1e-9:
		return 0, false, coverage
	}
	return min(sum/present, 100), true, coverage
}

// stalled tells whether the profiling readings contradict NVML.
func stalled(r readings) bool {
	fields := 0
	for _, field := range []string{"sm", "occupancy", "tensor", "imma", "hmma", "dfma", "dram", "fp64", "fp32", "fp16", "int", "engine"} {
		if r[field] > 0 {
			return false
		}
		if r.has(field) {
			fields++
		}
	}
	return fields > 0 && r["nvml"] >= 20
}

// classify walks the cascade. Readings that are missing are 0 in r, so that they
// are no evidence for anything; but SM lies between low and high.
func classify(r readings, util float64, missingIsZero bool) string {
	low, high := r["sm"], r["sm"]
	if !r.has("sm") && !missingIsZero {
		low = max(r["occupancy"], r["tensor"], r["imma"], r["hmma"], r["dfma"], r["fp64"], r["fp32"], r["fp16"])
		high = 100
		if r.has("engine") {
			high = r["engine"]
		}
		high = max(high, low)
	}
	gr := r["engine"]
	if !r.has("engine") {
		gr = r["nvml"]
	}
	tensor, dram, fp64 := r["tensor"], r["dram"], r["fp64"]
	io := r["copy"] >= 40 || r["pcie_tx"] >= 1e9 || r["pcie_rx"] >= 1e9

	// Each rule in two steps: does it hold if SM helps it, and does it without
	// any help?
	undecided := func(surely bool, class string) string {
		if surely {
			return class
		}
		return "unknown"
	}
	if util < 5-1e-9 && gr < 5 && dram < 5 && !io {
		return "idle"
	}
	if tensor >= 50 && high >= 60 {
		return undecided(low >= 60, "tensor_heavy_compute")
	}
	if tensor >= 15 && high >= 40 {
		return undecided(low >= 40, "tensor_compute")
	}
	if fp64 >= 20 && high >= 50 {
		return undecided(low >= 50, "fp64_hpc_compute")
	}
	if io && low < 30 {
		return undecided(high < 30, "io_or_data_loading")
	}
	if dram >= 50 && low < 50 {
		return undecided(high < 50, "memory_bound")
	}
	if high >= 80 {
		return undecided(low >= 80, "compute_heavy")
	}
	if high >= 50 {
		return undecided(low >= 50, "compute_active")
	}
	if dram >= 40 {
		return "memory_active"
	}
	if gr >= 40 && low < 25 {
		return undecided(high < 25, "busy_low_sm_use")
	}
	if gr < 15 && dram < 15 && low < 15 {
		return undecided(high < 15, "low_utilization")
	}
	return "mixed_or_moderate"
}
