//go:build cgo && linux

package nvml

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// Gives reports whether NVML provides the DCGM field with that id for some boards.
func Gives(id int) bool {
	at := slices.IndexFunc(dcgm.Fields[:], func(f dcgm.Field) bool { return f.ID == id })
	if at < 0 {
		return false
	}
	column := dcgm.Fields[at].Column
	return slices.ContainsFunc(boardReadings, func(r getter) bool { return slices.Contains(r.columns, column) }) ||
		slices.ContainsFunc(steadyFields, func(f field) bool { return f.column == column }) ||
		slices.ContainsFunc(linkFields, func(f field) bool { return f.column == column }) ||
		slices.ContainsFunc(gpmMetrics, func(m gpmMetric) bool { return m.column == column }) ||
		slices.Contains(fabricColumns[:], column) || column == "XIDER" || column == "NBWLT"
}
