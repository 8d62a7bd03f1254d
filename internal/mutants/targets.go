package main

// target is a package to mutate, whose tests must notice.
type target struct {
	dir string
	// suites are directories of packages with tests, the target's own first. Each suite runs only
	// for mutants that survive the previous ones.
	suites []string
}

// targets are the packages that determine the meaning of a reading.
var targets = []target{
	{"internal/compute", []string{"internal/compute", "internal/pipeline", "internal/expose"}},
	{"internal/canonical", []string{"internal/canonical", "internal/compute", "internal/translate", "internal/pipeline", "internal/expose"}},
	{"internal/translate", []string{"internal/translate", "internal/pipeline", "internal/counters", "internal/config"}},
	{"internal/dcgm", []string{"internal/dcgm", "internal/counters", "internal/source/dcgmi"}},
	{"internal/rules", []string{"internal/rules"}},
	{"internal/source/dcgmi/dmon", []string{"internal/source/dcgmi/dmon", "internal/source/dcgmi", "internal/source/replay"}},
}
