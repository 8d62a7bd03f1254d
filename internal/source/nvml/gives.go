//go:build cgo && linux

package nvml

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// Gives reports whether NVML provides the DCGM field with that id for some boards.
func Gives(id int) bool {
	for t := range dcgm.Texts {
		if dcgm.Texts[t].ID == id {
			return textCalls[t].ask != nil
		}
	}
	field := slices.IndexFunc(dcgm.Fields[:], func(f dcgm.Field) bool { return f.ID == id })
	if field < 0 {
		return false
	}
	column := dcgm.Fields[field].Column
	for i := range boardReadings {
		if slices.Contains(boardReadings[i].columns, column) {
			return true
		}
	}
	for i := range valueFields {
		if valueFields[i].column == column {
			return true
		}
	}
	for i := range gpmMetrics {
		if gpmMetrics[i].column == column {
			return true
		}
	}
	for i := range linkErrorFields {
		if linkErrorFields[i].column == column {
			return true
		}
	}
	return slices.Contains([]string{"XIDER", "NBWLT", "FMHSUM", "FMFRC", dcgm.CliqueColumn}, column)
}
