// Package nvml reads the GPUs of this machine through NVIDIA's management
// library, without DCGM, and gives the exposition that a dcgm-exporter would serve.
//
// Every board is read by a goroutine of its own, because driver calls may never
// return. On Hopper and later, NVML's GPM counts what the profiling fields
// of DCGM count: two samples of counters give the averages between them. A reading
// that a board does not have is absent, and is asked for once.
//
// The library is loaded when a Source is first read, so that the program needs a driver
// neither to build nor to start. It is called through cgo: without cgo, New fails and
// says how to build.
package nvml

import (
	"log/slog"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/dcgm"
)

// MinPeriod is the shortest period worth asking for: NVML's counters are no newer
// (nvml.h, nvmlGpmSampleGet). The command line enforces it, New does not.
const MinPeriod = 100 * time.Millisecond

// standardPeriod is Options.Period where it is not given.
const standardPeriod = time.Second

// standardLibrary is Options.LibraryPath where it is not given.
const standardLibrary = "libnvidia-ml.so.1"

// Options configure a Source.
type Options struct {
	// Period between two readings; 0 is one second.
	Period time.Duration
	// Choose chooses which devices to read; nil chooses all. It is called from the
	// goroutine of Read.
	Choose dcgm.Chooser
	// JobMappingDir is the directory of dcgm-exporter's --hpc-job-mapping-dir,
	// whose jobs become labels; "" is none.
	JobMappingDir string
	// Hostname is the label hostname of all series; "" is none.
	Hostname string
	// Page selects what of a reading is passed on; nil selects all.
	Page *dcgm.Page
	// LibraryPath is the argument of dlopen; "" is libnvidia-ml.so.1.
	LibraryPath string
	// Logger logs what is in no error of Read. Nil discards it.
	Logger *slog.Logger
}

// complete returns o with what was not given.
func (o Options) complete() Options {
	if o.Period <= 0 {
		o.Period = standardPeriod
	}
	if o.LibraryPath == "" {
		o.LibraryPath = standardLibrary
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
