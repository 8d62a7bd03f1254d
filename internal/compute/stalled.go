package compute

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// Profiled are the activities that come from the hardware's profiling counters,
// which can stop counting while readings continue.
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

// profiling reports whether profiling has stopped counting: Raised if every activity that was
// read, at least one, is 0 while NVML utilization is at least busy. The activities of such a row
// cannot be trusted. It is NotRead if an input for the decision is missing.
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

func findStall(e *evidence, c *Criterion) canonical.Finding {
	return e.steady(e.profiling, e.thresholds.StalledReadings, e.thresholds.StalledSpan)
}
