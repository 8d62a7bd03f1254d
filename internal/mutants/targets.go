package main

// target is a package to mutate, whose tests must notice.
type target struct {
	dir string
	// suites are directories of packages with tests, the target's own first. Each suite runs only
	// for mutants that survive the previous ones.
	suites []string
	// files are the names of the files to mutate, all if nil: the others read, wait and write, and
	// determine no meaning.
	files []string
}

// targets are the packages that determine the meaning of a reading.
var targets = []target{
	{"internal/compute", []string{"internal/compute", "internal/pipeline", "internal/expose"}, nil},
	{"internal/canonical", []string{"internal/canonical", "internal/compute", "internal/translate", "internal/pipeline", "internal/expose"}, nil},
	{"internal/translate", []string{"internal/translate", "internal/pipeline", "internal/counters", "internal/config"}, nil},
	{"internal/source/dcgm", []string{"internal/source/dcgm", "internal/counters", "internal/source/dcgmi"}, nil},
	{"internal/rules", []string{"internal/rules"}, nil},
	{"internal/source/dcgm/dmon", []string{"internal/source/dcgm/dmon", "internal/source/dcgmi", "internal/source/replay"}, nil},
	{"internal/kernellog", []string{"internal/kernellog"}, []string{"nvlink.go", "nvlink5.csv", "record.go", "sxid.go", "xid.go"}},
	{"internal/source/nvml", []string{"internal/source/nvml"}, []string{"fabric.go", "fieldvalue.go", "gpm.go", "linkerrors.go", "linklimit.go", "reading.go", "result.go"}},
	{"internal/selection", []string{"internal/selection"}, nil},
}
