package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// row is a device in an exporter's page: a board or a MIG instance.
type row struct {
	board *board
	state
	labels string
	slices float64 // of the seven that make a board
	watts  float64 // of the board
	heat   float64 // °C of the board
	at     time.Duration
}

// family is a family of dcgm-exporter and how to compute its values.
type family struct {
	name, kind string
	value      func(h *host, r *row) float64
}

// defaultCounters are what dcgm-exporter serves without a counters file of its own.
var defaultCounters = []family{
	{"DCGM_FI_DEV_SM_CLOCK", "gauge", func(h *host, r *row) float64 {
		if r.hot {
			return .7 * h.model.clock
		}
		return h.model.clock * (.25 + .75*min(1, 2*r.work.engine))
	}},
	{"DCGM_FI_DEV_MEM_CLOCK", "gauge", func(h *host, _ *row) float64 { return h.model.memoryClock }},
	{"DCGM_FI_DEV_GPU_TEMP", "gauge", func(_ *host, r *row) float64 { return r.heat }},
	{"DCGM_FI_DEV_MEMORY_TEMP", "gauge", func(_ *host, r *row) float64 { return r.heat + 6 }},
	{"DCGM_FI_DEV_POWER_USAGE", "gauge", func(_ *host, r *row) float64 { return r.watts }},
	{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", func(_ *host, r *row) float64 { return 1e3 * r.board.energy }},
	{"DCGM_FI_DEV_GPU_UTIL", "gauge", func(_ *host, r *row) float64 { return r.work.util }},
	{"DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", func(_ *host, r *row) float64 { return r.work.copying }},
	{"DCGM_FI_DEV_ENC_UTIL", "gauge", func(*host, *row) float64 { return 0 }},
	{"DCGM_FI_DEV_DEC_UTIL", "gauge", func(*host, *row) float64 { return 0 }},
	{"DCGM_FI_DEV_FB_USED", "gauge", func(h *host, r *row) float64 { return whole(r.work.filled * r.framebuffer(h)) }},
	{"DCGM_FI_DEV_FB_FREE", "gauge", func(h *host, r *row) float64 { return whole((.99 - r.work.filled) * r.framebuffer(h)) }},
	{"DCGM_FI_DEV_FB_RESERVED", "gauge", func(h *host, r *row) float64 { return whole(.01 * r.framebuffer(h)) }},
	{"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", func(_ *host, r *row) float64 { return whole(r.board.replays) }},
	{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", func(_ *host, r *row) float64 { return r.remaps }},
	{"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", func(*host, *row) float64 { return 0 }},
	{"DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", func(*host, *row) float64 { return 0 }},
	{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", ratio(1, func(w *work) float64 { return w.engine })},
	{"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", ratio(4, func(w *work) float64 { return w.tensor })},
	{"DCGM_FI_PROF_DRAM_ACTIVE", "gauge", ratio(5, func(w *work) float64 { return w.dram })},
	{"DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", ratio(9, func(w *work) float64 { return w.transmit })},
	{"DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", ratio(10, func(w *work) float64 { return w.receive })},
	{"DCGM_FI_DEV_VGPU_LICENSE_STATUS", "gauge", func(*host, *row) float64 { return 0 }},
}

// furtherCounters are the other profiling fields, and what else the mixin's README.md asks for.
var furtherCounters = []family{
	{"DCGM_FI_DEV_SLOWDOWN_TEMP", "gauge", func(*host, *row) float64 { return 90 }},
	{"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "gauge", func(h *host, _ *row) float64 { return h.model.limit }},
	{"DCGM_FI_DEV_XID_ERRORS", "gauge", func(_ *host, r *row) float64 { return r.xid }},
	{"DCGM_FI_DEV_PCIE_LINK_GEN", "gauge", func(h *host, _ *row) float64 { return float64(h.model.generation) }},
	{"DCGM_FI_DEV_PCIE_LINK_WIDTH", "gauge", func(_ *host, r *row) float64 { return r.width }},
	{"DCGM_FI_DEV_PCIE_MAX_LINK_GEN", "gauge", func(h *host, _ *row) float64 { return float64(h.model.generation) }},
	{"DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", "gauge", func(*host, *row) float64 { return 16 }},
	{"DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY", "gauge", func(_ *host, r *row) float64 { return r.fabric }},
	{"DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", "gauge", func(_ *host, r *row) float64 { return r.recovery }},
	{"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", func(_ *host, r *row) float64 { return whole(r.board.correctable) }},
	{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", func(_ *host, r *row) float64 { return r.uncorrectable }},
	{"DCGM_FI_DEV_ROW_REMAP_PENDING", "gauge", func(_ *host, r *row) float64 { return r.remaps }},
	{"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter", func(_ *host, r *row) float64 { return whole(r.work.link / 1e6) }},
	{"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "counter", func(*host, *row) float64 { return 0 }},
	{"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "counter", func(_ *host, r *row) float64 { return whole(r.board.linkErrors) }},
	{"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "counter", func(_ *host, r *row) float64 { return whole(r.board.linkErrors / 10) }},
	{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "gauge", func(_ *host, r *row) float64 {
		switch {
		case r.hot:
			return 0x20 | 0x40 // software and hardware thermal slowdown
		case r.work.power > .9:
			return 0x4 // power cap
		case r.work.engine < .05:
			return 0x1 // idle
		}
		return 0
	}},
	{"DCGM_FI_DEV_POWER_VIOLATION", "counter", func(_ *host, r *row) float64 { return whole(r.board.throttledPower) }},
	{"DCGM_FI_DEV_THERMAL_VIOLATION", "counter", func(_ *host, r *row) float64 { return whole(r.board.throttledHeat) }},
	{"DCGM_FI_PROF_SM_ACTIVE", "gauge", ratio(2, func(w *work) float64 { return w.sm })},
	{"DCGM_FI_PROF_SM_OCCUPANCY", "gauge", ratio(3, func(w *work) float64 { return w.occupancy })},
	{"DCGM_FI_PROF_PIPE_FP64_ACTIVE", "gauge", ratio(6, func(w *work) float64 { return w.fp64 })},
	{"DCGM_FI_PROF_PIPE_FP32_ACTIVE", "gauge", ratio(7, func(w *work) float64 { return w.fp32 })},
	{"DCGM_FI_PROF_PIPE_FP16_ACTIVE", "gauge", ratio(8, func(w *work) float64 { return w.fp16 })},
}

// ratio returns the values of an activity with a noise of two percent, in four digits.
func ratio(kind uint64, of func(*work) float64) func(*host, *row) float64 {
	return func(_ *host, r *row) float64 {
		v := of(&r.work) * (1 + .02*noise(r.board.seed, r.at, kind))
		if v > 2 {
			return whole(v)
		}
		return whole(1e4*v) / 1e4
	}
}

func whole(v float64) float64 { return float64(int64(v)) }

// framebuffer returns the size of the device's framebuffer, in MiB.
func (r *row) framebuffer(h *host) float64 { return h.model.framebuffer * r.slices / 7 }

// page appends the page of a host's exporter at a time, which must not go back, to dst.
func (h *host) page(dst []byte, at time.Duration) []byte {
	rows := h.rows(at, at-h.last)
	h.last = at
	families := defaultCounters
	switch {
	case len(rows) == 0:
		return dst
	case h.allCounters:
		families = slices.Concat(defaultCounters, furtherCounters)
	}
	for _, f := range families {
		if f.name == h.lacks {
			continue
		}
		dst = fmt.Appendf(dst, "# TYPE %s %s\n", f.name, f.kind)
		for i := range rows {
			dst = append(append(append(dst, f.name...), rows[i].labels...), "} "...)
			dst = append(strconv.AppendFloat(dst, f.value(h, &rows[i]), 'f', -1, 64), '\n')
		}
	}
	if !h.allCounters {
		return dst
	}
	const links = "DCGM_FI_DEV_NVLINK_GET_STATE"
	dst = append(dst, "# TYPE "+links+" gauge\n"...)
	for i := range rows {
		for link := range linksPerGPU {
			dst = fmt.Appendf(dst, "%s%s,nvlink=\"%d\"} %d\n", links, rows[i].board.labels(h), link, min(1, max(0, int(rows[i].links)-link)))
		}
	}
	return dst
}

// rows returns the devices that a host has at a time.
func (h *host) rows(at, passed time.Duration) (rows []row) {
	for i := range h.boards {
		b := &h.boards[i]
		s := state{work: b.work, parts: b.parts, links: linksPerGPU, width: 16, fabric: 1}
		for _, t := range b.trouble {
			if at >= t.from && (t.to == 0 || at < t.to) {
				t.change(&s)
			}
		}
		if s.gone {
			continue
		}
		r := row{board: b, state: s, slices: 7, at: at, labels: b.labels(h) + b.holder}
		r.watts = whole(10*(h.model.idle+(h.model.limit-h.model.idle)*s.work.power*(1+.02*noise(b.seed, at, 0)))) / 10
		r.heat = whole(32 + 35*s.work.power + 2*noise(b.seed, at, 20))
		if s.hot {
			r.heat = 91
		}
		b.count(&r, passed.Seconds())
		if s.parts == nil {
			rows = append(rows, r)
			continue
		}
		for _, p := range s.parts {
			r.work, r.slices = p.work, p.slices
			r.labels = b.labels(h) + `,GPU_I_PROFILE="` + p.profile + `",GPU_I_ID="` + p.id + `"` + p.holder
			rows = append(rows, r)
		}
	}
	return rows
}

// count adds the work of some seconds to the counters of a board.
func (b *board) count(r *row, seconds float64) {
	b.energy += r.watts * seconds
	if r.state.work.power > .9 {
		b.throttledPower += .3e9 * seconds
	}
	if r.hot {
		b.throttledHeat += .5e9 * seconds
	}
	b.replays += r.state.replays * seconds
	b.correctable += r.state.correctable * seconds
	b.linkErrors += r.state.linkErrors * seconds
}

// labels returns the labels of the board, without the closing brace.
func (b *board) labels(h *host) string {
	if b.text == "" {
		b.text = fmt.Sprintf(`{gpu="%d",UUID="%s",pci_bus_id="00000000:%d:00.0",device="nvidia%d",modelName="%s",Hostname="%s",DCGM_FI_DRIVER_VERSION="%s"`,
			b.index, b.uuid, 10+10*b.index, b.index, h.model.name, h.name, driver)
	}
	return b.text
}
