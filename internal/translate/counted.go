package translate

import (
	"slices"
	"strings"
)

// countedPrefix begins the names of the families that dcgm-exporter counts by itself. It
// writes their rows for each board found at its start, even for one lost since: they do not
// show that the board is there (on 4.8.2, a lost board keeps a count of XIDs and a health
// status, both 0, and none of its fields).
const countedPrefix = "DCGM_EXP_"

// The families that count XIDs by their code.
const (
	xidWindowFamily = "DCGM_EXP_XID_ERRORS_COUNT"
	xidTotalFamily  = "DCGM_EXP_XID_ERRORS_TOTAL" // since 4.8.3
)

// CountedFamilies returns the names of the families that dcgm-exporter counts by itself,
// without a field of DCGM. Those of XIDs become the Frame's XIDs; the others give no reading.
func CountedFamilies() []string {
	return []string{
		"DCGM_EXP_CLOCK_EVENTS_COUNT",
		"DCGM_EXP_CLOCK_EVENTS_TOTAL", // since 4.8.3
		xidWindowFamily,
		xidTotalFamily,
		"DCGM_EXP_GPU_HEALTH_STATUS",
		"DCGM_EXP_P2P_STATUS",
	}
}

// isCounted reports whether dcgm-exporter counts a family by itself, families of later
// versions included.
func isCounted(name string) bool { return strings.HasPrefix(name, countedPrefix) }

// isKnownCounted reports whether a family is one of CountedFamilies.
func isKnownCounted(name string) bool { return slices.Contains(CountedFamilies(), name) }
