package client

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Key identifies a device among those of all nodes. It is comparable; the zero Key
// is no device.
type Key struct {
	Node           string // Node.URL, for two nodes may have the same name
	UUID, Instance string // UUID is "index:HOST/N" for a board without one
}

func keyOf(url string, d *canonical.Device) Key {
	if d.UUID == "" {
		return Key{url, "index:" + d.Hostname + "/" + d.GPU, d.Instance}
	}
	return Key{url, d.UUID, d.Instance}
}

// GPU is a device as an exposition reports it: a board, or a MIG instance. It is
// immutable. What is not reported is "", or NaN.
type GPU struct {
	Key Key
	canonical.Device

	// Values are in the units of canonical.Fields. ClockEvents has no value; the
	// reasons themselves are below.
	Values [canonical.NumFields]float64
	// ClockEvents are the reasons for which the clocks are lowered now, in the
	// order of canonical.ClockEventReasons.
	ClockEvents []string

	RealUtilization float64 // a fraction
	Class           canonical.Class
	// Health and Raised are a board's; an instance has HealthUnknown.
	Health canonical.Health
	Raised []RaisedCondition // worst first
	// Action is what someone has to do about a board, NumActions where that is not
	// reported.
	Action canonical.Action
	// XIDs are the codes that were seen of a board, as they are listed; XIDAt is when the
	// last one first came, by the node's clock, zero where that is not known.
	XIDs  []uint32
	XIDAt time.Time

	// Cut marks a board that has MIG instances, also if a filter hides them.
	Cut bool
	// Gone marks a board that vanished, or was expected and never seen. It has no
	// readings.
	Gone bool

	Allocations []Allocation
	// Holders is the number of allocations, with those that the proxy leaves out.
	Holders    float64
	XIDChanges float64
	// UtilizedSeconds over KnownSeconds is the mean real utilization since the
	// proxy first saw the device.
	UtilizedSeconds, KnownSeconds float64
}

// RaisedCondition is a condition of a board, and the state that it puts it into.
type RaisedCondition struct {
	Condition canonical.Condition
	State     canonical.Health
}

// Allocation is the use of a device by one workload, with its account.
type Allocation struct {
	canonical.Allocation
	// Seconds is the age of the allocation; UtilizedSeconds over KnownSeconds is its
	// mean real utilization. They are NaN if they are not reported.
	Seconds, UtilizedSeconds, KnownSeconds float64
}

// NewGPU returns a device of the node at url without readings.
func NewGPU(url string, d canonical.Device) *GPU {
	nan := math.NaN()
	g := &GPU{
		Key: keyOf(url, &d), Device: d, RealUtilization: nan, Class: canonical.ClassUnknown, Health: canonical.HealthUnknown, Action: canonical.NumActions,
		Holders: nan, XIDChanges: nan, UtilizedSeconds: nan, KnownSeconds: nan,
	}
	for i := range g.Values {
		g.Values[i] = nan
	}
	return g
}

// Blank returns g without its readings, which may be too old to be shown.
func (g *GPU) Blank() *GPU { return NewGPU(g.Key.Node, g.Device) }

// Silent returns g as it is known once its node has stopped answering: the readings were so,
// but nobody knows whether what was wrong still is.
func (g *GPU) Silent() *GPU {
	silent := *g
	silent.Health, silent.Raised, silent.Action, silent.ClockEvents = canonical.HealthUnknown, nil, canonical.NumActions, nil
	return &silent
}

// WorstXID returns the row of the worst code that was seen of a board: of those that are
// listed, else the last one. It reports false if there was none.
func (g *GPU) WorstXID() (row canonical.XIDRow, ok bool) {
	codes := g.XIDs
	if last := g.Values[canonical.XIDLast]; len(codes) == 0 && last > 0 && last <= canonical.HighestXID {
		codes = []uint32{uint32(last)}
	}
	for _, code := range codes {
		r, _ := canonical.XIDOf(code)
		severity, _ := r.On(g.Model)
		if worst, _ := row.On(g.Model); !ok || severity > worst {
			row, ok = r, true
		}
	}
	return row, ok
}

// ShownXID returns the code to show as the last one: one that stands behind what is raised
// comes before none, which some exporters read again after the error.
func (g *GPU) ShownXID() float64 {
	last := g.Values[canonical.XIDLast]
	if last != 0 || !slices.ContainsFunc(g.Raised, func(r RaisedCondition) bool { return Conditions[r.Condition].Field == canonical.XIDLast }) {
		return last
	}
	if row, ok := g.WorstXID(); ok {
		return float64(row.Code)
	}
	return last
}

// MeanUtilization returns the mean real utilization since the proxy first saw the
// device, NaN if it was never known.
func (g *GPU) MeanUtilization() float64 {
	if !(g.KnownSeconds > 0) {
		return math.NaN()
	}
	return g.UtilizedSeconds / g.KnownSeconds
}

// Label returns the name of g in messages, such as GPU 3 or GPU 3 MIG 9.
func (g *GPU) Label() string {
	if g.IsInstance() {
		return "GPU " + g.GPU + " MIG " + g.Instance
	}
	return "GPU " + g.GPU
}

// ID returns the short name of g: 3, or 3.9 for an instance.
func (g *GPU) ID() string {
	if g.IsInstance() {
		return g.GPU + "." + g.Instance
	}
	return g.GPU
}

// Matches reports whether a typed word means g: its ID (or, as in CSV,
// index:instance), HOST/ID, or at least 4 characters of a board's UUID.
func (g *GPU) Matches(word string) bool {
	const enough = 4
	id := strings.Replace(strings.TrimPrefix(word, g.Hostname+"/"), ":", ".", 1)
	return id == g.ID() ||
		!g.IsInstance() && len(word) >= enough && strings.HasPrefix(strings.ToLower(g.UUID), strings.ToLower(word))
}

// Label returns the name of a workload: its job, or its pod with the namespace.
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
