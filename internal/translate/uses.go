package translate

import (
	"math"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// What pods used, as dcgm-exporter 4.8.2 reports it with --kubernetes-virtual-gpus (seen
// over NVIDIA's mock of the driver):
//
//   - A pod without a process that the exporter can find has 0. It finds none without the
//     host's PIDs, or without the API server, from which it gets the UIDs of pods: then
//     pod_uid is "", and 0 is no reading.
//   - Each container of a pod has what the whole pod used.
//   - MIG instances have only memory.

// pod is a device that a pod holds and that the exporter gives values of.
type pod struct {
	device         int
	namespace, pod string
	job            string
}

func podOf(a *canonical.Allocation) pod { return pod{a.Device, a.Namespace, a.Pod, a.Job} }

// countContainers counts, for each allocation, the containers of its pod on its device,
// including those left out. It counts none if no device is shared.
func (t *Translator) countContainers(sharing bool) {
	t.containers = t.containers[:0]
	if !sharing {
		return
	}
	containers := map[pod]int{}
	for i := range t.allocations {
		containers[podOf(&t.allocations[i].Allocation)]++
	}
	for i := range t.allocationSet.Allocations {
		t.containers = append(t.containers, containers[podOf(&t.allocationSet.Allocations[i])])
	}
}

// shapeUses makes the use of every allocation unknown. No use is measured if no device is
// shared.
func (t *Translator) shapeUses(dst *canonical.Frame) {
	t.later = t.later[:0]
	n := len(t.containers)
	dst.Uses, t.utilRatios = slices.Grow(dst.Uses[:0], n)[:n], slices.Grow(t.utilRatios[:0], n)[:n]
	for i := range dst.Uses {
		dst.Uses[i], t.utilRatios[i] = canonical.NoUse, math.NaN()
	}
}

// use notes what a pod used of a device that has a row of its own.
func (t *Translator) use(dst *canonical.Frame, variant int32, r *rule, value float64) {
	at := t.positions[variant].allocation
	if at < 0 || t.variants[variant].nameless || t.allocationSet.Allocations[at].Pod == "" {
		return
	}
	var used *float64
	switch {
	case r.slot == int(canonical.NVMLUtilization):
		used = &dst.Uses[at].NVMLUtilization
	case r.slot == int(canonical.FramebufferUsed):
		used = &dst.Uses[at].Framebuffer
	case t.isUtilization(r.slot):
		used = &t.utilRatios[at]
	default:
		return
	}
	if !canonical.Given(*used) {
		var none Report // only the device's own reading is counted
		*used = r.read(value, &none)
	}
}

// resolveUses computes the use of each allocation from the rows of pods. The devices' own
// readings must be filled in.
func (t *Translator) resolveUses(dst *canonical.Frame) {
	for i := range dst.Uses {
		if u := &dst.Uses[i].NVMLUtilization; !canonical.Given(*u) {
			var none Report
			*u = t.util.read(t.utilRatios[i], t.util.unit, &none)
		}
	}
	all := t.allocationSet.Allocations
	for from, to := 0, 0; from < len(dst.Uses); from = to {
		for to = from; to < len(all) && all[to].Device == all[from].Device; {
			to++
		}
		canonical.Believe(dst.Uses[from:to], dst.Row(all[from].Device))
		for i := from; i < to; i++ {
			n := float64(t.containers[i])
			dst.Uses[i].NVMLUtilization /= n
			dst.Uses[i].Framebuffer /= n
		}
	}
}
