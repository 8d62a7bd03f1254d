package expose

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// deviceFamily is a family with series of devices, or of the allocations on them.
type deviceFamily struct {
	header
	of    subject
	reach reach
	kinds kind // of the devices that have series
	// tails distinguish the series of a row.
	tails []string
	fill  rowFiller // nil: the values are the fields from first to end
	thin  thinner   // leaves out what the form omits; nil for nothing
	// none reports that a row has no series, so its values are not computed; nil means never.
	none func(s *canonical.Snapshot, row int) bool
	// one: a row has a series with at most one of the tails.
	one bool
	// codes: the family has a series for each XID of a device, and no tails.
	codes bool
	// first to end, exclusive, are the fields of the family; none for verdicts and accounts.
	first, end canonical.Field
}

// rowFiller sets the values of a row's series in a family, one for each tail; NaN means no
// series.
type rowFiller func(values []float64, s *canonical.Snapshot, row int)

// deviceFamilies returns the families of devices and allocations, except for
// gpu_info, in the order of the exposition.
func (f Form) deviceFamilies() []deviceFamily {
	list := slices.DeleteFunc(deviceFamilies(), func(one deviceFamily) bool { return f.excludes(one.name) })
	if f.Full {
		return list
	}
	return thin(list)
}

// deviceFamilies returns the families of the full form.
func deviceFamilies() []deviceFamily {
	var list []deviceFamily
	for f := range canonical.NumFields {
		if beginsFamily(f) {
			list = append(list, fieldFamily(f))
		}
	}
	return append(append(append(list, verdictFamilies()...), ledgerFamilies()...), allocationFamilies()...)
}

// fieldFamily returns the family that begins with the field first: a series for each of its
// fields, or for each reason of its bitmask.
func fieldFamily(first canonical.Field) deviceFamily {
	info := &canonical.Fields[first]
	family := deviceFamily{
		header: newHeader(Series{Name: info.Name, Type: info.Type, Help: info.Help}),
		of:     ofDevices, reach: inReading, kinds: everyDevice,
		first: first, end: first + 1,
	}
	if info.Unit == canonical.Bitmask {
		family.tails, family.fill = reasonTails(), fillReasons(first)
		return family
	}
	for family.end < canonical.NumFields && !beginsFamily(family.end) {
		family.end++
	}
	for field := first; field < family.end; field++ {
		family.tails = append(family.tails, tail(canonical.Fields[field].Labels))
	}
	return family
}

// values returns the values of a row's series, one for each tail. It may store them in scratch.
func (f *deviceFamily) values(scratch []float64, s *canonical.Snapshot, row int) []float64 {
	if f.fill != nil {
		f.fill(scratch, s, row)
	} else if values := s.Frame.Row(row)[f.first:f.end]; f.thin != nil {
		copy(scratch, values)
	} else {
		return values
	}
	if f.thin != nil {
		f.thin(scratch, s, row)
	}
	return scratch
}

// absent reports whether no device of frame has a reading for a series of f.
func (f *deviceFamily) absent(frame *canonical.Frame) bool {
	for field := f.first; field < f.end; field++ {
		if frame.Gives(field) {
			return false
		}
	}
	return f.first < f.end
}

func reasonTails() []string {
	var tails []string
	for _, event := range canonical.ClockEventReasons {
		tails = append(tails, tail(fmt.Sprintf("reason=%q", event.Reason)))
	}
	return tails
}

// fillReasons returns a filler of 1 for each set bit of a field and 0 for the others.
func fillReasons(field canonical.Field) rowFiller {
	return func(values []float64, s *canonical.Snapshot, device int) {
		mask := s.Frame.Row(device)[field]
		if !canonical.Given(mask) {
			fillNaN(values)
			return
		}
		for i, event := range canonical.ClockEventReasons {
			values[i] = indicator(uint64(mask)&event.Bit != 0)
		}
	}
}

// fillNaN sets all values to NaN: no series.
func fillNaN(values []float64) {
	for i := range values {
		values[i] = math.NaN()
	}
}

// verdictFamilies returns the families of the verdicts on each reading. A board that the source
// did not read itself has no utilization and no class. Only boards have health.
func verdictFamilies() []deviceFamily {
	verdicts := func(f family, kinds kind, tails []string, fill rowFiller) deviceFamily {
		return deviceFamily{header: newHeader(families[f]), of: ofDevices, reach: inReading, kinds: kinds, tails: tails, fill: fill}
	}
	action := verdicts(actionFamily, boards, actionTails(), fillAction)
	action.one = true
	return []deviceFamily{
		verdicts(utilizationFamily, readDevices, alone(), fillUtilization),
		verdicts(coverageFamily, readDevices, alone(), fillCoverage),
		verdicts(classFamily, readDevices, classTails(classLabel, bottleneckLabel), fillClass),
		verdicts(healthFamily, boards, stateTails(), fillHealth),
		verdicts(conditionFamily, boards, conditionTails(), fillConditions),
		verdicts(conditionsReadFamily, boards, alone(), fillConditionsRead),
		action,
	}
}

func fillUtilization(values []float64, s *canonical.Snapshot, device int) {
	values[0] = s.Verdicts[device].RealUtilization
}

func fillCoverage(values []float64, s *canonical.Snapshot, device int) {
	values[0] = s.Verdicts[device].Coverage
}

func fillClass(values []float64, s *canonical.Snapshot, device int) {
	clear(values)
	values[s.Verdicts[device].Class] = 1
}

func fillHealth(values []float64, s *canonical.Snapshot, device int) {
	clear(values)
	values[s.Verdicts[device].Health] = 1
}

// alone returns the tail of a family with one series for each row or source.
func alone() []string { return []string{tail()} }

// classTails returns a tail for each class, with these labels.
func classTails(labels ...func(canonical.Class) string) []string {
	tails := make([]string, canonical.NumClasses)
	for class := range canonical.NumClasses {
		var texts []string
		for _, label := range labels {
			texts = append(texts, label(class))
		}
		tails[class] = tail(texts...)
	}
	return tails
}

// stateTails returns a tail for each state of health.
func stateTails() []string {
	tails := make([]string, canonical.NumHealth)
	for state := range canonical.NumHealth {
		tails[state] = tail(stateLabel(state))
	}
	return tails
}

// firstRaised and endRaised bound the states that a condition can raise.
const (
	firstRaised = canonical.HealthOK + 1
	endRaised   = canonical.HealthUnknown
)

// conditionTails returns, for each condition, a tail for each state that it can be configured
// to raise.
func conditionTails() []string {
	var tails []string
	for condition := range canonical.NumConditions {
		for state := firstRaised; state < endRaised; state++ {
			tails = append(tails, tail(fmt.Sprintf("condition=%q", condition), stateLabel(state)))
		}
	}
	return tails
}

// fillConditions sets a value for each state that a condition can raise. A condition that is
// turned off has none.
func fillConditions(values []float64, s *canonical.Snapshot, device int) {
	fillNaN(values)
	v := &s.Verdicts[device]
	const each = int(endRaised - firstRaised)
	for condition := range v.Findings.Read.All() {
		states, of := s.Judgement.States[condition], values[int(condition)*each:][:each]
		raised := v.Findings.Of(condition) == canonical.Raised
		for i := range of {
			if state := firstRaised + canonical.Health(i); states.Has(state) {
				of[i] = indicator(raised && v.States[condition] == state)
			}
		}
	}
}

// fillConditionsRead sets the number of conditions whose input was read.
func fillConditionsRead(values []float64, s *canonical.Snapshot, device int) {
	values[0] = float64(bits.OnesCount32(uint32(s.Verdicts[device].Findings.Read)))
}

// raisesNothing reports whether no condition of a board is raised.
func raisesNothing(s *canonical.Snapshot, device int) bool {
	return s.Verdicts[device].Findings.Raised == 0
}

// actionTails returns a tail for each action.
func actionTails() []string {
	tails := make([]string, canonical.NumActions)
	for action := range canonical.NumActions {
		tails[action] = tail(fmt.Sprintf("action=%q", action))
	}
	return tails
}

// fillAction sets the recommended action to 1; the others have no series.
func fillAction(values []float64, s *canonical.Snapshot, device int) {
	fillNaN(values)
	if v := &s.Verdicts[device]; v.Health != canonical.HealthUnknown {
		values[v.Action] = 1
	}
}

func classLabel(c canonical.Class) string { return fmt.Sprintf("class=%q", c) }

func bottleneckLabel(c canonical.Class) string {
	return fmt.Sprintf("bottleneck=%q", canonical.Classes[c].Bottleneck)
}

func stateLabel(h canonical.Health) string { return fmt.Sprintf("state=%q", h) }

// indicator returns 1 for yes and 0 for no.
func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
