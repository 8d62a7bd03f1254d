// Package computetest is a second, naive implementation of the specification's tables, for tests:
// in percent, with ifs, and without calls to compute. It agrees with KempnerPulse if all four
// inputs of the score were read, and with Zero also if they were not.
package computetest

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Options are a configuration in the words of the specification.
type Options struct {
	SM, Tensor, DRAM, GR float64                         // weights, of any sum
	Zero                 bool                            // missing inputs count as 0
	MinCoverage          float64                         // percent
	States               [canonical.NumConditions]string // of the conditions, in canonical's order; "ok" is off, with "crit warn" the reading decides
}

// DefaultOptions returns the preset ai with the default states.
func DefaultOptions() Options {
	return Options{SM: .35, Tensor: .35, DRAM: .20, GR: .10, MinCoverage: 50, States: [canonical.NumConditions]string{
		"crit", "crit warn", "warn", "warn", "hot", "hot", "crit warn", "crit", "warn", "warn", "crit", "warn", "warn", "crit warn",
		"hot", "warn", "warn", "warn", "crit warn", "crit warn", "crit", "warn",
	}}
}

// Reading is one reading of a board: a row of canonical fields, NaN if absent. A history of
// a board lacks the readings of the source that the board was not in.
type Reading struct {
	At  time.Time
	Row []float64
	// XIDs are the counts of the board's XIDs; nil if no source reports XIDs.
	XIDs []canonical.XIDCount
	// Cut is set while the board has MIG instances.
	Cut bool
	// Returned is set if the board was not in the source's previous reading, but in an earlier one.
	Returned bool
}

func percent(v float64) (float64, bool) { return v * 100, !math.IsNaN(v) }

func engine(row []float64) (float64, bool) {
	if gr, ok := percent(row[canonical.GraphicsEngineActive]); ok {
		return gr, true
	}
	return percent(row[canonical.NVMLUtilization])
}

// Activity returns real utilization and coverage as fractions, NaN if there is none,
// and the workload class of a device that was read itself. A whole board is not in MIG mode.
func Activity(row []float64, o Options, whole bool) (utilization, coverage float64, class string) {
	util, known, coverage := score(row, o)
	if !known && whole && !profiled(row) && row[canonical.NVMLUtilization] == 0 {
		return math.NaN(), coverage, "idle"
	}
	if !known || stalled(row) {
		return math.NaN(), coverage, "unknown"
	}
	low, high := interval(row, o.Zero)
	return util / 100, coverage, classOf(row, util, low, high)
}

// score returns percent, whether there is a score, and the coverage as a fraction.
func score(row []float64, o Options) (float64, bool, float64) {
	total := o.SM + o.Tensor + o.DRAM + o.GR
	sum, weight, n := 0.0, 0.0, 0
	add := func(v float64, ok bool, w float64) {
		if ok {
			sum, weight, n = sum+w/total*v, weight+w/total, n+1
		}
	}
	sm, smOK := percent(row[canonical.SMActive])
	tensor, tensorOK := percent(row[canonical.TensorActive])
	dram, dramOK := percent(row[canonical.DRAMActive])
	gr, grOK := engine(row)
	add(sm, smOK, o.SM)
	add(tensor, tensorOK, o.Tensor)
	add(dram, dramOK, o.DRAM)
	add(gr, grOK, o.GR)
	if n == 0 {
		return 0, false, 0
	}
	if !o.Zero && n < 4 {
		if weight == 0 || weight*100 < o.MinCoverage-1e-7 {
			return 0, false, weight
		}
		sum /= weight
	}
	return math.Max(0, math.Min(100, sum)), true, weight
}

// profiled reports whether a row has any activity of the profiling module: fields 1001 to 1008
// without the byte rates, the tensor sub-pipes, 1016.
func profiled(row []float64) bool {
	return slices.ContainsFunc(row[canonical.SMActive:canonical.DRAMActive+1], func(v float64) bool { return !math.IsNaN(v) })
}

func stalled(row []float64) bool {
	active := slices.ContainsFunc(row[canonical.SMActive:canonical.DRAMActive+1], func(v float64) bool { return v > 0 })
	nvml, ok := percent(row[canonical.NVMLUtilization])
	return ok && nvml >= 20 && profiled(row) && !active
}

// interval returns the bounds of SM activity.
func interval(row []float64, zero bool) (low, high float64) {
	if v, ok := percent(row[canonical.SMActive]); ok {
		return v, v
	}
	if zero {
		return 0, 0
	}
	for _, f := range []canonical.Field{
		canonical.SMOccupancy, canonical.TensorActive, canonical.TensorHMMAActive, canonical.TensorIMMAActive,
		canonical.TensorDFMAActive, canonical.TensorDMMAActive, canonical.TensorQMMAActive,
		canonical.FP64Active, canonical.FP32Active, canonical.FP16Active,
	} {
		if v, ok := percent(row[f]); ok {
			low = math.Max(low, v)
		}
	}
	high = 100
	if v, ok := percent(row[canonical.GraphicsEngineActive]); ok {
		high = v
	}
	return low, math.Max(low, high)
}

// classOf is the table of the workload classes, row by row.
func classOf(row []float64, util, low, high float64) string {
	zeroed := func(f canonical.Field) float64 {
		if math.IsNaN(row[f]) {
			return 0
		}
		return row[f]
	}
	tensor, dram, fp64 := zeroed(canonical.TensorActive)*100, zeroed(canonical.DRAMActive)*100, zeroed(canonical.FP64Active)*100
	gr, ok := engine(row)
	if !ok {
		gr = 0
	}
	io := zeroed(canonical.MemoryCopyUtilization)*100 >= 40 || zeroed(canonical.PCIeReceive) >= 1e9 || zeroed(canonical.PCIeTransmit) >= 1e9
	if util < 5 && gr < 5 && dram < 5 && !io {
		return "idle"
	}
	for _, rule := range []struct {
		class string
		holds bool    // the rule's other bounds
		below bool    // SM must be below, not at least
		sm    float64 // percent
	}{
		{"tensor_heavy_compute", tensor >= 50, false, 60},
		{"tensor_compute", tensor >= 15, false, 40},
		{"fp64_hpc_compute", fp64 >= 20, false, 50},
		{"io_or_data_loading", io, true, 30},
		{"memory_bound", dram >= 50, true, 50},
		{"compute_heavy", true, false, 80},
		{"compute_active", true, false, 50},
		{"memory_active", dram >= 40, true, math.Inf(1)},
		{"busy_low_sm_use", gr >= 40, true, 25},
		{"low_utilization", gr < 15 && dram < 15, true, 15},
	} {
		surely, perhaps := low >= rule.sm, high >= rule.sm
		if rule.below {
			surely, perhaps = high < rule.sm, low < rule.sm
		}
		if rule.holds && surely {
			return rule.class
		}
		if rule.holds && perhaps {
			return "unknown"
		}
	}
	return "mixed_or_moderate"
}

// Warning is the temperature in °C from which a model is hot.
func Warning(model string) float64 {
	switch {
	case strings.Contains(model, "H100"), strings.Contains(model, "H200"):
		return 95
	case strings.Contains(model, "RTX 6000"):
		return 92
	}
	return 93
}

// rises are the rises of counters in a history: of all together, how many in each reading. A rise since
// before a span counts for the part within it. A counter that is back where it was at most two minutes after it
// fell to 0, without a reset, rose only by what it is above that.
func rises(history []Reading, span time.Duration, fields ...canonical.Field) []float64 {
	n := make([]float64, len(history))
	for _, f := range fields {
		before, fell, high := -1, -1, 0.0
		for i, h := range history {
			odd := fell >= 0 && h.At.Sub(history[fell].At) <= 2*time.Minute
			if _, is := reset(history[:i+1]); is {
				fell, odd = -1, false
			}
			if math.IsNaN(h.Row[f]) {
				continue
			}
			if before >= 0 && h.Row[f] > history[before].Row[f] {
				part, from := 1.0, history[before].Row[f]
				if gap := h.At.Sub(history[before].At); gap > span {
					part = float64(span) / float64(gap)
				}
				if odd && h.Row[f] >= high {
					from = math.Max(from, high)
				}
				n[i] += (h.Row[f] - from) * part
			}
			if before >= 0 && h.Row[f] == 0 && history[before].Row[f] > 0 {
				if !odd {
					high = history[before].Row[f]
				}
				fell = i
			}
			before = i
		}
	}
	return n
}

// exceeds reports whether more than most rises fall into the span before the end of a history.
func exceeds(history []Reading, most float64, span time.Duration, fields ...canonical.Field) bool {
	end, sum := history[len(history)-1].At, 0.0
	for i, n := range rises(history, span, fields...) {
		if end.Sub(history[i].At) <= span {
			sum += n
		}
	}
	return sum > most
}

// rose reports whether a counter rose at most ten minutes before the end of a history.
func rose(history []Reading, f canonical.Field) bool {
	return exceeds(history, 0, 10*time.Minute, f)
}

// replayed reports whether there were more than eight replays within a minute, at most ten minutes
// before the end of a history.
func replayed(history []Reading) bool {
	for i := range history {
		now := history[:i+1]
		if history[len(history)-1].At.Sub(history[i].At) <= 10*time.Minute && exceeds(now, 8, time.Minute-1, canonical.PCIeReplays) {
			return true
		}
	}
	return false
}

// narrow reports whether the link of a board was not as wide as it could be for ten minutes from a
// busy reading on.
func narrow(history []Reading) bool {
	var since time.Time
	for _, h := range history {
		lanes, most := h.Row[canonical.PCIeLinkWidth], h.Row[canonical.PCIeLinkWidthMax]
		if lanes >= most {
			since = time.Time{}
		}
		if lanes < most && h.Row[canonical.NVMLUtilization] >= 0.2 && since.IsZero() {
			since = h.At
		}
	}
	return !since.IsZero() && history[len(history)-1].At.Sub(since) >= 10*time.Minute
}
