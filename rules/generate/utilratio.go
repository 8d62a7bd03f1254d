package main

import (
	"fmt"
	"math"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

const (
	rawUtilSeries  = "device:dcgm_gpu_util_ratio:raw"
	utilUnitSeries = "host:dcgm_gpu_util_ratio:percent"
)

// ratioOrPercent records, for each host, whether the numbers of a family are ratios or percent. It
// decides as translate does, but without HELP texts, which Prometheus does not store with samples.
func ratioOrPercent(f canonical.Field) (rules []rule) {
	for _, s := range translate.Spellings(f) {
		if !s.PercentOrRatio {
			continue
		}
		siblings := fmt.Sprintf("group by (cluster, hostname) (\n%s\n)", indented(named(fmt.Sprintf("group by (%s) (\n%s\n)", sourceLabels,
			indented(gpuRows(anyOf(translate.UtilRatioEvidence())))))))
		where := func(condition string) string {
			return fmt.Sprintf("group by (cluster, hostname) (%s %s)", rawUtilSeries, condition)
		}
		above, overshoot := where("> "+number(s.Overshoot)), where("> "+number(s.Highest))
		fraction := where(fmt.Sprintf("> %s < %s", number(s.Lowest), number(s.Highest)))
		rules = append(rules,
			rule{rawUtilSeries, "", unserved(merged(deviceLabels, notBlank(&s, math.Inf(1))))},
			rule{utilUnitSeries, "", fmt.Sprintf("%s\nor\n%s\nunless\n%s\nunless\n%s\nor\n0 * %s\nor\n0 * %s\nor\n0 * %s",
				above, overshoot, fraction, siblings, overshoot, fraction, siblings)},
		)
	}
	return rules
}

// settled converts the raw numbers from the unit recorded for their host; 0 is the same in both.
func settled(s *translate.Spelling) []string {
	percent := translate.Spelling{Times: 1, Per: 100, Lowest: s.Lowest, Highest: s.Highest}
	unit := func(percent int) string {
		return fmt.Sprintf(" and on (cluster, hostname) %s == %d", utilUnitSeries, percent)
	}
	return []string{
		within(&percent, converted(&percent, rawUtilSeries)) + unit(1),
		clamped(s, within(s, rawUtilSeries)) + unit(0),
		rawUtilSeries + " == 0",
	}
}
