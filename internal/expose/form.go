package expose

import (
	"math"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Form selects which kpulse_ series are served.
type Form struct {
	// Full serves every class, state and condition of a device with 0 or 1, and the seconds of
	// an allocation in every class; else only those that hold, and the classes that it was in.
	Full bool
	// Exclude reports whether a family is left out, by its whole name; nil leaves out none.
	Exclude func(family string) bool
}

// excludes reports whether a family is left out.
func (f Form) excludes(name string) bool { return f.Exclude != nil && f.Exclude(name) }

// header returns h, or an empty one if its family is left out.
func (f Form) header(h header) header {
	if f.excludes(h.name) {
		return header{}
	}
	return h
}

// thinner sets those of a row's values to NaN that the lean form leaves out.
type thinner func(values []float64, s *canonical.Snapshot, row int)

// Thinned is a group of families of which the lean form leaves something out.
type Thinned struct {
	Families []string // without canonical.Prefix
	// Without says what is left out, and Instead what says the same.
	Without, Instead string

	thin thinner
	none func(s *canonical.Snapshot, row int) bool // as of a deviceFamily
	// one: what is left is at most one series of a row.
	one bool
}

// ThinnedTable lists what the lean form leaves out: the members of enumerations that do not
// hold, and the classes that an allocation was never in. It leaves out no reading that is 0: an
// absent reading means no value. A device keeps its seconds in each class and state from 0 on, so
// that their shares are exact at any time. It also keeps the error counters of the upstream:
// these outlive this program, and a counter that was left out until it rose would lose the rise
// that happened while this program was down.
func ThinnedTable() []Thinned {
	return []Thinned{
		{Families: []string{"gpu_workload_class", "gpu_health"}, Without: "what does not hold", Instead: "the one that holds", thin: withoutZeros, one: true},
		{Families: []string{"gpu_health_condition"}, Without: "conditions that are not raised", Instead: "`kpulse_gpu_health_conditions_read`, how many were looked at", thin: withoutZeros, none: raisesNothing},
		{Families: []string{"gpu_clock_event_active"}, Without: "reasons that do not hold", Instead: "absent: it does not hold, or is not read", thin: withoutZeros},
		{Families: []string{"gpu_recommended_action"}, Without: "`none`", Instead: "absent: nothing is to be done, or `kpulse_gpu_health` is `unknown`", thin: withoutFirst, one: true},
		{Families: []string{"allocation_class_seconds_total"}, Without: "classes that the allocation was never in", Instead: "born as 0 when it enters one", thin: unborn},
	}
}

// thin returns the families as the lean form has them.
func thin(list []deviceFamily) []deviceFamily {
	by := map[string]Thinned{}
	for _, t := range ThinnedTable() {
		for _, name := range t.Families {
			by[canonical.Prefix+name] = t
		}
	}
	for i := range list {
		if t, is := by[list[i].name]; is {
			list[i].thin, list[i].none, list[i].one = t.thin, t.none, list[i].one || t.one
		}
	}
	return list
}

func withoutZeros(values []float64, _ *canonical.Snapshot, _ int) {
	for i, v := range values {
		if v == 0 {
			values[i] = math.NaN()
		}
	}
}

// withoutFirst leaves out the first series of a row, and those that do not hold.
func withoutFirst(values []float64, s *canonical.Snapshot, row int) {
	values[0] = math.NaN()
	withoutZeros(values, s, row)
}

// unborn leaves out the classes that an allocation was never in, and shows the young ones as 0.
func unborn(values []float64, s *canonical.Snapshot, row int) {
	births := &s.Ledger.Allocations[row].Births
	for class, v := range values {
		if !canonical.Given(v) {
			continue
		}
		shown, born := births.Count(canonical.Class(class), v)
		if values[class] = shown; !born {
			values[class] = math.NaN()
		}
	}
}
