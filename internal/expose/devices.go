package expose

import (
	"fmt"
	"math"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// deviceFamily is a family with series of devices, or of what workloads hold of
// them.
type deviceFamily struct {
	header
	of    subject
	reach reach
	kinds kind // of the devices that have series
	lines []deviceLine
}

// deviceLine is one series that a row can have in a family.
type deviceLine struct {
	tail string
	// value returns NaN where the row has no such series.
	value func(s *canonical.Snapshot, row int) float64
}

// deviceFamilies returns the families of devices and allocations, but for
// gpu_info, in the order of the exposition.
func deviceFamilies() []deviceFamily {
	var list []deviceFamily
	for f := range canonical.NumFields {
		info := &canonical.Fields[f]
		if beginsFamily(f) {
			s := Series{Name: info.Name, Type: info.Type, Help: info.Help}
			list = append(list, deviceFamily{newHeader(s), ofDevices, inReading, everyDevice, nil})
		}
		last := &list[len(list)-1]
		last.lines = append(last.lines, fieldLines(f)...)
	}
	return append(append(append(list, verdictFamilies()...), ledgerFamilies()...), allocationFamilies()...)
}

// verdictFamilies tell what is concluded of each reading. A board that the source
// did not read itself has no utilization and no class; health is the board's.
func verdictFamilies() []deviceFamily {
	verdicts := func(f family, kinds kind, lines ...deviceLine) deviceFamily {
		return deviceFamily{newHeader(families[f]), ofDevices, inReading, kinds, lines}
	}
	return []deviceFamily{
		verdicts(utilizationFamily, readDevices, deviceLine{tail(), func(s *canonical.Snapshot, device int) float64 {
			return s.Verdicts[device].RealUtilization
		}}),
		verdicts(coverageFamily, readDevices, deviceLine{tail(), func(s *canonical.Snapshot, device int) float64 {
			return s.Verdicts[device].Coverage
		}}),
		verdicts(classFamily, readDevices, classLines()...),
		verdicts(healthFamily, boards, healthLines()...),
		verdicts(conditionFamily, boards, conditionLines()...),
	}
}

// fieldLines are the series of one field: one, or one for each reason of a
// bitmask.
func fieldLines(f canonical.Field) []deviceLine {
	info := &canonical.Fields[f]
	if info.Unit != canonical.Bitmask {
		return []deviceLine{{tail(info.Labels), func(s *canonical.Snapshot, device int) float64 {
			return s.Frame.Row(device)[f]
		}}}
	}
	var lines []deviceLine
	for _, event := range canonical.ClockEventReasons {
		lines = append(lines, deviceLine{tail(fmt.Sprintf("reason=%q", event.Reason)), func(s *canonical.Snapshot, device int) float64 {
			mask := s.Frame.Row(device)[f]
			if !canonical.Given(mask) {
				return mask
			}
			return indicator(uint64(mask)&event.Bit != 0)
		}})
	}
	return lines
}

func classLines() []deviceLine {
	var lines []deviceLine
	for class := range canonical.NumClasses {
		lines = append(lines, deviceLine{tail(classLabel(class), bottleneckLabel(class)), func(s *canonical.Snapshot, device int) float64 {
			return indicator(s.Verdicts[device].Class == class)
		}})
	}
	return lines
}

func healthLines() []deviceLine {
	var lines []deviceLine
	for state := range canonical.NumHealth {
		lines = append(lines, deviceLine{tail(stateLabel(state)), func(s *canonical.Snapshot, device int) float64 {
			return indicator(s.Verdicts[device].Health == state)
		}})
	}
	return lines
}

// conditionLines are, for each condition, its series by the state that it is
// configured to raise; with HealthOK it is turned off and has none.
func conditionLines() []deviceLine {
	var lines []deviceLine
	for condition := range canonical.NumConditions {
		for state := canonical.HealthOK + 1; state < canonical.HealthUnknown; state++ {
			labels := tail(fmt.Sprintf("condition=%q", condition), stateLabel(state))
			lines = append(lines, deviceLine{labels, func(s *canonical.Snapshot, device int) float64 {
				v := &s.Verdicts[device]
				if s.Judgement.States[condition] != state || v.Findings[condition] == canonical.NotRead {
					return math.NaN()
				}
				return indicator(v.Findings[condition] == canonical.Raised)
			}})
		}
	}
	return lines
}

func classLabel(c canonical.Class) string { return fmt.Sprintf("class=%q", c) }

func bottleneckLabel(c canonical.Class) string {
	return fmt.Sprintf("bottleneck=%q", canonical.Classes[c].Bottleneck)
}

func stateLabel(h canonical.Health) string { return fmt.Sprintf("state=%q", h) }

// indicator is the value of a series that says yes or no.
func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
