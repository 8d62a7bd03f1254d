package rules

import "time"

// Options say what a rule may be.
type Options struct {
	// Window is how far back rules can see; 0 is no limit.
	Window time.Duration
	// Served are the names of the families that we serve, all with
	// canonical.Prefix: a rule may select them and no others with the prefix, and
	// may not record under a name with it. None is any.
	Served []string
	// ForPrometheus is set for files that Prometheus is to evaluate. What works
	// there and not here then only warns: names that collide with ours or are not
	// legal in the text format, a reach beyond the window, an interval too short.
	// A series with our prefix that nobody serves is wrong there; here it warns.
	ForPrometheus bool
}

// Load reads the files that the patterns name, each once. A pattern is a file, or a
// glob as filepath.Match has it; one that names no file is a problem. The set holds
// all groups and rules without an error, so it is complete only where the problems
// do not Refuse it; there may be warnings even then.
func Load(opts Options, patterns ...string) (*Set, Problems) {
	return &Set{}, nil
}
