// Package nvml reads the GPUs of this machine through NVIDIA's management library,
// without DCGM, and produces the exposition that a dcgm-exporter would serve.
//
// Every board is read by a goroutine of its own, because driver calls may never
// return. On Hopper and later, NVML's GPM provides DCGM's profiling fields, as
// averages between two samples of counters. A reading that a board does not have
// is requested once, and absent.
//
// The library is loaded when a Source is first read, so that the program builds and
// starts without a driver. It is called through cgo: without cgo, New fails and says
// how to build.
package nvml

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// MinPeriod is the shortest useful period: NVML's counters are not updated more
// often (nvml.h, nvmlGpmSampleGet). The command line enforces it, New does not.
const MinPeriod = 100 * time.Millisecond

// Options configure a Source.
type Options struct {
	// Period between two readings; 0 means one second.
	Period time.Duration
	// Choose chooses which devices to read; nil chooses all. It is called from the
	// goroutine of Read.
	Choose dcgm.Chooser
	// JobMappingDir is the directory of dcgm-exporter's --hpc-job-mapping-dir,
	// whose jobs become labels; "" means none.
	JobMappingDir string
	// Hostname is the label hostname of all series; "" means none.
	Hostname string
	// Page selects which part of a reading is passed on; nil selects all.
	Page *dcgm.Page
	// LibraryPath is the argument of dlopen; "" means libnvidia-ml.so.1.
	LibraryPath string
	// Logger logs what no error of Read reports. nil discards it.
	Logger *slog.Logger
}

// complete returns o with defaults filled in.
func (o Options) complete() Options {
	o.Period, o.LibraryPath = cmp.Or(max(o.Period, 0), time.Second), cmp.Or(o.LibraryPath, "libnvidia-ml.so.1")
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}
