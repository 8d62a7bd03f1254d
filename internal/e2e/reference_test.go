package e2e

import (
	"maps"
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

// The reference: an independent, slow and plain implementation of the design reads a body, and
// compute's reference judges it. It shares nothing with the program but the parser that checks
// both.

// setting is a configuration, as flags and for the reference.
type setting struct {
	computetest.Options
	flags []string
}

// gpu is a board, or a MIG instance where instance is not empty.
type gpu struct{ uuid, instance string }

// readings is a row of canonical fields, NaN if absent.
type readings []float64

func noReadings() readings { return slices.Repeat(readings{math.NaN()}, int(canonical.NumFields)) }

// workload is the holder of a GPU; empty for a free one.
type workload struct{ namespace, pod, container, job string }

// unit is a GPU in a body.
type unit struct {
	readings
	own     readings // board readings in the rows of this GPU
	implied bool     // a board without a row of its own
	model   string
	labels  map[string]string // of its series
	about   map[string]string // of gpu_info, beyond these
	holders []workload        // in row order
	uses    map[workload]use
}

// use is how much a workload uses of a GPU, as a fraction and in bytes; NaN if unknown.
type use struct{ utilization, memory float64 }

// node is the GPUs of a body.
type node struct {
	gpus map[gpu]*unit
	// xids are the boards' counts of XIDs, by UUID.
	xids map[string][]canonical.XIDCount
	// links are the numbers of active links, by the UUID of their board.
	links map[string]float64
}

// unescapedJob matches the last label of a line in the captures that a parser rejects; only this
// label is lost.
var unescapedJob = regexp.MustCompile(`,hpc_job="[^"\n]*"[^"\n]*"}`)

// read returns the GPUs of a body with their readings.
func read(body []byte) node {
	n := node{gpus: map[gpu]*unit{}, xids: map[string][]canonical.XIDCount{}, links: map[string]float64{}}
	entries, _ := split(unescapedJob.ReplaceAll(body, []byte("}")))
	var rows []entry
	seen := map[string]bool{}
	for _, e := range entries {
		id, ok := e.gpu()
		if series := e.labels.String(); seen[series] || e.kind != textparse.EntrySeries {
			continue
		} else {
			seen[series] = true
		}
		n.countXIDs(e)
		n.countLinks(e)
		if !ok {
			continue
		}
		rows = append(rows, e)
		if n.gpus[id] == nil {
			n.gpus[id] = &unit{readings: noReadings(), own: noReadings(), labels: map[string]string{}, about: map[string]string{}, uses: map[workload]use{}}
		}
		n.gpus[id].describe(e)
	}
	n.fill(rows, unitOfUtilRatio(entries))
	n.raiseBoards()
	for _, u := range n.gpus {
		if u.blank() {
			u.readings = noReadings()
		}
		u.derive()
	}
	return n
}

// blank reports whether a GPU's rows have no sample: at least two of temperature, clocks, power and energy are
// given, and all of these are 0.
func (u *unit) blank() bool {
	given, zero := 0, 0
	for _, f := range []canonical.Field{canonical.Temperature, canonical.SMClock, canonical.MemoryClock, canonical.Power, canonical.Energy} {
		if v := u.readings[f]; !math.IsNaN(v) {
			given++
			zero += map[bool]int{true: 1}[v == 0]
		}
	}
	return given >= 2 && zero == given
}

// describe adds a row's identity and information of the GPU.
func (u *unit) describe(e entry) {
	first := func(into map[string]string, name string, from ...string) {
		if into[name] == "" {
			into[name] = firstOf(e.labels, from...)
		}
	}
	first(u.labels, "hostname", "Hostname", "hostname")
	first(u.labels, "gpu", "gpu")
	first(u.labels, "uuid", "UUID", "uuid", "gpu_uuid")
	first(u.labels, "mig_instance", "GPU_I_ID")
	first(u.labels, "mig_profile", "GPU_I_PROFILE")
	first(u.about, "model", "modelName", "model_name")
	first(u.about, "device", "device")
	first(u.about, "pci_bus_id", "pci_bus_id")
	first(u.about, "driver_version", "DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION")
	u.model = u.about["model"]
	if w := e.workload(); w != (workload{}) && !slices.Contains(u.holders, w) {
		u.holders = append(u.holders, w)
	}
}

// workload returns the holder in the row e.
func (e *entry) workload() workload {
	return workload{
		firstOf(e.labels, "exported_namespace", "namespace", "pod_namespace"), firstOf(e.labels, "exported_pod", "pod", "pod_name"),
		firstOf(e.labels, "exported_container", "container", "container_name"), e.labels.Get("hpc_job"),
	}
}

// fill reads the values of rows. A GPU's own row takes precedence, in any order, and only if there
// is one do the rows of workloads give the use of each. Of several rows the first counts, except
// for utilization, where the busiest counts, and for memory, which is left out if rows differ.
func (n *node) fill(rows []entry, unitOfUtilRatio string) {
	type cell struct {
		id    gpu
		field canonical.Field
	}
	own, done := map[cell]bool{}, map[cell]bool{}
	for _, ofWorkloads := range []bool{false, true} {
		for _, e := range rows {
			s, value, ok := meaning(e, unitOfUtilRatio)
			w := e.workload()
			if s == nil || ofWorkloads != (w != workload{}) {
				continue
			}
			if !ok {
				value = math.NaN()
			}
			id, _ := e.gpu()
			at, u := cell{id, s.means}, n.gpus[id]
			target := &u.readings[s.means]
			if s.isBoards() {
				target = &u.own[s.means]
			}
			switch {
			case !done[at]:
				*target = value
			case own[at]:
				u.note(w, s.field, value)
			case s.field == "nvml" && !(value <= *target) && ok:
				*target = value
			case s.field == "used" && value != *target:
				*target = math.NaN()
			}
			own[at], done[at] = own[at] || !ofWorkloads, true
		}
	}
}

// note records a workload's use of the GPU.
func (u *unit) note(w workload, field string, value float64) {
	uses, known := u.uses[w]
	if !known {
		uses = use{math.NaN(), math.NaN()}
	}
	switch field {
	case "nvml":
		uses.utilization = value
	case "used":
		uses.memory = value
	}
	u.uses[w] = uses
}

// raiseBoards gives each board the highest of the board readings that its rows repeat; for bits,
// all that any row has.
func (n *node) raiseBoards() {
	for id, from := range maps.Clone(n.gpus) {
		board := n.gpus[gpu{uuid: id.uuid}]
		if board == nil {
			board = &unit{readings: noReadings(), implied: true, model: from.model, labels: maps.Clone(from.labels), about: maps.Clone(from.about)}
			delete(board.labels, "mig_instance")
			delete(board.labels, "mig_profile")
			n.gpus[gpu{uuid: id.uuid}] = board
		}
		for f, value := range from.own {
			highest := board.readings[f]
			switch {
			case math.IsNaN(value):
			case canonical.Field(f) == canonical.ClockEvents && !math.IsNaN(highest):
				board.readings[f] = float64(int64(highest) | int64(value))
			case !(value <= highest):
				board.readings[f] = value
			}
		}
		if up, told := n.links[id.uuid]; told {
			board.readings[canonical.NVLinksActive] = up
		}
	}
}

// derive computes the readings that follow from others.
func (u *unit) derive() {
	r := u.readings
	if math.IsNaN(r[canonical.FramebufferTotal]) {
		r[canonical.FramebufferTotal] = r[canonical.FramebufferUsed] + r[canonical.FramebufferFree] + r[canonical.FramebufferReserved]
	}
	if share := r[canonical.FramebufferUsed] / r[canonical.FramebufferTotal]; share <= 1.1 {
		r[canonical.FramebufferUsedRatio] = min(share, 1)
	}
	if u.labels["mig_instance"] != "" {
		return
	}
	if math.IsNaN(r[canonical.NVLinkBytes]) {
		r[canonical.NVLinkBytes] = r[canonical.NVLinkTransmit] + r[canonical.NVLinkReceive]
	}
	r[canonical.TemperatureWarning] = computetest.Warning(u.model)
}

// gpu returns the GPU of the row e, if it has one.
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

// countLinks counts a link's row if the link is up.
func (n *node) countLinks(e entry) {
	if e.name == "DCGM_FI_DEV_NVLINK_GET_STATE" || e.name == "DCGM_FI_DEV_NVLINK_LINK_STATUS" {
		n.links[firstOf(e.labels, "UUID", "uuid", "gpu_uuid")] += e.value
	}
}

// countXIDs records a row of the exporter's XID counters, whatever the code.
func (n *node) countXIDs(e entry) {
	witness, is := map[string]canonical.Witness{
		"DCGM_EXP_XID_ERRORS_COUNT": canonical.WitnessWindow, "DCGM_EXP_XID_ERRORS_TOTAL": canonical.WitnessTotal,
	}[e.name]
	if is {
		uuid := firstOf(e.labels, "UUID", "uuid", "gpu_uuid")
		code, _ := strconv.Atoi(e.labels.Get("xid"))
		n.xids[uuid] = append(n.xids[uuid], canonical.XIDCount{Witness: witness, Code: uint32(code), Count: uint64(e.value)})
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
			e.kind == textparse.EntrySeries && newIn47.MatchString(e.name):
			unit = "fraction"
		}
	}
	return unit
}

// newIn47 matches the names of some fields that DCGM 4.7 added.
var newIn47 = regexp.MustCompile(`^DCGM_FI_DEV_(FB_.+_BYTES|MEMORY_UTIL_RATIO|GPU_(ENC|DEC)_UTIL_RATIO|GPU_.+_THROTTLE_SECONDS_TOTAL|NVLINK_THROUGHPUT_.*BYTES_PER_SECOND)$`)

// meaning converts a sample into a reading; ok is false if there is none.
func meaning(e entry, unitOfUtilRatio string) (s *spelling, v float64, ok bool) {
	if s = spellingOf[e.name]; s == nil {
		return nil, 0, false
	}
	kind := s.kind
	if kind == "undecided" {
		if kind = unitOfUtilRatio; kind == "undecided" {
			return s, e.value, e.value == 0
		}
	}
	v, ok = interpret(kind, e.value)
	return s, v, ok
}
