package expose

import (
	"fmt"
	"math"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// deviceFamily is a family with series of devices.
type deviceFamily struct {
	header
	lines []deviceLine
}

// deviceLine is one series that a device can have in a family.
type deviceLine struct {
	tail string
	// value returns NaN where the device has no such series.
	value func(s *canonical.Snapshot, device int) float64
}

// deviceFamilies returns the families of devices, but for gpu_info, in the order
// of the exposition.
func deviceFamilies() []deviceFamily {
	var list []deviceFamily
	for f := range canonical.NumFields {
		info := &canonical.Fields[f]
		if beginsFamily(f) {
			s := Series{Name: info.Name, Type: info.Type, Help: info.Help}
			list = append(list, deviceFamily{header: newHeader(s)})
		}
		last := &list[len(list)-1]
		last.lines = append(last.lines, fieldLines(f)...)
	}
	for _, c := range []struct {
		family family
		lines  []deviceLine
	}{
		{utilizationFamily, []deviceLine{{tail(), utilization}}},
		{coverageFamily, []deviceLine{{tail(), coverage}}},
		{classFamily, classLines()},
		{healthFamily, healthLines()},
		{conditionFamily, conditionLines()},
	} {
		list = append(list, deviceFamily{newHeader(families[c.family]), c.lines})
	}
	return list
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

// A board that the source did not read itself has no utilization and no class.

func utilization(s *canonical.Snapshot, device int) float64 {
	if s.Frame.Topology.Devices[device].Implied {
		return math.NaN()
	}
	return s.Verdicts[device].RealUtilization
}

func coverage(s *canonical.Snapshot, device int) float64 {
	if s.Frame.Topology.Devices[device].Implied {
		return math.NaN()
	}
	return s.Verdicts[device].Coverage
}

func classLines() []deviceLine {
	var lines []deviceLine
	for class := range canonical.NumClasses {
		info := &canonical.Classes[class]
		labels := fmt.Sprintf("class=%q,bottleneck=%q", info.Name, info.Bottleneck)
		lines = append(lines, deviceLine{tail(labels), func(s *canonical.Snapshot, device int) float64 {
			if s.Frame.Topology.Devices[device].Implied {
				return math.NaN()
			}
			return indicator(s.Verdicts[device].Class == class)
		}})
	}
	return lines
}

func healthLines() []deviceLine {
	var lines []deviceLine
	for state := range canonical.NumHealth {
		lines = append(lines, deviceLine{tail(fmt.Sprintf("state=%q", state)), func(s *canonical.Snapshot, device int) float64 {
			if s.Frame.Topology.Devices[device].IsInstance() {
				return math.NaN()
			}
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
			labels := fmt.Sprintf("condition=%q,state=%q", condition, state)
			lines = append(lines, deviceLine{tail(labels), func(s *canonical.Snapshot, device int) float64 {
				v := &s.Verdicts[device]
				if s.Judgement.States[condition] != state || v.Findings[condition] == canonical.NotRead || s.Frame.Topology.Devices[device].IsInstance() {
					return math.NaN()
				}
				return indicator(v.Findings[condition] == canonical.Raised)
			}})
		}
	}
	return lines
}

// indicator is the value of a series that says yes or no.
func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
