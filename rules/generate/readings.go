package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// readings are the fields that the rules need.
func readings() []canonical.Field {
	fields := []canonical.Field{
		canonical.SMActive, canonical.TensorActive, canonical.DRAMActive, canonical.GraphicsEngineActive, canonical.NVMLUtilization,
		canonical.FP64Active, canonical.MemoryCopyUtilization, canonical.PCIeTransmit, canonical.PCIeReceive,
	}
	fields = append(append(fields, compute.WithinSM[:]...), compute.Profiled[:]...)
	for _, c := range criteria() {
		fields = append(fields, c.Inputs...)
	}
	fields = append(fields, canonical.Energy) // falls when a board is reset
	slices.Sort(fields)
	return slices.Compact(fields)
}

// operations maps the suffix of a field's name, by unit, to the part of the recorded name after the
// last colon.
var operations = map[canonical.Unit]struct{ suffix, operation string }{
	canonical.Ratio:          {"_ratio", "ratio"},
	canonical.BytesPerSecond: {"_bytes_per_second", "bytes_per_second"},
	canonical.Celsius:        {"_celsius", "celsius"},
	canonical.Joules:         {"_joules_total", "joules"},
	canonical.Count:          {"_total", "total"},
	canonical.Flag:           {"", "flag"},
	canonical.Code:           {"_last", "last"},
	canonical.Bitmask:        {"_active", "active"},
}

// series returns the name of the series of a field: device:dcgm_sm_active:ratio for
// gpu_sm_active_ratio. Fields may share a series, as their families do.
func series(f canonical.Field) string {
	return stem(f) + operations[canonical.Fields[f].Unit].operation
}

// stem returns the name of the series of a field up to and including the last colon.
func stem(f canonical.Field) string {
	info := &canonical.Fields[f]
	name := strings.TrimSuffix(strings.TrimPrefix(info.Name, "gpu_"), operations[info.Unit].suffix)
	return "device:dcgm_" + name + ":"
}

// readingSection gives every reading one name, one unit and the labels of its device.
func readingSection() section {
	s := section{comment: "Readings in SI units, without blank and impossible values. Of readings that MIG instances\nrepeat for their board, the largest is recorded."}
	for _, f := range readings() {
		if f == canonical.NVMLUtilization {
			s.rules = append(s.rules, ratioOrPercent(f)...)
		}
		if canonical.Fields[f].Unit == canonical.Bitmask {
			s.rules = append(s.rules, bits(f)...)
			continue
		}
		var spellings []string
		for _, sp := range translate.Spellings(f) {
			if sp.PercentOrRatio {
				spellings = append(spellings, settled(&sp)...)
			} else {
				spellings = append(spellings, read(f, &sp))
			}
		}
		expr := strings.Join(spellings, "\nor\n")
		if len(spellings) > 1 {
			expr = "(\n" + indented(expr) + "\n)"
		}
		s.rules = append(s.rules, rule{series(f), canonical.Fields[f].Labels, unserved(expr)})
	}
	return s
}

// unserved keeps the devices that the proxy does not serve.
func unserved(expr string) string { return expr + "\nand on (uuid) " + infoSeries }

// labelsOf returns the labels of the device that has the reading f.
func labelsOf(f canonical.Field) string {
	if canonical.Fields[f].Level == canonical.BoardLevel {
		return boardLabels
	}
	return deviceLabels
}

// read selects one spelling of a field. If its numbers are already in SI units, rows out of range
// are dropped before the others are merged.
func read(f canonical.Field, s *translate.Spelling) string {
	if s.Times == s.Per {
		return clamped(s, merged(labelsOf(f), within(s, given(s))))
	}
	return clamped(s, within(s, converted(s, merged(labelsOf(f), given(s)))))
}

func converted(s *translate.Spelling, expr string) string {
	if s.Times != 1 {
		expr += " * " + number(s.Times)
	}
	if s.Per != 1 {
		expr += " / " + number(s.Per)
	}
	return expr
}

// given selects the families of a spelling, without the numbers that mean "no value". Such
// numbers out of range need no condition of their own.
func given(s *translate.Spelling) string {
	return notBlank(s, max(s.Highest, s.Overshoot)*s.Per/s.Times)
}

// notBlank returns the same as given, if numbers above top are out of range.
func notBlank(s *translate.Spelling, top float64) string {
	expr := gpuRows(anyOf(s.Names))
	for _, b := range s.Blanks {
		switch {
		case b.From > top:
		case math.IsInf(b.To, 1):
			expr += " < " + number(b.From)
		case b.To-b.From <= 4: // whole numbers all
			for n := b.From; n < b.To; n++ {
				expr += " != " + number(n)
			}
		default:
			expr = fmt.Sprintf("(%s < %s or %s >= %s)", expr, number(b.From), expr, number(b.To))
		}
	}
	return expr
}

// within drops values out of range.
func within(s *translate.Spelling, expr string) string {
	expr += " >= " + number(s.Lowest)
	if top := max(s.Highest, s.Overshoot); !math.IsInf(top, 1) {
		expr += " <= " + number(top)
	}
	return expr
}

func clamped(s *translate.Spelling, expr string) string {
	if s.Overshoot == 0 {
		return expr
	}
	return fmt.Sprintf("clamp_max(\n%s,\n%s)", indented(expr), number(s.Highest))
}

// bits records a series for each bit of a mask that a condition tests: 1 if any row of the board
// has the bit set.
func bits(f canonical.Field) []rule {
	var rules []rule
	for _, e := range reasons(^uint64(0)) {
		var spellings []string
		for _, s := range translate.Spellings(f) {
			bit := fmt.Sprintf("floor(%s / %d) %% 2", named(fmt.Sprintf("max by (%s) (\n%s\n)", sourceLabels, indented(within(&s, given(&s))))), e.Bit)
			spellings = append(spellings, fmt.Sprintf("max by (%s) (\n%s\n)", labelsOf(f), indented(bit)))
		}
		rules = append(rules, rule{series(f), fmt.Sprintf("reason=%q", e.Reason), unserved(strings.Join(spellings, "\nor\n"))})
	}
	return rules
}

// reasons returns the bits of a mask that conditions test.
func reasons(mask uint64) (list []canonical.ClockEvent) {
	var used uint64
	for _, c := range criteria() {
		used |= c.Mask
	}
	for _, e := range canonical.ClockEventReasons {
		if e.Bit&used&mask != 0 {
			list = append(list, e)
		}
	}
	return list
}
