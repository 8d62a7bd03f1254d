package settings

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// OwnVariables is the prefix of our variables.
const OwnVariables = "KPULSE_"

// otherVariables matches the variables of our tests and of the scripts in deploy/slurm, and those
// that Kubernetes sets for a Service named kpulse or kpulse-….
var otherVariables = regexp.MustCompile(`^KPULSE_(BENCH|BINARY|DCGM_STACK|DCGM_TOOLS|DEBIAN|DIFFERENTIAL|FLEET_[A-Z]+|KUBERNETES|THANOS|REQUIRE(_.*)?|SLOW|SOAK|RESUME|JOBS_[A-Z_]+)=|_SERVICE_(HOST|PORT|PORT_[A-Z0-9_]+)=|_PORT_[0-9]+_(TCP|UDP|SCTP)(_[A-Z]+)?=|_PORT=[a-z]+://`)

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
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, OwnVariables) && !slices.Contains(known, name) && !otherVariables.MatchString(entry) {
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
