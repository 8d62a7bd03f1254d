package client

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// ClassName is the name of a class on the screen, in full and in at most 9 letters.
type ClassName struct{ Long, Short string }

// ClassNames is indexed by Class.
var ClassNames = classNames()

func classNames() (names [canonical.NumClasses]ClassName) {
	for c := range names {
		names[c] = ClassName{canonical.Classes[c].Title, shortClasses[c]}
	}
	return names
}

var shortClasses = [canonical.NumClasses]string{
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
}

// InMIG stands for the class of a board that has none because it is known only from its
// instances.
var InMIG = ClassName{"in MIG instances", "in MIG"}

// ActionWords returns an action in words, such as "reset GPU".
func ActionWords(a canonical.Action) string {
	return strings.NewReplacer("_", " ", "gpu", "GPU", "vm", "VM").Replace(a.String())
}

// AppendWhy appends what is wrong with g, worst first, such as "fatal XID 79, GPU
// hot 96°C"; nothing if nothing is wrong.
func (g *GPU) AppendWhy(dst []byte) []byte {
	if g.Gone {
		return append(dst, "no longer seen"...)
	}
	for i, raised := range g.Raised {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = g.AppendCondition(dst, raised.Condition)
	}
	return dst
}

// AppendCondition appends the name of a condition with what raised it, such as "GPU hot 96°C".
func (g *GPU) AppendCondition(dst []byte, c canonical.Condition) []byte {
	info := &canonical.Conditions[c]
	if asked := g.Values[canonical.RecoveryAction]; c == canonical.CondRecoveryAction && asked > 0 && asked < float64(len(recoveries)) {
		dst = append(append(append(dst, "driver asks "...), recoveries[int(asked)]...), " ("...)
		return append(strconv.AppendInt(dst, int64(asked), 10), ')')
	}
	dst = append(dst, info.Title...)
	if info.Field == canonical.XIDLast {
		return g.appendXIDs(dst, c)
	}
	if !info.Valued || !canonical.Given(g.Values[info.Field]) {
		return dst
	}
	dst = strconv.AppendFloat(append(dst, ' '), g.Values[info.Field], 'f', 0, 64)
	if canonical.Fields[info.Field].Unit == canonical.Celsius {
		dst = append(dst, "°C"...)
	}
	return dst
}

// recoveries are what the driver asks for, by the value of canonical.RecoveryAction, as nvml.h
// numbers nvmlDeviceGpuRecoveryAction_t.
var recoveries = [...]string{
	"for nothing", "for a GPU reset", "for a node reboot", "to drain peer-to-peer", "to drain and reset the GPU", "to recover the IMEX domain",
}

// mostCodes bounds the codes that are shown with a condition.
const mostCodes = 3

// appendXIDs appends the codes that may have raised a condition on XIDs, such as " 48 79": those
// that were seen, or the last one if none are listed. It omits codes of other severities, which
// may have followed the one that raised the condition.
func (g *GPU) appendXIDs(dst []byte, c canonical.Condition) []byte {
	codes := g.XIDs
	if last := g.Values[canonical.XIDLast]; len(codes) == 0 && last > 0 {
		codes = []uint32{uint32(last)}
	}
	n := 0
	for _, code := range codes {
		if row, _ := canonical.XIDOf(code); row.Severity != severities[c] {
			continue
		}
		if n++; n > mostCodes {
			return append(dst, " …"...)
		}
		dst = strconv.AppendUint(append(dst, ' '), uint64(code), 10)
	}
	return dst
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
	return cmp.Or(a.Pod, a.Job, a.Name, a.Container, a.Namespace)
}
