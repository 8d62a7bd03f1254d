package tui

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Key is what makes a device itself, whatever else is read of it. It can be
// compared. The zero Key is no device.
type Key struct {
	Node           string // Node.URL: two nodes may have the same name
	UUID, Instance string // UUID is "index:N" for a board without one
}

// GPU is a device as an exposition told of it: a board, or a MIG instance. It is
// immutable. What was not told is "", or NaN.
type GPU struct {
	Key Key
	// Node is the name of the node it is in, as its series carry it.
	Node string
	// Index is the board's on its node, UUID the board's, also on an instance.
	Index, UUID string
	// MIGInstance and MIGProfile are "" on a board.
	MIGInstance, MIGProfile string

	Model, Device, PCIBusID, Driver string

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

// Allocation is the hold of one workload on a device, with its account.
type Allocation struct {
	Namespace, Pod, Container, Kind, Name, Job string
	// Seconds is how long it held the device, UtilizedSeconds over KnownSeconds
	// its mean real utilization. NaN where they were not told.
	Seconds, UtilizedSeconds, KnownSeconds float64
}

// IsInstance tells whether g is a MIG instance.
func (g *GPU) IsInstance() bool { return g.MIGInstance != "" }

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
