package compute

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// The reference below is a second, naive writing of the specification's tables:
// in percent, with ifs, and calling nothing of the package. It agrees with
// KempnerPulse wherever all four inputs of the score were read, and with zero
// also where they were not.

type refOptions struct {
	sm, tensor, dram, gr float64 // weights as given, not normalised
	zero                 bool
	minCoverage          float64 // percent
	states               [13]string
}

func refPercent(v float64) (float64, bool) { return v * 100, !math.IsNaN(v) }

func refEngine(row []float64) (float64, bool) {
	if gr, ok := refPercent(row[canonical.GraphicsEngineActive]); ok {
		return gr, true
	}
	return refPercent(row[canonical.NVMLUtilization])
}

// refScore returns percent, whether there is a score, and the coverage as a
// fraction.
func refScore(row []float64, o refOptions) (float64, bool, float64) {
	total := o.sm + o.tensor + o.dram + o.gr
	sum, weight, n := 0.0, 0.0, 0
	if v, ok := refPercent(row[canonical.SMActive]); ok {
		sum, weight, n = sum+o.sm/total*v, weight+o.sm/total, n+1
	}
	if v, ok := refPercent(row[canonical.TensorActive]); ok {
		sum, weight, n = sum+o.tensor/total*v, weight+o.tensor/total, n+1
	}
	if v, ok := refPercent(row[canonical.DRAMActive]); ok {
		sum, weight, n = sum+o.dram/total*v, weight+o.dram/total, n+1
	}
	if v, ok := refEngine(row); ok {
		sum, weight, n = sum+o.gr/total*v, weight+o.gr/total, n+1
	}
	if n == 0 {
		return 0, false, 0
	}
	if !o.zero && n < 4 {
		if weight == 0 || weight*100 < o.minCoverage-1e-7 {
			return 0, false, weight
		}
		sum /= weight
	}
	return math.Max(0, math.Min(100, sum)), true, weight
}

func refStalled(row []float64) bool {
	nvml, ok := refPercent(row[canonical.NVMLUtilization])
	if !ok || nvml < 20 {
		return false
	}
	zeros := 0
	// 1001 to 1008 without the byte rates, the tensor sub-pipes, 1016.
	for f := canonical.SMActive; f <= canonical.DRAMActive; f++ {
		if row[f] == 0 {
			zeros++
		} else if !math.IsNaN(row[f]) {
			return false
		}
	}
	return zeros > 0
}

func refInterval(row []float64, zero bool) (lo, hi float64) {
	if v, ok := refPercent(row[canonical.SMActive]); ok {
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
		if v, ok := refPercent(row[f]); ok {
			lo = math.Max(lo, v)
		}
	}
	hi = 100
	if v, ok := refPercent(row[canonical.GraphicsEngineActive]); ok {
		hi = v
	}
	if lo > hi {
		hi = lo
	}
	return lo, hi
}

// refClass is the table of the workload classes, row by row.
func refClass(row []float64, util, lo, hi float64) string {
	or0 := func(v float64) float64 {
		if math.IsNaN(v) {
			return 0
		}
		return v
	}
	tensor := or0(row[canonical.TensorActive]) * 100
	dram := or0(row[canonical.DRAMActive]) * 100
	fp64 := or0(row[canonical.FP64Active]) * 100
	gr, _ := refEngine(row)
	gr = or0(gr)
	io := or0(row[canonical.MemoryCopyUtilization])*100 >= 40 ||
		or0(row[canonical.PCIeReceive]) >= 1e9 || or0(row[canonical.PCIeTransmit]) >= 1e9

	if util < 5 && gr < 5 && dram < 5 && !io {
		return "idle"
	}
	if tensor >= 50 {
		if lo >= 60 {
			return "tensor_heavy_compute"
		}
		if hi >= 60 {
			return "unknown"
		}
	}
	if tensor >= 15 {
		if lo >= 40 {
			return "tensor_compute"
		}
		if hi >= 40 {
			return "unknown"
		}
	}
	if fp64 >= 20 {
		if lo >= 50 {
			return "fp64_hpc_compute"
		}
		if hi >= 50 {
			return "unknown"
		}
	}
	if io {
		if hi < 30 {
			return "io_or_data_loading"
		}
		if lo < 30 {
			return "unknown"
		}
	}
	if dram >= 50 {
		if hi < 50 {
			return "memory_bound"
		}
		if lo < 50 {
			return "unknown"
		}
	}
	return refClassBySM(lo, hi, dram, gr)
}

// refClassBySM is the table from compute_heavy on.
func refClassBySM(lo, hi, dram, gr float64) string {
	if lo >= 80 {
		return "compute_heavy"
	}
	if hi >= 80 {
		return "unknown"
	}
	if lo >= 50 {
		return "compute_active"
	}
	if hi >= 50 {
		return "unknown"
	}
	if dram >= 40 {
		return "memory_active"
	}
	if gr >= 40 {
		if hi < 25 {
			return "busy_low_sm_use"
		}
		if lo < 25 {
			return "unknown"
		}
	}
	if gr < 15 && dram < 15 {
		if hi < 15 {
			return "low_utilization"
		}
		if lo < 15 {
			return "unknown"
		}
	}
	return "mixed_or_moderate"
}

func refWarning(model string) float64 {
	if strings.Contains(model, "A100") {
		return 93
	}
	if strings.Contains(model, "H100") {
		return 95
	}
	if strings.Contains(model, "H200") {
		return 95
	}
	if strings.Contains(model, "RTX 6000") {
		return 92
	}
	return 93
}

// refReading is one reading of a board.
type refReading struct {
	at  time.Time
	row []float64
}

// refLast is the number of the XID as of the last reading of a history, 0 where
// there is none.
func refLast(history []refReading) int {
	v := history[len(history)-1].row[canonical.XIDLast]
	if math.IsNaN(v) {
		return 0
	}
	return int(v)
}

// refXIDs returns how often the XID changed over a history, and when it last did.
// Readings that lack it say nothing, but for the first: there was none.
func refXIDs(history []refReading) (changes int, last time.Time) {
	codes := []int{refLast(history[:1])}
	for i := 1; i < len(history); i++ {
		if math.IsNaN(history[i].row[canonical.XIDLast]) {
			continue
		}
		now := refLast(history[:i+1])
		if now != 0 && now != codes[len(codes)-1] {
			changes++
			last = history[i].at
		}
		codes = append(codes, now)
	}
	return changes, last
}

// refRose tells whether a counter rose at most ten minutes before the end of a
// history.
func refRose(history []refReading, f canonical.Field) bool {
	end, rose := history[len(history)-1].at, false
	before := math.Inf(1)
	for _, h := range history {
		v := h.row[f]
		if math.IsNaN(v) {
			continue
		}
		if v > before && !h.at.Add(10*time.Minute).Before(end) {
			rose = true
		}
		before = v
	}
	return rose
}

// refStuck tells whether the last three or more readings of a history were
// stalled, for ten seconds at least.
func refStuck(history []refReading) bool {
	first := len(history)
	for first > 0 && refStalled(history[first-1].row) {
		first--
	}
	n := len(history) - first
	return n >= 3 && history[len(history)-1].at.Sub(history[first].at) >= 10*time.Second
}

// refHealth returns the state and, by condition, "absent", "clear" or "raised",
// from all readings of a board up to this one.
func refHealth(history []refReading, model string, o refOptions) (string, [13]string) {
	end := history[len(history)-1]
	row := end.row
	var found [13]string
	i := 0
	look := func(read, raised bool) {
		switch {
		case o.states[i] == "ok":
			found[i] = "absent"
		case raised:
			found[i] = "raised"
		case read:
			found[i] = "clear"
		default:
			found[i] = "absent"
		}
		i++
	}
	given := func(f canonical.Field) bool { return !math.IsNaN(row[f]) }
	bit := func(n int) bool { return given(canonical.ClockEvents) && int(row[canonical.ClockEvents])/n%2 == 1 }
	hot := refWarning(model)
	look(given(canonical.RowRemapFailure), row[canonical.RowRemapFailure] > 0)
	look(given(canonical.RemappedRowsUncorrectable), row[canonical.RemappedRowsUncorrectable] > 0)
	look(given(canonical.PCIeReplays), refRose(history, canonical.PCIeReplays))
	look(given(canonical.Temperature), row[canonical.Temperature] >= hot)
	look(given(canonical.MemoryTemperature), row[canonical.MemoryTemperature] >= hot)
	look(given(canonical.XIDLast), slices.Contains([]int{48, 64, 74, 79, 95, 119, 120, 140}, refLast(history)))
	changes, last := refXIDs(history)
	look(given(canonical.XIDLast), changes > 0 && !last.Add(10*time.Minute).Before(end.at))
	look(given(canonical.ECCDoubleBitVolatile), refRose(history, canonical.ECCDoubleBitVolatile))
	look(given(canonical.RowRemapPending), row[canonical.RowRemapPending] > 0)
	look(given(canonical.ClockEvents), bit(32) || bit(64))
	look(given(canonical.ClockEvents), bit(128))
	linkRead, linkRose := false, false
	for f := canonical.NVLinkCRCFlitErrors; f <= canonical.NVLinkRecoveryErrors; f++ {
		linkRead = linkRead || given(f)
		linkRose = linkRose || refRose(history, f)
	}
	look(linkRead, linkRose)
	look(refProfiled(row), refStuck(history))
	for _, state := range []string{"crit", "warn", "hot"} {
		for i := range found {
			if found[i] == "raised" && o.states[i] == state {
				return state, found
			}
		}
	}
	for i := range 5 {
		if found[i] != "absent" {
			return "ok", found
		}
	}
	return "unknown", found
}

// refProfiled tells whether a row says anything of stalled profiling.
func refProfiled(row []float64) bool {
	if math.IsNaN(row[canonical.NVMLUtilization]) {
		return false
	}
	for f := canonical.SMActive; f <= canonical.DRAMActive; f++ {
		if !math.IsNaN(row[f]) {
			return true
		}
	}
	return false
}
