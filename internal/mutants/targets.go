package main

// target is a package whose source is broken, and whose tests have to notice.
type target struct {
	dir string
	// suites are the directories of packages with tests, its own first: those of the next
	// run only for mutants that survive the ones before.
	suites []string
}

// targets are the packages that decide what a reading means.
var targets = []target{
	{"internal/compute", []string{"internal/compute", "internal/pipeline", "internal/expose"}},
	{"internal/canonical", []string{"internal/canonical", "internal/compute", "internal/translate", "internal/pipeline", "internal/expose"}},
	{"internal/translate", []string{"internal/translate", "internal/pipeline", "internal/counters", "internal/config"}},
	{"internal/dcgm", []string{"internal/dcgm", "internal/counters", "internal/source/dcgmi"}},
	{"internal/rules", []string{"internal/rules"}},
	{"internal/source/dcgmi/dmon", []string{"internal/source/dcgmi/dmon", "internal/source/dcgmi", "internal/source/replay"}},
}
