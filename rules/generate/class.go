package main

import (
	"fmt"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
)

const (
	classSeries = canonical.Prefix + "gpu_workload_class"

	lowSeries   = "device:dcgm_sm_active:low"
	highSeries  = "device:dcgm_sm_active:high"
	indexSeries = "device:dcgm_workload_class:index"
)

// score is real utilization as these rules record it; the proxy's series of that name have other
// labels.
const score = "(" + utilizationSeries + " and " + deviceSeries + ")"

// signals are the series of the signals that are known or missing.
func signals(t *compute.Thresholds) map[compute.Signal]string {
	return map[compute.Signal]string{
		compute.SignalUtilization: score,
		compute.SignalTensor:      series(canonical.TensorActive),
		compute.SignalDRAM:        series(canonical.DRAMActive),
		compute.SignalFP64:        series(canonical.FP64Active),
		compute.SignalEngine:      "(" + engine() + ")",
		compute.SignalTransfer: fmt.Sprintf("(%s >= %s or %s >= %s or %s >= %s)",
			series(canonical.MemoryCopyUtilization), number(t.TransferMemoryCopy),
			series(canonical.PCIeTransmit), number(t.TransferPCIe), series(canonical.PCIeReceive), number(t.TransferPCIe)),
	}
}

// classSection is the cascade. Each rule selects the devices that may match it and that no earlier
// rule selected. It gives them its class, or unknown if they may also fail to match.
func classSection(t *compute.Thresholds) section {
	sm := series(canonical.SMActive)
	low := fmt.Sprintf("(\n  %s\n  or %s\n  or %s * 0\n) and %s", sm, largest(compute.WithinSM[:]), deviceSeries, score)
	high := fmt.Sprintf("%s and %s\nor (%s or %s) > %s\nor %s", sm, lowSeries, series(canonical.GraphicsEngineActive), deviceSeries, lowSeries, lowSeries)
	known := signals(t)
	var branches []string
	for _, r := range compute.Cascade(t) {
		branches = append(branches, candidates(&r, known))
	}
	branches = append(branches, fmt.Sprintf("%s * 0 + %d", deviceSeries, canonical.ClassUnknown))
	s := section{
		comment: "The workload class. Unread SM activity is an interval: at least the largest activity that implies it,\nat most the activity of the engine.",
		rules: []rule{
			{lowSeries, "", low},
			{highSeries, "", high},
			{indexSeries, "", strings.Join(branches, "\nor ")},
		},
	}
	for c := range canonical.NumClasses {
		labels := fmt.Sprintf("class=%q, bottleneck=%q", c, canonical.Classes[c].Bottleneck)
		s.rules = append(s.rules, rule{classSeries, labels, fmt.Sprintf("%s == bool %d", indexSeries, c)})
	}
	return s
}

// candidates returns the devices that may match a rule, with the index of their class. A missing
// signal is below every threshold. A rule has at most one bound on SM activity.
func candidates(r *compute.Rule, known map[compute.Signal]string) string {
	index, filters := lowSeries+fmt.Sprintf(" * 0 + %d", r.Class), ""
	for _, b := range r.Bounds {
		figure := number(b.Figure)
		switch {
		case b.Signal == compute.SignalSM && b.Below:
			index = undecided(r.Class, highSeries+" >= bool "+figure)
			filters += " and " + lowSeries + " < " + figure
		case b.Signal == compute.SignalSM:
			index = undecided(r.Class, lowSeries+" < bool "+figure)
			filters += " and " + highSeries + " >= " + figure
		case b.Signal == compute.SignalTransfer && b.Below:
			filters += " unless " + known[b.Signal]
		case b.Signal == compute.SignalTransfer:
			filters += " and " + known[b.Signal]
		case b.Below:
			filters += " unless " + known[b.Signal] + " >= " + figure
		default:
			filters += " and " + known[b.Signal] + " >= " + figure
		}
	}
	return index + filters
}

// undecided returns the index of unknown where open is 1, and that of the class elsewhere.
func undecided(class canonical.Class, open string) string {
	return fmt.Sprintf("%d + %d * (%s)", class, canonical.ClassUnknown-class, open)
}
