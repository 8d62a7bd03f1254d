package translate

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// FieldOf returns the reading that a family of this name gives, whichever version
// of the exporter calls it so.
func FieldOf(family string) (canonical.Field, bool) {
	for i := range dialect {
		if slices.Contains(dialect[i].Names, family) {
			return dialect[i].Field, true
		}
	}
	return 0, false
}
