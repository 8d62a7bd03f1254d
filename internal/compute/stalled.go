package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Profiled are the activities that come from the hardware's profiling counters,
// which can stop counting while their readings go on.
var Profiled = [...]canonical.Field{
	canonical.SMActive,
	canonical.SMOccupancy,
	canonical.TensorActive,
	canonical.TensorHMMAActive,
	canonical.TensorIMMAActive,
	canonical.TensorDFMAActive,
	canonical.TensorDMMAActive,
	canonical.TensorQMMAActive,
	canonical.FP64Active,
	canonical.FP32Active,
	canonical.FP16Active,
	canonical.IntActive,
	canonical.GraphicsEngineActive,
	canonical.DRAMActive,
}

// profiling reports whether profiling has stopped counting: Raised where every activity that
// was read, at least one, is 0 while NVML utilization is at least busy. The activities of
// such a row are not to be believed. It is NotRead where an input for the decision is
// missing.
func profiling(row []float64, busy float64) canonical.Finding {
	v := row[canonical.NVMLUtilization]
	if !canonical.Given(v) {
		return canonical.NotRead
	}
	found := canonical.NotRead
	for _, f := range Profiled {
		switch {
		case !canonical.Given(row[f]):
		case row[f] != 0 || v < busy:
			return canonical.Clear
		default:
			found = canonical.Raised
		}
	}
	return found
}

// streak is a run of readings of one board in which profiling was stalled.
type streak struct {
	found    canonical.Finding // in the latest reading
	readings int
	since    time.Time
}

// observe continues the streak with what profiling found. Clear and NotRead both end it.
func (s *streak) observe(found canonical.Finding, at time.Time) {
	switch {
	case found != canonical.Raised:
		*s = streak{found: found}
	case s.readings == 0:
		*s = streak{found, 1, at}
	default:
		s.readings++
	}
}

func findStall(e *evidence, _ *Criterion) canonical.Finding {
	s, t := &e.device.stall, e.thresholds
	if s.found == canonical.Raised && (s.readings < t.StalledReadings || e.at.Sub(s.since) < t.StalledSpan) {
		return canonical.Clear
	}
	return s.found
}
