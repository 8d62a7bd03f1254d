package client

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Key identifies a device among those of all nodes. The zero Key means no device.
type Key struct {
	Node           string // Node.URL, as two nodes may have the same name
	UUID, Instance string // UUID is "index:HOST/N" for a board without one
}

func keyOf(url string, d *canonical.Device) Key {
	if d.UUID == "" {
		return Key{url, "index:" + d.Hostname + "/" + d.GPU, d.Instance}
	}
	return Key{url, d.UUID, d.Instance}
}

// GPU is a device as an exposition reports it: a board, or a MIG instance. It is immutable. Values
// that are not reported are "" or NaN.
type GPU struct {
	Key Key
	canonical.Device

	Values      [canonical.NumFields]float64 // in the units of canonical.Fields
	ClockEvents []string                     // reasons for which the clocks are lowered now

	RealUtilization float64 // a fraction
	Class           canonical.Class
	Verdict
	Cut  bool // a board that has MIG instances, even if a filter hides them
	Gone bool // a board that is not in the reading, or was expected and never seen: it has no readings

	Allocations []Allocation
	Ended       []Allocation // accounts of allocations that are over, for as long as the proxy serves these
	Holders     float64      // allocations, including those that the proxy leaves out
	// UtilizedSeconds over KnownSeconds is the mean real utilization since the proxy first saw the device.
	UtilizedSeconds, KnownSeconds float64
}

// Verdict is what the proxy decided about a board, and the errors that it saw. An instance has
// HealthUnknown.
type Verdict struct {
	Health canonical.Health
	Raised []RaisedCondition // worst first
	Action canonical.Action  // NumActions if it is not reported
	XIDs   []uint32          // codes that were seen
	XIDAt  time.Time         // when the last one first came, by the node's clock; zero if that is not known
}

// RaisedCondition is a raised condition of a board, and the state that it causes.
type RaisedCondition struct {
	Condition canonical.Condition
	State     canonical.Health
}

// Allocation is the use of a device by one workload, with its ledger.
type Allocation struct {
	canonical.Allocation
	// Seconds is the age of the allocation; UtilizedSeconds over KnownSeconds is its
	// mean real utilization. They are NaN if they are not reported.
	Seconds, UtilizedSeconds, KnownSeconds float64
	Classes                                [canonical.NumClasses]float64 // seconds; 0 if they are not reported
	Energy                                 float64                       // joules; NaN if it is not reported
}

// newAllocation returns the allocation of a sample, without an account.
func newAllocation(s *sample) Allocation {
	nan := math.NaN()
	return Allocation{
		Allocation: canonical.Allocation{
			Workload: canonical.Workload{
				Namespace: s.label("workload_namespace"), Pod: s.label("workload_pod"), Container: s.label("workload_container"), Job: s.label("hpc_job"),
			},
			Kind: s.label("workload_kind"), Name: s.label("workload_name"),
			User: s.label("hpc_user"), Account: s.label("hpc_account"), Partition: s.label("hpc_partition"),
		},
		Seconds: nan, UtilizedSeconds: nan, KnownSeconds: nan, Energy: nan,
	}
}

// NewGPU returns a device, without readings, of the node at url.
func NewGPU(url string, d canonical.Device) *GPU {
	nan := math.NaN()
	g := &GPU{
		Key: keyOf(url, &d), Device: d, RealUtilization: nan, Class: canonical.ClassUnknown,
		Verdict: Verdict{Health: canonical.HealthUnknown, Action: canonical.NumActions}, Holders: nan, UtilizedSeconds: nan, KnownSeconds: nan,
	}
	for i := range g.Values {
		g.Values[i] = nan
	}
	return g
}

// Blank returns g without its readings, which may be too old to be shown.
func (g *GPU) Blank() *GPU { return NewGPU(g.Key.Node, g.Device) }

// Silent returns what is known of g once its node has stopped answering: the last readings,
// but not whether its conditions are still raised.
func (g *GPU) Silent() *GPU {
	silent := *g
	silent.Health, silent.Raised, silent.Action, silent.ClockEvents = canonical.HealthUnknown, nil, canonical.NumActions, nil
	return &silent
}

// codes returns the XIDs that were seen on a board: those that are listed, else the last one.
func (g *GPU) codes() []uint32 {
	if last := g.Values[canonical.XIDLast]; len(g.XIDs) == 0 && last > 0 && last <= canonical.HighestXID {
		return []uint32{uint32(last)}
	}
	return g.XIDs
}

// WorstXID returns the row of the worst code that was seen on a board, and false if there was none.
func (g *GPU) WorstXID() (row canonical.XIDRow, ok bool) {
	for _, code := range g.codes() {
		r, _ := canonical.XIDOf(code)
		severity, _ := r.On(g.Model)
		if worst, _ := row.On(g.Model); !ok || severity > worst {
			row, ok = r, true
		}
	}
	return row, ok
}

// Lost reports whether a board that is missing is gone: until then its proxy calls its health unknown.
func (g *GPU) Lost() bool { return g.Gone && g.Health == canonical.HealthCrit }

// Loss returns what to do about a board that is gone, and the XID that explains the loss, such as
// "XID 79: The driver lost the board."; "" if there is none. A code that is not fatal explains no
// loss, and nothing less than a reboot brings the board back.
func (g *GPU) Loss() (action canonical.Action, meaning string) {
	action = canonical.ActionIfGone
	row, found := g.WorstXID()
	if severity, asked := row.On(g.Model); found && severity == canonical.SeverityFatal {
		action, meaning = max(action, asked), fmt.Sprintf("XID %d: %s", row.Code, row.Meaning)
	}
	return action, meaning
}

// ShownXID returns the code to show as the last one. If that is 0, which some exporters report
// after the error, but an XID condition is raised, ShownXID returns the worst code.
func (g *GPU) ShownXID() float64 {
	last := g.Values[canonical.XIDLast]
	raised := slices.ContainsFunc(g.Raised, func(r RaisedCondition) bool { return canonical.Conditions[r.Condition].Field == canonical.XIDLast })
	if row, ok := g.WorstXID(); ok && last == 0 && raised {
		return float64(row.Code)
	}
	return last
}

// MeanUtilization returns the mean real utilization since the proxy first saw the
// device, or NaN if it was never known.
func (g *GPU) MeanUtilization() float64 {
	if !(g.KnownSeconds > 0) {
		return math.NaN()
	}
	return g.UtilizedSeconds / g.KnownSeconds
}

// Unprofiled reports whether GPU-Util is all that is known of how much g is used: without profiling counters there is no
// real utilization.
func (g *GPU) Unprofiled() bool {
	v := &g.Values
	return canonical.Given(v[canonical.NVMLUtilization]) && !canonical.Given(g.RealUtilization) &&
		!canonical.Given(v[canonical.SMActive]) && !canonical.Given(v[canonical.GraphicsEngineActive])
}

// Use returns the metric that shows how much g is used: GPU-Util if there is no other.
func (g *GPU) Use() Metric {
	if g.Unprofiled() {
		return MetricNVML
	}
	return MetricReal
}

// Label returns the name of g in messages, such as GPU 3 or GPU 3:9.
func (g *GPU) Label() string { return "GPU " + g.ID() }

// ID returns the short name of g: 3, or 3:9 for an instance.
func (g *GPU) ID() string {
	if g.IsInstance() {
		return g.GPU + ":" + g.Instance
	}
	return g.GPU
}

// Matches reports whether a typed word names g: by its ID (or, as it once was, index.instance), by
// HOST/ID, or by the first 4 or more characters of a board's UUID.
func (g *GPU) Matches(word string) bool {
	const enough = 4
	id := strings.Replace(strings.TrimPrefix(word, g.Hostname+"/"), ".", ":", 1)
	return id == g.ID() ||
		!g.IsInstance() && len(word) >= enough && strings.HasPrefix(strings.ToLower(g.UUID), strings.ToLower(word))
}
