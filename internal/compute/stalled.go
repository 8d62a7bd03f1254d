package compute

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// profiled are the activities that come from the hardware's profiling counters,
// which can stop counting while their readings go on.
var profiled = [...]canonical.Field{
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

// stalled tells whether profiling has stopped counting: every activity that was
// read, and at least one was, is 0 while NVML utilization is at least busy. What
// such a row says of activity is not to be believed.
func stalled(row []float64, busy float64) bool {
	if !(row[canonical.NVMLUtilization] >= busy) {
		return false
	}
	read := false
	for _, f := range profiled {
		v := row[f]
		if !canonical.Given(v) {
			continue
		}
		if v != 0 {
			return false
		}
		read = true
	}
	return read
}
