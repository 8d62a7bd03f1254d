package computetest

import (
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// run returns how many readings in a row, at the end of a history, hold.
func run(history []Reading, holds func(row []float64) bool) int {
	n := 0
	for n < len(history) && holds(history[len(history)-1-n].Row) {
		n++
		if history[len(history)-n].Returned {
			break
		}
	}
	return n
}

// stuck reports whether the last three or more readings of a history were stalled, for ten
// seconds at least.
func stuck(history []Reading) bool {
	n := run(history, stalled)
	return n >= 3 && history[len(history)-1].At.Sub(history[len(history)-n].At) >= 10*time.Second
}

// steady reports whether the last three readings hold.
func steady(history []Reading, holds func(row []float64) bool) bool { return run(history, holds) >= 3 }

// restarted returns when the board last restarted in a history: its energy fell, there was no
// reading for over three minutes, the board returned, or it was cut into instances or no longer
// is.
func restarted(history []Reading) (at time.Time, ever bool) {
	for i, h := range history {
		if h.Returned || i > 0 && (h.At.Sub(history[i-1].At) > 3*time.Minute || h.Cut != history[i-1].Cut) {
			at, ever = h.At, true
		}
		if _, is := reset(history[:i+1]); is {
			at, ever = h.At, true
		}
	}
	return at, ever
}

// fewerLinks reports whether the last three readings of a history had fewer links than
// stood in any three readings in a row before each, ten minutes after the board started.
func fewerLinks(history []Reading) bool {
	for back := range 3 {
		past := history[:max(0, len(history)-back)]
		if len(past) == 0 || past[len(past)-1].Cut {
			return false
		}
		up := func(i int) float64 { return past[i].Row[canonical.NVLinksActive] }
		most := 0.0
		for i := 2; i < len(past); i++ {
			if up(i) == up(i-1) && up(i) == up(i-2) {
				most = math.Max(most, up(i))
			}
		}
		at, ever := restarted(past)
		end := past[len(past)-1].At
		if !(up(len(past)-1) < most) || ever && end.Sub(at) < 10*time.Minute {
			return false
		}
	}
	return true
}

// finding is the result for a condition: whether it was read and, if raised, in which of two
// states; "" if it has only one.
type finding struct {
	read, raised bool
	state        string
}

// judged returns crit if worse holds, and warn if only milder does.
func judged(read, worse, milder bool) finding {
	if worse {
		return finding{read, true, "crit"}
	}
	return finding{read, milder, "warn"}
}

// Health returns the state of a board and, by condition, "absent", "clear" or the state
// that it raises, from all its readings up to this one.
func Health(history []Reading, model string, o Options) (state string, found [canonical.NumConditions]string) {
	for i, c := range findings(history, model, o) {
		states := o.States[i]
		if c.state == "" || states != "crit warn" {
			c.state = states
		}
		switch {
		case states == "ok" || !c.read && !c.raised:
			found[i] = "absent"
		case c.raised:
			found[i] = c.state
		default:
			found[i] = "clear"
		}
	}
	for _, state := range []string{"crit", "warn", "hot"} {
		if slices.Contains(found[:], state) {
			return state, found
		}
	}
	unresolved := len(XIDs(history).Unresolved) > 0 && o.States[canonical.CondXIDFatal] != "ok"
	basic := append(slices.Clone(found[:3]), found[4:6]...)
	if slices.ContainsFunc(basic, func(f string) bool { return f != "absent" }) && !unresolved {
		return "ok", found
	}
	return "unknown", found
}

// findings is the table of the conditions, row by row.
func findings(history []Reading, model string, o Options) [canonical.NumConditions]finding {
	end := history[len(history)-1]
	row, hot := end.Row, Warning(model)
	given := func(fields ...canonical.Field) bool {
		return slices.ContainsFunc(fields, func(f canonical.Field) bool { return !math.IsNaN(row[f]) })
	}
	one := func(read, raised bool) finding { return finding{read, raised, ""} }
	bit := func(n int) func([]float64) bool {
		return func(row []float64) bool {
			return !math.IsNaN(row[canonical.ClockEvents]) && int(row[canonical.ClockEvents])/n%2 == 1
		}
	}
	thermal := func(row []float64) bool { return bit(32)(row) || bit(64)(row) }
	pair := func(row []float64, n int) bool { // of the fabric's health mask
		return !math.IsNaN(row[canonical.FabricHealthMask]) && int(row[canonical.FabricHealthMask])>>(2*n)%2 == 1
	}
	unhealthy := func(row []float64) bool {
		return row[canonical.FabricHealth] == 2 || row[canonical.FabricError] > 0 || pair(row, 2) || pair(row, 3)
	}
	troubled := func(row []float64) bool {
		return unhealthy(row) || row[canonical.FabricHealth] == 3 || pair(row, 0) || pair(row, 1)
	}
	codes := XIDs(history)
	action := row[canonical.RecoveryAction]
	var links []canonical.Field
	for f := canonical.NVLinkCRCFlitErrors; f <= canonical.NVLinkEffectiveErrors; f++ {
		switch f {
		case canonical.NVLinkTransmitDiscards, canonical.NVLinkRecoveriesDone, canonical.NVLinkRecoveriesFailed, canonical.NVLinkRecoveryEvents: // not errors
		default:
			links = append(links, f)
		}
	}
	remapped := row[canonical.RemappedRowsUncorrectable]
	rows := judged(!math.IsNaN(remapped), remapped >= 512, exceeds(history, 0, 24*time.Hour, canonical.RemappedRowsUncorrectable))
	if o.States[canonical.CondUncorrectableRemappedRows] == "crit" {
		rows = one(!math.IsNaN(remapped), remapped > 0)
	}
	down := one(given(canonical.NVLinksActive, canonical.NVLinkRecoveriesFailed), rose(history, canonical.NVLinkRecoveriesFailed) || fewerLinks(history))
	down.state = "crit" // of a single board
	return [canonical.NumConditions]finding{
		one(given(canonical.RowRemapFailure), row[canonical.RowRemapFailure] > 0),
		rows,
		one(given(canonical.PCIeReplays), replayed(history)),
		one(given(canonical.PCIeLinkWidth) && given(canonical.PCIeLinkWidthMax), narrow(history) && given(canonical.PCIeLinkWidth) && given(canonical.PCIeLinkWidthMax)),
		one(given(canonical.Temperature, canonical.TemperatureMargin), row[canonical.Temperature] >= hot || row[canonical.TemperatureMargin] <= 0),
		one(given(canonical.MemoryTemperature), row[canonical.MemoryTemperature] >= hot),
		judged(given(canonical.RecoveryAction), action == 1 || action == 2 || action == 4, action > 0),
		one(codes.Given && len(codes.Unresolved) == 0, len(codes.Fatal) > 0),
		one(codes.Given, len(codes.Warned) > 0),
		one(codes.Given, false), // it needs the other boards of the node
		one(given(canonical.ECCDoubleBitVolatile), rose(history, canonical.ECCDoubleBitVolatile)),
		one(given(canonical.RowRemapPending), row[canonical.RowRemapPending] > 0),
		one(given(canonical.RetiredPagesPending), row[canonical.RetiredPagesPending] > 0),
		judged(given(canonical.SRAMThresholdExceeded, canonical.MemoryUnrepairable, canonical.MemoryBanksNone),
			row[canonical.SRAMThresholdExceeded] > 0 || row[canonical.MemoryUnrepairable] > 0, row[canonical.MemoryBanksNone] > 0),
		one(given(canonical.ClockEvents), steady(history, thermal)),
		one(given(canonical.ClockEvents), steady(history, bit(128))),
		one(given(links...), exceeds(history, 10, 10*time.Minute, links...)),
		one(given(canonical.NVLinkRecoveriesDone), exceeds(history, 4, 24*time.Hour, canonical.NVLinkRecoveriesDone)),
		down,
		judged(given(canonical.FabricHealth, canonical.FabricHealthMask, canonical.FabricError), steady(history, unhealthy), steady(history, troubled)),
		one(false, false), // of the node
		one(given(canonical.NVMLUtilization) && profiled(row), stuck(history)),
	}
}
