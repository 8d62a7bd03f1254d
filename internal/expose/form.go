package expose

import (
	"math"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Form selects which kpulse_ series are served.
type Form struct {
	// Full serves every class, state and condition of a device as 0 or 1, and an allocation's
	// seconds in every class. Otherwise it serves only those that apply, and the classes that
	// the allocation was in.
	Full bool
	// Exclude reports whether a family is left out, by its full name; nil leaves out none.
	Exclude func(family string) bool
}

// excludes reports whether a family is left out.
func (f Form) excludes(name string) bool { return f.Exclude != nil && f.Exclude(name) }

// header returns the header of a family, an empty one if it is left out.
func (f Form) header(s Series) header {
	h := newHeader(s)
	if f.excludes(h.name) {
		return header{}
	}
	return h
}

// thinner sets to NaN the values of a row that the lean form leaves out.
type thinner func(values []float64, s *canonical.Snapshot, row int)

// Thinned is a group of families that the lean form serves only in part.
type Thinned struct {
	Families []string // without canonical.Prefix
	// Without says what is left out, and Instead what gives the same information.
	Without, Instead string

	thin thinner
	none func(s *canonical.Snapshot, row int) bool // as in deviceFamily
	// one: at most one series of a row is left.
	one bool
}

// ThinnedTable lists what the lean form leaves out: the members of enumerations that do not
// apply, and the classes that an allocation was never in. A reading of 0 is not left out: an
// absent reading means no value. The upstream's error counters are kept too: they outlive this
// program, and one left out until it rises would lose a rise while this program is down.
func ThinnedTable() []Thinned {
	return []Thinned{
		{Families: []string{"gpu_workload_class", "gpu_health"},
			Without: "values that do not apply", Instead: "the value that applies", thin: withoutZeros, one: true},
		{Families: []string{"gpu_health_condition"},
			Without: "conditions that are not raised", Instead: "`kpulse_gpu_health_conditions_read`, the number of conditions that were checked", thin: withoutZeros,
			none: func(s *canonical.Snapshot, row int) bool { return s.Verdicts[row].Findings.Raised == 0 }},
		{Families: []string{"gpu_clock_event_active"}, Without: "inactive reasons", Instead: "absent: the reason is inactive, or was not read", thin: withoutZeros},
		{Families: []string{"gpu_recommended_action"},
			Without: "`none`", Instead: "absent: there is nothing to do, or `kpulse_gpu_health` is `unknown`", thin: withoutFirst, one: true},
		{Families: []string{"allocation_class_seconds_total"},
			Without: "classes that the allocation was never in", Instead: "a class begins at 0 when the allocation enters it", thin: unborn},
	}
}

// thin returns the families in the lean form.
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

// withoutFirst leaves out the first series of a row, and those that do not apply.
func withoutFirst(values []float64, s *canonical.Snapshot, row int) {
	values[0] = math.NaN()
	withoutZeros(values, s, row)
}

// unborn leaves out the classes that an allocation was never in, and serves young ones as 0.
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
