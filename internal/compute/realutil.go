package compute

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Preset is a named choice of weights. They sum to 1.
type Preset struct {
	Name    string
	Weights canonical.Weights
}

// Presets are the presets of KempnerPulse, the default first.
var Presets = [...]Preset{
	{"ai", canonical.Weights{SM: 0.35, Tensor: 0.35, DRAM: 0.20, Engine: 0.10}},
	{"hpc", canonical.Weights{SM: 0.45, Tensor: 0.15, DRAM: 0.25, Engine: 0.15}},
	{"mem", canonical.Weights{SM: 0.35, Tensor: 0.10, DRAM: 0.40, Engine: 0.15}},
}

// Custom is the preset's name in a Judgement whose weights were given.
const Custom = "custom"

// weightsRemedy ends every error about weights.
const weightsRemedy = "give four finite numbers of at least 0, one of them positive, in the order sm,tensor,dram,engine, such as 0.35,0.35,0.2,0.1"

// ParseWeights reads the weights of SM, tensor, DRAM and graphics engine activity, in this order
// and separated by commas, and scales them to sum to 1. It fails unless they are four
// non-negative finite numbers with a positive one.
func ParseWeights(s string) (canonical.Weights, error) {
	parts := strings.Split(s, ",")
	if len(parts) != 4 {
		return canonical.Weights{}, fmt.Errorf("weights %q contain %d numbers: %s", s, len(parts), weightsRemedy)
	}
	var n [4]float64
	for i, p := range parts {
		v, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
		if err != nil {
			return canonical.Weights{}, fmt.Errorf("weights %q: %w: %s", s, err, weightsRemedy)
		}
		n[i] = v
	}
	return normalise(canonical.Weights{SM: n[0], Tensor: n[1], DRAM: n[2], Engine: n[3]})
}

// normalise scales w to sum to 1. Weights that already do, except for rounding, stay as they are.
func normalise(w canonical.Weights) (canonical.Weights, error) {
	for _, v := range [...]float64{w.SM, w.Tensor, w.DRAM, w.Engine} {
		if v < 0 { // the sum finds NaN
			return canonical.Weights{}, fmt.Errorf("a weight is %v: %s", v, weightsRemedy)
		}
	}
	sum := w.SM + w.Tensor + w.DRAM + w.Engine
	if !(sum > 0 && sum <= math.MaxFloat64) {
		return canonical.Weights{}, fmt.Errorf("the weights sum to %v: %s", sum, weightsRemedy)
	}
	if math.Abs(sum-1) <= 1e-12 {
		return w, nil
	}
	return canonical.Weights{SM: w.SM / sum, Tensor: w.Tensor / sum, DRAM: w.DRAM / sum, Engine: w.Engine / sum}, nil
}

// Missing is the policy for an input of the score that was not read.
type Missing uint8

const (
	// Renormalize divides the score by the weight that was present.
	Renormalize Missing = iota
	// Zero counts a missing input as 0, as KempnerPulse does.
	Zero
	numMissing
)

// missingWords is indexed by Missing.
var missingWords = [numMissing]string{Renormalize: "renormalize", Zero: "zero"}

// String returns the word that ParseMissing reads.
func (m Missing) String() string { return missingWords[m] }

// ParseMissing reads "renormalize" or "zero".
func ParseMissing(word string) (Missing, error) {
	for m, w := range missingWords {
		if w == word {
			return Missing(m), nil
		}
	}
	return 0, fmt.Errorf("missing inputs cannot be treated as %q: use one of %s", word, strings.Join(missingWords[:], ", "))
}

// coverageSlack keeps rounding from deciding whether the minimum is reached:
// 0.1 + 0.4 of the weights is a coverage of 0.5.
const coverageSlack = 1e-9

// composite computes the score from a device's readings.
type composite struct {
	weights     canonical.Weights // they sum to 1
	missing     Missing
	minCoverage float64 // in [0, 1]; Zero ignores it
}

// score returns real utilization in percent, NaN if unknown, and the share of its weight whose
// input was read, in [0, 1]. row is indexed by canonical.Field.
//
// The sum is taken in percent and in the order SM, tensor, DRAM, engine because
// KempnerPulse does so: a score on the very edge of idle then rounds to the same
// side of it. The conversions forbid fused multiply-adds, which round
// differently on some machines.
func (c *composite) score(row []float64) (percent, coverage float64) {
	inputs := [...]struct{ value, weight float64 }{
		{row[canonical.SMActive], c.weights.SM},
		{row[canonical.TensorActive], c.weights.Tensor},
		{row[canonical.DRAMActive], c.weights.DRAM},
		{engineActivity(row), c.weights.Engine},
	}
	given := 0
	for _, in := range inputs {
		if canonical.Given(in.value) {
			given++
			coverage += in.weight
			percent += float64(in.weight * float64(in.value*100))
		}
	}
	switch {
	case given == len(inputs):
		coverage = 1 // the weights' sum, without its rounding
	case c.missing == Zero && given > 0:
	case coverage >= c.minCoverage-coverageSlack:
		percent /= coverage // NaN for 0, also if only inputs without weight were read
	default:
		return math.NaN(), coverage
	}
	return max(0, min(percent, 100)), coverage
}

// engineActivity is the activity of the graphics engine or, where that is absent, NVML's
// utilization; NaN if both are.
func engineActivity(row []float64) float64 {
	if v := row[canonical.GraphicsEngineActive]; canonical.Given(v) {
		return v
	}
	return row[canonical.NVMLUtilization]
}

// profiled are the activities that come from the hardware's profiling counters,
// which can stop counting while readings continue.
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

// profiling reports whether profiling has stopped counting: Raised if every activity that was
// read, at least one, is 0 while NVML utilization is at least busy. The activities of such a row
// cannot be trusted. It is NotRead if an input for the decision is missing.
func profiling(row []float64, busy float64) canonical.Finding {
	v := row[canonical.NVMLUtilization]
	if !canonical.Given(v) {
		return canonical.NotRead
	}
	found := canonical.NotRead
	for _, f := range profiled {
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
