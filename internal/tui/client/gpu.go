package client

import (
	"math"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Key is what makes a device itself, whatever else is read of it. It can be
// compared. The zero Key is no device.
type Key struct {
	Node           string // Node.URL: two nodes may have the same name
	UUID, Instance string // UUID is "index:HOST/N" for a board without one
}

func keyOf(url string, d *canonical.Device) Key {
	if d.UUID == "" {
		return Key{url, "index:" + d.Hostname + "/" + d.GPU, d.Instance}
	}
	return Key{url, d.UUID, d.Instance}
}

// GPU is a device as an exposition told of it: a board, or a MIG instance. It is
// immutable. What was not told is "", or NaN.
type GPU struct {
	Key Key
	// Device is what its series name it by.
	canonical.Device

	// Values are in the units of canonical.Fields. Of ClockEvents there is none:
	// see ClockEvents below.
	Values [canonical.NumFields]float64
	// ClockEvents are the reasons for which the clocks are held down now, in the
	// order of canonical.ClockEventReasons. They were not told if
	// ClockEventsKnown is false.
	ClockEvents      []string
	ClockEventsKnown bool

	// RealUtilization and Coverage are fractions.
	RealUtilization, Coverage float64
	Class                     canonical.Class
	// Health and Raised are of boards; HealthUnknown on an instance.
	Health canonical.Health
	Raised []RaisedCondition // worst first

	// Cut is set of a board that has MIG instances, also where a filter hides them.
	Cut bool

	// Gone is set of a board that is missed: it vanished, or was expected and
	// never seen. Nothing else is known of it.
	Gone bool

	Allocations []Allocation
	// Holders is how many workloads hold the device, those included that
	// Allocations leaves out.
	Holders float64

	XIDChanges   float64
	XIDChangedAt time.Time // zero: not known, or not since the proxy started

	// The ledger's seconds since the proxy first saw the device.
	ClassSeconds    [canonical.NumClasses]float64
	HealthSeconds   [canonical.NumHealth]float64
	ObservedSeconds float64
	// UtilizedSeconds over KnownSeconds is the mean real utilization.
	UtilizedSeconds, KnownSeconds float64
}

// RaisedCondition is something wrong with a board, and the state it puts it into.
type RaisedCondition struct {
	Condition canonical.Condition
	State     canonical.Health
}

// Allocation is the use of a device by one workload, with its account.
type Allocation struct {
	canonical.Allocation
	// Seconds is how long it has had the device; UtilizedSeconds over KnownSeconds
	// is its mean real utilization. NaN where the proxy does not report them.
	Seconds, UtilizedSeconds, KnownSeconds float64
}

// NewGPU returns a device of the node at url without readings.
func NewGPU(url string, d canonical.Device) *GPU {
	nan := math.NaN()
	g := &GPU{
		Key: keyOf(url, &d), Device: d,
		RealUtilization: nan, Coverage: nan, Class: canonical.ClassUnknown, Health: canonical.HealthUnknown,
		Holders: nan, XIDChanges: nan, ObservedSeconds: nan, UtilizedSeconds: nan, KnownSeconds: nan,
	}
	for _, all := range [...][]float64{g.Values[:], g.ClassSeconds[:], g.HealthSeconds[:]} {
		for i := range all {
			all[i] = nan
		}
	}
	return g
}

// Label is what people call g, such as GPU 3 or GPU 3 MIG 9.
func (g *GPU) Label() string {
	if g.IsInstance() {
		return "GPU " + g.GPU + " MIG " + g.Instance
	}
	return "GPU " + g.GPU
}

// Value returns a reading in the unit of its field, NaN if it was not given.
func (g *GPU) Value(f canonical.Field) float64 { return g.Values[f] }

// Bottleneck returns what bounds the device: idle, compute, memory, io, mixed or
// unknown.
func (g *GPU) Bottleneck() string { return canonical.Classes[g.Class].Bottleneck }

// MeanUtilization returns the mean real utilization since the proxy first saw the
// device, NaN where it was never known.
func (g *GPU) MeanUtilization() float64 {
	if !(g.KnownSeconds > 0) {
		return math.NaN()
	}
	return g.UtilizedSeconds / g.KnownSeconds
}

// Sick tells whether g is a board whose health is worse than ok.
func (g *GPU) Sick() bool {
	return g.Health == canonical.HealthHot || g.Health == canonical.HealthWarn || g.Health == canonical.HealthCrit
}

// Label is how people call the holder of a device: its job, or its pod with the
// namespace.
func (a *Allocation) Label() string {
	switch {
	case a.Pod == "":
		return "job " + a.Job
	case a.Namespace == "":
		return a.Pod
	default:
		return a.Namespace + "/" + a.Pod
	}
}

// ID is g in few letters: 3, or 3.9 for an instance.
func (g *GPU) ID() string {
	if g.IsInstance() {
		return g.GPU + "." + g.Instance
	}
	return g.GPU
}

// Matches reports whether people may mean g by word: its ID (or, as in CSV,
// index:instance), node/ before either, or at least 4 characters of the UUID.
func (g *GPU) Matches(word string) bool {
	const enough = 4
	id := strings.Replace(strings.TrimPrefix(word, g.Hostname+"/"), ":", ".", 1)
	return id == g.ID() ||
		!g.IsInstance() && len(word) >= enough && strings.HasPrefix(strings.ToLower(g.UUID), strings.ToLower(word))
}
