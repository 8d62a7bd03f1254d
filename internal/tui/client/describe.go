package client

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// ClassName is the name of a class on the screen, in full and in at most 9 letters.
type ClassName struct{ Long, Short string }

// ClassNames is indexed by Class.
var ClassNames = func() (names [canonical.NumClasses]ClassName) {
	for c, short := range [canonical.NumClasses]string{
		canonical.Idle:               "idle",
		canonical.TensorHeavyCompute: "tensor++",
		canonical.TensorCompute:      "tensor",
		canonical.FP64HPCCompute:     "fp64/hpc",
		canonical.IOOrDataLoading:    "I/O",
		canonical.MemoryBound:        "mem-bound",
		canonical.ComputeHeavy:       "compute++",
		canonical.ComputeActive:      "compute",
		canonical.MemoryActive:       "memory",
		canonical.BusyLowSMUse:       "low SM",
		canonical.LowUtilization:     "low util",
		canonical.MixedOrModerate:    "mixed",
		canonical.ClassUnknown:       "unknown",
	} {
		names[c] = ClassName{canonical.Classes[c].Title, short}
	}
	return names
}()

// InMIG stands for the class of a board that is known only from its instances.
var InMIG = ClassName{"in MIG instances", "in MIG"}

// BusyByUtil stands for the class of a device of which only GPU-Util is known, and is not 0.
var BusyByUtil = ClassName{"busy by GPU-Util", "busy"}

// ActionWords returns an action in words, such as "reset GPU".
func ActionWords(a canonical.Action) string {
	return strings.NewReplacer("_", " ", "gpu", "GPU", "vm", "VM").Replace(a.String())
}

// Why says what is wrong with g, worst first, such as "fatal XID 79, GPU hot 96°C"; "" if nothing is.
func (g *GPU) Why() string {
	switch {
	case g.Lost():
		return "no longer seen"
	case g.Gone:
		return "missing from the latest reading"
	}
	texts := make([]string, len(g.Raised))
	for i, raised := range g.Raised {
		texts[i] = g.ConditionText(raised.Condition)
	}
	return strings.Join(texts, ", ")
}

// ConditionText returns the name of a condition with what raised it, such as "GPU hot 96°C".
func (g *GPU) ConditionText(c canonical.Condition) string {
	info := &canonical.Conditions[c]
	v := g.Values[min(info.Field, canonical.NumFields-1)]
	switch {
	case info.Field == canonical.XIDLast:
		return info.Title + g.codesText(c)
	case !info.Valued || !canonical.Given(v):
		return info.Title
	case canonical.Fields[info.Field].Unit == canonical.Celsius:
		return fmt.Sprintf("%s %.0f°C", info.Title, v)
	}
	return fmt.Sprintf("%s %.0f", info.Title, v)
}

// codesText returns the codes that may have raised a condition on XIDs, such as " 48 79": those
// that were seen, or the last one if none are listed. It omits codes of other severities, which
// may have followed the one that raised the condition.
func (g *GPU) codesText(c canonical.Condition) (text string) {
	const most = 3
	other := func(code uint32) bool {
		row, _ := canonical.XIDOf(code)
		return row.Severity != severities[c]
	}
	for i, code := range slices.DeleteFunc(slices.Clone(g.codes()), other) {
		if i == most {
			return text + " …"
		}
		text += fmt.Sprintf(" %d", code)
	}
	return text
}

// severities are those of the XIDs that raise a condition.
var severities = map[canonical.Condition]canonical.Severity{
	canonical.CondXIDFatal:    canonical.SeverityFatal,
	canonical.CondXIDRecent:   canonical.SeverityWarning,
	canonical.CondXIDRepeated: canonical.SeverityApplication,
}

// Holder returns the shortest name of the workload that uses g, or "" if there is none or it
// is not reported.
func (g *GPU) Holder() string {
	if len(g.Allocations) == 0 {
		return ""
	}
	a := &g.Allocations[0]
	if a.Pod == "" && a.Job != "" {
		return strings.TrimSpace("job " + a.Job + "  " + a.Owner())
	}
	return cmp.Or(a.Pod, a.Name, a.Container, a.Namespace)
}
