package compute

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// Watched returns the readings that a condition looks at: one of them must be there
// for anything to be found. Do not write to them.
func Watched(condition canonical.Condition) []canonical.Field { return conditions[condition].inputs }
