package checks

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// JobReport is the output of `report JOB`. What is not known is absent from its JSON.
type JobReport struct {
	Job       string `json:"job"`
	Namespace string `json:"namespace,omitempty"`
	User      string `json:"user,omitempty"`
	Account   string `json:"account,omitempty"`
	Partition string `json:"partition,omitempty"`
	Source    string `json:"source"` // fromProxies or fromPrometheus

	lifetime
	Sum      usage           `json:"sum"`
	GPUs     []jobGPU        `json:"gpus"`
	Missing  []missingNode   `json:"missing,omitempty"`
	Findings []adviceFinding `json:"advice"`
}

// Where the numbers of a report come from.
const fromProxies, fromPrometheus = "proxies", "prometheus"

// lifetime is when a job held GPUs, and what they did in the course of it, which only Prometheus knows.
type lifetime struct {
	Begin   time.Time `json:"begin,omitzero"`
	End     time.Time `json:"end,omitzero"`               // zero while it runs
	Seconds float64   `json:"seconds"`                    // from proxies the longest time on one GPU
	Earlier time.Time `json:"earlier_run_ended,omitzero"` // of an earlier run under the same name, which is not counted
	// AllIdle is the longest stretch in which all GPUs were idle, Fell the one at the end in which they did less than a quarter of before.
	AllIdle *stretch `json:"longest_all_idle,omitempty"`
	Fell    *stretch `json:"fell_at_the_end,omitempty"`
}

// stretch is a time within a job.
type stretch struct {
	Begin   time.Time `json:"begin"`
	Seconds float64   `json:"seconds"`
}

// missingNode is a node that could not be asked, and why.
type missingNode struct {
	Node    string `json:"node"`
	Problem string `json:"problem"`
}

// reading is a number, NaN if it is not known.
type reading float64

// IsZero leaves what is not known out of JSON.
func (r reading) IsZero() bool { return math.IsNaN(float64(r)) }

// MarshalJSON writes ten digits.
func (r reading) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(r), 'g', 10, 64), nil
}

// usage is what a job held and did, on one GPU or on all. A sum with an unknown term is unknown.
type usage struct {
	Held     reading            `json:"held_gpu_hours,omitzero"`
	Utilized reading            `json:"utilized_gpu_hours,omitzero"` // real utilization summed over the time in which it was known
	Known    reading            `json:"known_gpu_hours,omitzero"`    // that time
	Unused   reading            `json:"unused_gpu_hours,omitzero"`   // held, times what real utilization leaves
	Idle     reading            `json:"idle_gpu_hours,omitzero"`     // of these in the class idle: nothing ran
	Real     reading            `json:"real_utilization_ratio,omitzero"`
	NVML     reading            `json:"gpu_utilization_ratio,omitzero"` // GPU-Util, its mean
	Energy   reading            `json:"energy_joules,omitzero"`
	Power    reading            `json:"mean_power_watts,omitzero"`
	Classes  map[string]reading `json:"class_gpu_hours"`
}

// jobGPU is a GPU or MIG instance that a job held.
type jobGPU struct {
	Hostname string `json:"hostname"`
	GPU      string `json:"gpu"`
	UUID     string `json:"uuid"`
	Instance string `json:"mig_instance,omitempty"`
	Profile  string `json:"mig_profile,omitempty"`
	Model    string `json:"model,omitempty"`
	usage
	// Shared means that others held it too: GPU-Util and memory are then of all of them.
	Shared bool    `json:"shared,omitempty"`
	Peak   reading `json:"memory_peak_bytes,omitzero"`
	Total  reading `json:"memory_total_bytes,omitzero"`
	Now    *jobNow `json:"now,omitempty"`
	// Conditions and XIDs are those of its board while the job held it.
	Conditions []conditionReport `json:"conditions,omitempty"`
	XIDs       []uint32          `json:"xids,omitempty"`
}

// jobNow is the latest reading of a GPU of a job that runs.
type jobNow struct {
	Class  string  `json:"class"`
	Real   reading `json:"real_utilization_ratio,omitzero"`
	NVML   reading `json:"gpu_utilization_ratio,omitzero"`
	Memory reading `json:"memory_used_bytes,omitzero"`
	Power  reading `json:"power_watts,omitzero"`
	Heat   reading `json:"temperature_celsius,omitzero"`
}

func (g *jobGPU) device() canonical.Device {
	return canonical.Device{Hostname: g.Hostname, GPU: g.GPU, UUID: g.UUID, Instance: g.Instance}
}

// name is the name of a GPU in text, such as node7/3, or node7/3:9 of an instance.
func (g *jobGPU) name() string {
	const most = 24
	return diag.Line(g.Hostname, most) + "/" + diag.Line(g.GPU+prefixed(":", g.Instance), most)
}

// account is the counters of an allocation, in seconds and joules; NaN if not known.
type account struct {
	held, utilized, known, energy float64
	classes                       [canonical.NumClasses]float64
}

// inHours returns the usage of an account. nvml is the mean GPU-Util, NaN if it is not known.
func (a *account) inHours(nvml float64) usage {
	hour := reading(3600)
	u := usage{Held: reading(a.held) / hour, Utilized: reading(a.utilized) / hour, Known: reading(a.known) / hour, Energy: reading(a.energy),
		NVML: reading(nvml), Classes: map[string]reading{}}
	for c, seconds := range a.classes {
		if seconds > 0 {
			u.Classes[canonical.Classes[c].Name] = reading(seconds) / hour
		}
	}
	u.derive()
	return u
}

// derive fills in what follows from the rest.
func (u *usage) derive() {
	nan := reading(math.NaN())
	u.Idle, u.Real, u.Power = u.Held*u.share(canonical.Idle), nan, nan
	if u.Known > 0 {
		u.Real = u.Utilized / u.Known
	} else {
		u.Utilized = nan
	}
	u.Unused = u.Held * (1 - u.Real)
	if u.Held > 0 {
		u.Power = u.Energy / (u.Held * 3600)
	}
}

// share returns the share of the held hours in some classes, NaN if none is known.
func (u *usage) share(classes ...canonical.Class) (sum reading) {
	if len(u.Classes) == 0 {
		return reading(math.NaN())
	}
	for _, c := range classes {
		sum += u.Classes[c.String()] / u.Held
	}
	return sum
}

// sumOf returns the sum of the usage of GPUs.
func sumOf(gpus []jobGPU) usage {
	sum := usage{Classes: map[string]reading{}}
	for i := range gpus {
		g := &gpus[i]
		sum.Held, sum.Utilized, sum.Known = sum.Held+g.Held, sum.Utilized+g.Utilized, sum.Known+g.Known
		sum.Energy, sum.NVML = sum.Energy+g.Energy, sum.NVML+g.NVML*g.Held
		for class, hours := range g.Classes {
			sum.Classes[class] += hours
		}
	}
	sum.NVML /= sum.Held
	sum.derive()
	return sum
}

// finish orders the GPUs, and derives the sum and the advice.
func (r *JobReport) finish() {
	slices.SortFunc(r.GPUs, func(a, b jobGPU) int {
		first, second := a.device(), b.device()
		return cmp.Or(canonical.CompareDevices(&first, &second), cmp.Compare(a.UUID, b.UUID))
	})
	r.Sum = sumOf(r.GPUs)
	r.Findings = advise(r)
}

// setStretches finds the stretches in the mean real utilization, and in the share of GPUs that are idle, of each step; NaN is not known.
// A stretch of less than ten minutes is part of any work, and so is one of less than a tenth of the life: at the end only if it is
// shorter than half an hour too.
func (l *lifetime) setStretches(real, idle []float64, step time.Duration) {
	const short, share, long = 600, 0.1, 1800
	stretchOf := func(from, steps int, most float64) *stretch {
		seconds := float64(steps) * step.Seconds()
		if seconds < short || seconds < min(share*l.Seconds, most) {
			return nil
		}
		return &stretch{l.Begin.Add(time.Duration(from) * step), seconds}
	}
	longest, from, length := 0, 0, 0
	for i, share := range idle {
		if length++; !(share >= 1) {
			length = 0
		}
		if length > longest {
			longest, from = length, i+1-length
		}
	}
	l.AllIdle = stretchOf(from, longest, math.Inf(1))
	const fellTo, leastBefore = 0.25, 0.1
	for sum, from := 0.0, 0; from < len(real); from++ {
		before := sum / float64(from)
		if before >= leastBefore && !slices.ContainsFunc(real[from:], func(u float64) bool { return !(u < fellTo*before) }) {
			l.Fell = stretchOf(from, len(real)-from, long)
			return
		}
		if canonical.Given(real[from]) {
			sum += real[from]
		}
	}
}
