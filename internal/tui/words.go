package tui

import (
	"unicode/utf8"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// badge is how a state is told: a glyph and a word, so that it is not told by
// colour alone.
type badge struct {
	text  string // at most badgeWidth cells
	style screen.Style
}

// badgeWidth is the room for every badge, so that nothing moves when a state
// changes.
const badgeWidth = 6

// border is the style of the border of a card in that state; other where nothing
// is wrong.
func (b badge) border(other screen.Style) screen.Style {
	switch b.style {
	case styleCrit:
		return styleCritBorder
	case styleWarn:
		return styleWarnBorder
	default:
		return other
	}
}

// healthBadges is indexed by Health.
var healthBadges = [canonical.NumHealth]badge{
	canonical.HealthOK:      {"● OK", styleOK},
	canonical.HealthHot:     {"▲ HOT", styleWarn},
	canonical.HealthWarn:    {"▲ WARN", styleWarn},
	canonical.HealthCrit:    {"✖ CRIT", styleCrit},
	canonical.HealthUnknown: {missing, styleFaint},
}

// Those of a board that is missed, and of an instance, whose board has the health.
var goneBadge, instanceBadge = badge{"✖ GONE", styleCrit}, badge{"MIG", styleLabel}

// glyph returns the badge without its word.
func (b badge) glyph() string {
	_, n := utf8.DecodeRuneInString(b.text)
	return b.text[:n]
}

// badgeOf returns how g is.
func badgeOf(g *GPU) badge {
	switch {
	case g.Gone:
		return goneBadge
	case g.IsInstance():
		return instanceBadge
	}
	return healthBadges[g.Health]
}

// classWord is how a class is told: in full, in at most shortClass cells, and as a
// glyph of its bottleneck.
type classWord struct {
	long, short string
	style       screen.Style
	glyph       rune
}

// longClass and shortClass are the widths that fit every class.
const longClass, shortClass = 20, 9

// cutWords are of a board that is known from its instances alone: it has no class, and
// that is as it should be.
var cutWords = classWord{"in MIG instances", "in MIG", styleLabel, ' '}

// classOf returns the words for what a device does.
func classOf(g *GPU) *classWord {
	if g.Cut && g.Class == canonical.ClassUnknown {
		return &cutWords
	}
	return &classWords[g.Class]
}

// classWords is indexed by Class. The last is where nothing was read.
var classWords = [canonical.NumClasses + 1]classWord{
	canonical.Idle:               {"idle", "idle", styleIdle, '·'},
	canonical.TensorHeavyCompute: {"tensor-heavy compute", "tensor++", styleCompute, '━'},
	canonical.TensorCompute:      {"tensor compute", "tensor", styleCompute, '━'},
	canonical.FP64HPCCompute:     {"FP64 / HPC compute", "fp64/hpc", styleCompute, '━'},
	canonical.IOOrDataLoading:    {"I/O or data loading", "I/O", styleIO, '╍'},
	canonical.MemoryBound:        {"memory-bound", "mem-bound", styleMemory, '═'},
	canonical.ComputeHeavy:       {"compute-heavy", "compute++", styleCompute, '━'},
	canonical.ComputeActive:      {"compute-active", "compute", styleCompute, '━'},
	canonical.MemoryActive:       {"memory-active", "memory", styleMemory, '═'},
	canonical.BusyLowSMUse:       {"busy, low SM use", "low SM", styleMixed, '─'},
	canonical.LowUtilization:     {"low utilization", "low util", styleMixed, '─'},
	canonical.MixedOrModerate:    {"mixed / moderate", "mixed", styleMixed, '─'},
	canonical.ClassUnknown:       {"unknown", "unknown", styleFaint, '╌'},
	canonical.NumClasses:         {"", "", styleFaint, ' '},
}

// conditionWords say what is wrong, in the words of an operator. It is indexed by
// Condition.
var conditionWords = [canonical.NumConditions]string{
	canonical.CondRowRemapFailure:           "row remap failed",
	canonical.CondUncorrectableRemappedRows: "uncorrectable rows remapped",
	canonical.CondPCIeReplay:                "PCIe replays",
	canonical.CondGPUTemperature:            "GPU hot",
	canonical.CondMemoryTemperature:         "memory hot",
	canonical.CondXIDFatal:                  "fatal XID",
	canonical.CondXIDRecent:                 "recent XID",
	canonical.CondECCDoubleBit:              "double-bit ECC",
	canonical.CondRowRemapPending:           "row remap pending",
	canonical.CondThermalSlowdown:           "thermal slowdown",
	canonical.CondPowerBrake:                "power brake",
	canonical.CondNVLinkErrors:              "NVLink errors",
	canonical.CondProfilingStalled:          "profiling stalled",
}

// conditionFields are the readings that a condition is about; NumFields where it is
// about none that is shown.
var conditionFields = [canonical.NumConditions]canonical.Field{
	canonical.CondRowRemapFailure:           canonical.RowRemapFailure,
	canonical.CondUncorrectableRemappedRows: canonical.RemappedRowsUncorrectable,
	canonical.CondPCIeReplay:                canonical.PCIeReplays,
	canonical.CondGPUTemperature:            canonical.Temperature,
	canonical.CondMemoryTemperature:         canonical.MemoryTemperature,
	canonical.CondXIDFatal:                  canonical.XIDLast,
	canonical.CondXIDRecent:                 canonical.XIDLast,
	canonical.CondECCDoubleBit:              canonical.ECCDoubleBitVolatile,
	canonical.CondRowRemapPending:           canonical.RowRemapPending,
	canonical.CondThermalSlowdown:           canonical.Temperature,
	canonical.CondPowerBrake:                canonical.Power,
	canonical.CondNVLinkErrors:              canonical.NVLinkBytes,
	canonical.CondProfilingStalled:          canonical.NumFields,
}

// tells says whether the number of the condition's reading belongs to its words, as
// the code of an XID does and a counter does not.
func tells(c canonical.Condition) bool {
	switch c {
	case canonical.CondXIDFatal, canonical.CondXIDRecent, canonical.CondGPUTemperature, canonical.CondMemoryTemperature, canonical.CondUncorrectableRemappedRows:
		return true
	}
	return false
}

// fieldStyle is the style of a reading: that of the worst condition about it which
// the proxy has raised. What is wrong is the proxy's to say, not ours.
func fieldStyle(g *GPU, f canonical.Field) screen.Style {
	for _, raised := range g.Raised {
		if conditionFields[raised.Condition] == f {
			return healthBadges[raised.State].style
		}
	}
	return stylePlain
}

// appendWhy appends what is wrong with g, worst first, "" if nothing is. With what
// it can be sorted: "fatal XID 79, GPU hot 96°C".
func appendWhy(dst []byte, g *GPU) []byte {
	if g.Gone {
		return append(dst, "not seen any more"...)
	}
	for i, raised := range g.Raised {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, conditionWords[raised.Condition]...)
		f := conditionFields[raised.Condition]
		if !tells(raised.Condition) || !canonical.Given(g.Values[f]) {
			continue
		}
		if f == canonical.XIDLast && g.Values[f] == 0 {
			continue // a reset has cleared the code, and the condition holds on
		}
		dst = append(dst, ' ')
		if canonical.Fields[f].Unit == canonical.Celsius {
			dst = celsius(dst, g.Values[f])
		} else {
			dst = count(dst, g.Values[f])
		}
	}
	return dst
}

// holder returns who holds g, in the shortest words that tell it: pod, else job,
// else name; "" if nobody does or nobody tells.
func holder(g *GPU) string {
	if len(g.Allocations) == 0 {
		return ""
	}
	a := &g.Allocations[0]
	for _, s := range [...]string{a.Pod, a.Job, a.Name, a.Container, a.Namespace} {
		if s != "" {
			return s
		}
	}
	return ""
}
