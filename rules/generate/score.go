package main

import (
	"fmt"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
)

const (
	utilizationSeries = canonical.Prefix + "gpu_real_utilization_ratio"
	coverageSeries    = canonical.Prefix + "gpu_real_utilization_coverage_ratio"

	activitySeries = "device:dcgm_profiled_activity:max"
	stalledSeries  = "device:dcgm_profiling_stalled:bool"
	weightSeries   = "device:dcgm_real_utilization_weight:sum"
	percentSeries  = "device:dcgm_real_utilization_percent:sum"
)

// engine returns the activity of the graphics engine or, if that is absent, NVML's utilization.
func engine() string {
	return series(canonical.GraphicsEngineActive) + " or " + series(canonical.NVMLUtilization)
}

// largest returns the largest ratio among those of a device that were read.
func largest(fields []canonical.Field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = series(f)
	}
	return fmt.Sprintf(`max by (%s) ({__name__=~"%s"})`, deviceLabels, anyOf(names))
}

// scoreSection records real utilization. Its sums add in the order of compute, so that both round
// alike.
func scoreSection(o *compute.Options) section {
	w := compute.Presets[0].Weights
	var weights, percents []string
	for _, in := range []struct {
		expr   string
		weight float64
	}{
		{series(canonical.SMActive), w.SM},
		{series(canonical.TensorActive), w.Tensor},
		{series(canonical.DRAMActive), w.DRAM},
		{"(" + engine() + ")", w.Engine},
	} {
		weights = append(weights, fmt.Sprintf("(%s * 0 + %s or %s * 0)", in.expr, number(in.weight), deviceSeries))
		percents = append(percents, fmt.Sprintf("(%s * 100 * %s or %s * 0)", in.expr, number(in.weight), deviceSeries))
	}
	stalled := fmt.Sprintf("(%s == bool 0) * (%s >= bool %s)", activitySeries, series(canonical.NVMLUtilization), number(o.Thresholds.StalledUtilization))
	score := fmt.Sprintf("clamp(%s / (%s >= %s) / 100, 0, 1)\nunless %s == 1", percentSeries, coverageSeries, number(o.MinCoverage-compute.CoverageSlack), stalledSeries)
	return section{
		comment: "Real utilization: the weighted activities, divided by the weights of those that were read.\nAbsent if too few were read, or if the counters are stalled.",
		rules: []rule{
			{activitySeries, "", largest(compute.Profiled[:])},
			{stalledSeries, "", stalled},
			{weightSeries, "", strings.Join(weights, "\n+ ")},
			{percentSeries, "", strings.Join(percents, "\n+ ")},
			{coverageSeries, "", fmt.Sprintf("%s < %s\nor round(%s)", weightSeries, number(1-compute.CoverageSlack), weightSeries)},
			{utilizationSeries, "", score},
		},
	}
}
