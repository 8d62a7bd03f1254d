package translate

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// If several workloads share a device, dcgm-exporter writes its rows once for each workload,
// and each row repeats the device's reading. With --kubernetes-virtual-gpus (from 4.6 on) two
// families differ: GPU_UTIL and FB_USED have a row for the device, without labels of a pod,
// and then one for each pod: see uses.go. So the row of the device counts first, in any
// position, and the others are what each pod used only if that row is there.

// sharedSample is a sample of a workload's row of a device that has other rows too.
type sharedSample struct {
	sample, variant int32
	sole            bool // the device has no row of its own for it
}

// markShared finds the variants of workloads on devices that other present variants describe
// too, and the allocation of each. It reports whether there are any.
func (t *Translator) markShared(present []int32) (sharing bool) {
	rows := map[int32]canonical.Workload{}
	several := map[int32]bool{}
	for _, v := range present {
		row, workload := t.positions[v].row, t.holderOf(&t.variants[v]).Workload
		if first, ok := rows[row]; ok && first != workload {
			several[row] = true
		} else if !ok {
			rows[row] = workload
		}
	}
	index := map[canonical.Allocation]int32{}
	for i, a := range t.allocationSet.Allocations {
		index[canonical.Allocation{Device: a.Device, Workload: a.Workload}] = int32(i)
	}
	for _, v := range present {
		p, workload := &t.positions[v], t.holderOf(&t.variants[v]).Workload
		p.shared = p.row >= 0 && several[p.row] && workload != canonical.Workload{}
		p.allocation = -1
		if !p.shared {
			continue
		}
		sharing = true
		if i, ok := index[canonical.Allocation{Device: int(p.row), Workload: workload}]; ok {
			p.allocation = i
		}
	}
	return sharing
}

// fillShared reads the samples that fill put off. If the device has a row of its own, they are
// what pods used. If not, all are copies of one reading, and the first counts; except for the
// families that the exporter may give for each pod, since the device's row may be lost: the
// device is at least as utilized as the busiest pod, and its use of memory is unknown if the
// pods differ.
func (t *Translator) fillShared(dst *canonical.Frame, b *raw.Batch, rep *Report) {
	for i := range t.later {
		s := &t.later[i]
		slot := t.families[b.Samples[s.sample].Family].rule.slot
		s.sole = isUntouched(*t.cell(dst, int(t.positions[s.variant].row), slot))
	}
	for _, s := range t.later {
		p, value := &t.positions[s.variant], b.Samples[s.sample].Value
		r := t.families[b.Samples[s.sample].Family].rule
		cell := t.cell(dst, int(p.row), r.slot)
		switch {
		case !s.sole:
			t.use(dst, s.variant, r, value)
		case isUntouched(*cell):
			*cell = r.read(value, rep)
		case t.isUtilization(r.slot):
			var none Report // the first is counted
			if v := r.read(value, &none); v > *cell {
				*cell = v
			}
		case r.slot == int(canonical.FramebufferUsed):
			var none Report
			if *cell != r.read(value, &none) {
				*cell = absent
			}
		}
	}
}

// isUtilization reports whether a column is that of NVML utilization, whatever its unit.
func (t *Translator) isUtilization(slot int) bool {
	return slot == int(canonical.NVMLUtilization) || slot == t.rules.util
}
