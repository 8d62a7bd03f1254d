package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// evidence is all that a condition may look at, of one board in one reading. It
// is passed by value so that the table's functions leave nothing on the heap.
type evidence struct {
	row        []float64 // indexed by canonical.Field
	device     int
	at         time.Time
	rises      *Rises
	thresholds *Thresholds
}

// condition is a row of the table of what can be wrong with a board.
type condition struct {
	// state the condition raises unless it is set otherwise.
	state canonical.Health
	// basic conditions are those of which one must have been read before a board
	// on which nothing is raised is called ok.
	basic bool
	// input is the reading without which nothing can be found.
	input canonical.Field
	// find is pure.
	find func(evidence) canonical.Finding
}

// conditions is indexed by canonical.Condition. The basic ones are
// KempnerPulse's.
var conditions = [canonical.NumConditions]condition{
	canonical.CondRowRemapFailure:           {canonical.HealthCrit, true, canonical.RowRemapFailure, findRowRemapFailure},
	canonical.CondUncorrectableRemappedRows: {canonical.HealthCrit, true, canonical.RemappedRowsUncorrectable, findRemappedRows},
	canonical.CondPCIeReplay:                {canonical.HealthWarn, true, canonical.PCIeReplays, findPCIeReplay},
	canonical.CondGPUTemperature:            {canonical.HealthHot, true, canonical.Temperature, findTemperature},
	canonical.CondMemoryTemperature:         {canonical.HealthHot, true, canonical.MemoryTemperature, findMemoryTemperature},
}

// defaultStates returns the state each condition raises.
func defaultStates() (states [canonical.NumConditions]canonical.Health) {
	for i := range conditions {
		states[i] = conditions[i].state
	}
	return states
}

// health returns the worst state that was raised and what was found about each
// condition. Where nothing was raised it is ok if a basic condition's input was
// read, else unknown. A condition whose state is HealthOK is off: it is not
// looked at.
func health(e evidence, states *[canonical.NumConditions]canonical.Health) (canonical.Health, [canonical.NumConditions]canonical.Finding) {
	var findings [canonical.NumConditions]canonical.Finding
	worst, told := canonical.HealthOK, false
	for i := range conditions {
		if states[i] == canonical.HealthOK {
			continue
		}
		found := conditions[i].find(e)
		findings[i] = found
		told = told || found != canonical.NotRead && conditions[i].basic
		if found == canonical.Raised {
			worst = max(worst, states[i])
		}
	}
	if worst == canonical.HealthOK && !told {
		worst = canonical.HealthUnknown
	}
	return worst, findings
}

func findRowRemapFailure(e evidence) canonical.Finding {
	v := e.row[canonical.RowRemapFailure]
	return finding(v, v > 0)
}

func findRemappedRows(e evidence) canonical.Finding {
	v := e.row[canonical.RemappedRowsUncorrectable]
	return finding(v, v > e.thresholds.RemappedRows)
}

// findPCIeReplay stays raised through readings that lack the counter: that it
// rose is known.
func findPCIeReplay(e evidence) canonical.Finding {
	if e.rises.Within(e.device, canonical.PCIeReplays, e.at, e.thresholds.RiseHold) {
		return canonical.Raised
	}
	return finding(e.row[canonical.PCIeReplays], false)
}

func findTemperature(e evidence) canonical.Finding {
	v := e.row[canonical.Temperature]
	return finding(v, v >= e.row[canonical.TemperatureWarning])
}

func findMemoryTemperature(e evidence) canonical.Finding {
	v := e.row[canonical.MemoryTemperature]
	return finding(v, v >= e.row[canonical.TemperatureWarning])
}

// finding says what was found in a reading that is NaN where there was none.
func finding(v float64, raised bool) canonical.Finding {
	switch {
	case !canonical.Given(v):
		return canonical.NotRead
	case raised:
		return canonical.Raised
	default:
		return canonical.Clear
	}
}
