package settings

import (
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// ownVariables is the prefix of our variables.
const ownVariables = "KPULSE_"

// isOfOthers reports whether a variable with our prefix is one of the scripts in deploy/slurm, or one
// that Kubernetes sets for a Service named kpulse or kpulse-….
func isOfOthers(name, value string) bool {
	return strings.HasPrefix(name, "KPULSE_JOBS_") || name == "KPULSE_RESUME" || name == "KPULSE_REQUIRE" ||
		strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_TCP") || strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://")
}

// WarnOfUnknown logs a warning about each variable of an environment such as os.Environ that has our
// prefix and belongs to no setting, but not its value, which may be a secret.
func WarnOfUnknown(environment []string, warn func(string, ...any)) {
	var known []string
	for i := range table {
		if table[i].Flag != "" {
			known = append(known, table[i].Variable())
		}
	}
	slices.Sort(environment)
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, ownVariables) || slices.Contains(known, name) || isOfOthers(name, value) {
			continue
		}
		remedy := "unset it; kpulse-proxy --help lists the variables"
		if near := diag.Within(name, known, len(name)/3); near != "" {
			remedy = "did you mean " + near + "?"
		}
		warn("unknown environment variable", "variable", name, "remedy", remedy)
	}
}
