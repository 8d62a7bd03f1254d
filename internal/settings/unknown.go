package settings

import (
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// OwnVariables is the prefix of our variables.
const OwnVariables = "KPULSE_"

// isOfOthers reports whether a variable with our prefix is one of the scripts in deploy/slurm, or one
// that Kubernetes sets for a Service named kpulse or kpulse-….
func isOfOthers(name, value string) bool {
	return strings.HasPrefix(name, "KPULSE_JOBS_") || name == "KPULSE_RESUME" || name == "KPULSE_REQUIRE" || strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_TCP") ||
		strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://")
}

// unknownVariable is a variable with our prefix that belongs to no setting. Its value, which may
// be a secret, is not kept.
type unknownVariable struct {
	Name string
	// Near is the variable that was probably meant; "" for none.
	Near string
}

// UnknownVariables returns the unknown variables of an environment such as os.Environ, sorted by
// name.
func UnknownVariables(environment []string) (unknown []unknownVariable) {
	var known []string
	for i := range table {
		if table[i].Flag != "" {
			known = append(known, table[i].Variable())
		}
	}
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, OwnVariables) && !slices.Contains(known, name) && !isOfOthers(name, value) {
			unknown = append(unknown, unknownVariable{name, nearestVariable(name, known)})
		}
	}
	slices.SortFunc(unknown, func(a, b unknownVariable) int { return strings.Compare(a.Name, b.Name) })
	return unknown
}

// nearestVariable returns the variable that was probably meant: one that differs in a few
// letters, or that has further words before those of name.
func nearestVariable(name string, known []string) string {
	word := strings.TrimPrefix(name, OwnVariables)
	if near := diag.Within(name, known, len(word)/3); near != "" {
		return near
	}
	if i := slices.IndexFunc(known, func(k string) bool { return word != "" && strings.HasSuffix(k, "_"+word) }); i >= 0 {
		return known[i]
	}
	return diag.Within(name, known, len(word)/2)
}

// WarnOfUnknown logs a warning about each unknown variable.
func WarnOfUnknown(environment []string, warn func(string, ...any)) {
	for _, v := range UnknownVariables(environment) {
		remedy := "unset it; kpulse-proxy --help lists the variables"
		if v.Near != "" {
			remedy = "did you mean " + v.Near + "?"
		}
		warn("unknown environment variable", "variable", v.Name, "remedy", remedy)
	}
}
