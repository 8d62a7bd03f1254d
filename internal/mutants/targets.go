package main

// target is a package to mutate, whose tests must notice.
type target struct {
	dir string
	// suites are directories of packages with tests, the target's own first. Each suite runs only
	// for mutants that survive the previous ones. A regular expression behind a directory chooses
	// tests.
	suites []string
}

// wholeProgram are tests that run the program over captures and random bodies, and hold all of its
// output.
const wholeProgram = "internal/e2e ^Test(Golden|Differential|CompatPages)$"

// targets are the packages that determine the meaning of a reading.
var targets = []target{
	{"internal/compute", []string{"internal/compute", "internal/pipeline", "internal/expose", wholeProgram}},
	{"internal/canonical", []string{"internal/canonical", "internal/compute", "internal/translate", "internal/pipeline", "internal/expose", wholeProgram}},
	{"internal/translate", []string{"internal/translate", "internal/pipeline", "internal/counters", "internal/config", wholeProgram}},
	{"internal/dcgm", []string{"internal/dcgm", "internal/counters", "internal/source/dcgmi"}},
	{"internal/rules", []string{"internal/rules"}},
	{"internal/source/dcgmi/dmon", []string{"internal/source/dcgmi/dmon", "internal/source/dcgmi", "internal/source/replay"}},
}
