// Package compute derives real utilization, workload class and health from readings. It does not
// know where readings come from, and has no clock: the time is that of the frame.
package compute

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Options configure a Judge. Start from DefaultOptions.
type Options struct {
	// Weights are those of the composite, scaled to sum to 1. If all are 0, those of Preset apply.
	Weights canonical.Weights
	// Preset is the name of one of Presets. It may be "" or Custom if Weights
	// are given.
	Preset string
	// Missing is the policy for inputs that were not read.
	Missing Missing
	// MinCoverage is the share of the weight, in [0, 1], whose inputs must have
	// been read for Renormalize to give a score. Zero ignores it.
	MinCoverage float64
	Thresholds  Thresholds
	// States are the health states that each condition can raise; an empty set turns it off. A
	// finding in a state that is not among them raises the worst of them.
	States [canonical.NumConditions]canonical.HealthSet
	// ExpectedGPUs is how many boards the node should have; 0 means no expectation.
	ExpectedGPUs int
	// MaxDevices and MaxAllocations limit the accounts of the ledger, including those
	// of devices and allocations that left. These are dropped first, in the order in which they
	// left. 0 means no limit.
	MaxDevices, MaxAllocations int
	// XIDs replace rows of the table of XIDs.
	XIDs map[uint32]XIDOverride
	// XIDHold is how long a fatal XID keeps its condition raised if nothing resolves it.
	XIDHold time.Duration
	// Birth is how long a counter that begins after its device or allocation is shown as 0 at least,
	// from LeastBirth to MostBirth.
	Birth time.Duration
}

// Bounds of Options.Birth, both included.
const (
	LeastBirth = time.Second
	MostBirth  = 5 * time.Minute
)

// DefaultOptions returns the preset ai, Renormalize with a coverage of at least half, and
// KempnerPulse's thresholds.
func DefaultOptions() Options {
	return Options{
		Preset:      Presets[0].Name,
		MinCoverage: 0.5,
		Thresholds:  DefaultThresholds(),
		States:      canonical.DefaultStates(),
		XIDHold:     24 * time.Hour,
		Birth:       time.Minute,
	}
}

// Judge gives verdicts on the readings of one source and keeps the accounts of its devices
// and allocations. It keeps state from reading to reading, so it must see every reading of
// the source, in order. It belongs to the goroutine that reads the source and is not safe
// for concurrent use; what Judgement and Inputs return never changes and may be shared.
type Judge struct {
	composite   composite
	thresholds  Thresholds
	rules       []classRule
	judgement   canonical.Judgement
	inputs      []canonical.Field
	memory      memory
	allocations allocations
	xids        xidRules
	birth       time.Duration
	interval    time.Duration     // as SetInterval said
	events      []canonical.Event // those for Events, then later ones
	judged      int               // how many of them are for Events
	evidence    evidence          // scratch
}

// OptionError is an option that is out of its range.
type OptionError struct {
	// Option is the path of its key in the config file, such as
	// thresholds.idle_engine; "" if the file has none.
	Option string
	// Text says what is wrong and what to give instead.
	Text string
}

// Error implements error.
func (e *OptionError) Error() string { return e.Text }

// Reject returns the error of an option.
func Reject(option, format string, args ...any) *OptionError {
	return &OptionError{option, fmt.Sprintf(format, args...)}
}

// Check returns all options that are out of range.
func (o *Options) Check() (wrong []*OptionError) {
	if _, _, err := o.weights(); err != nil {
		wrong = append(wrong, err)
	}
	if o.Missing >= numMissing {
		wrong = append(wrong, Reject("missing_inputs", "missing inputs policy %d is unknown: use one of %s", o.Missing, strings.Join(missingWords[:], ", ")))
	}
	if !(o.MinCoverage >= 0 && o.MinCoverage <= 1) {
		wrong = append(wrong, Reject("min_coverage", "minimum coverage is %v: make it a fraction from 0 to 1, such as 0.5", o.MinCoverage))
	}
	wrong = append(wrong, o.Thresholds.check()...)
	for c, s := range o.States {
		if s&^(canonical.RaisesHot|canonical.RaisesWarn|canonical.RaisesCrit) != 0 {
			wrong = append(wrong, Reject("health", "health condition %s cannot raise states %#b: make it hot, warn or crit, or none to "+
				"turn it off", canonical.Condition(c), s))
		}
	}
	for code, x := range o.XIDs {
		if code == 0 || x.Severity >= canonical.NumSeverities || x.Action >= canonical.NumActions {
			wrong = append(wrong, Reject(fmt.Sprintf("xids.%d", code), "XID %d cannot have severity %d and action %d: name one of each for a code "+
				"above 0", code, x.Severity, x.Action))
		}
	}
	if o.XIDHold <= 0 {
		wrong = append(wrong, Reject("xid_hold", "%v is too short: make xid_hold a positive duration, such as 24h", o.XIDHold))
	}
	if o.Birth < LeastBirth || o.Birth > MostBirth {
		wrong = append(wrong, Reject("series.birth", "%v is out of range; give two scrape intervals or more, from %v to %v", o.Birth, LeastBirth, MostBirth))
	}
	for _, l := range []struct {
		name  string
		value int
	}{
		{"expected GPUs", o.ExpectedGPUs},
		{"greatest number of devices", o.MaxDevices},
		{"greatest number of allocations", o.MaxAllocations},
	} {
		if l.value < 0 {
			wrong = append(wrong, Reject("", "%s is %d: make it at least 1, or 0 for none in particular", l.name, l.value))
		}
	}
	return wrong
}

// New returns a Judge, or the first error of Check.
func New(o Options) (*Judge, error) {
	if wrong := o.Check(); len(wrong) > 0 {
		return nil, wrong[0]
	}
	preset, weights, _ := o.weights()
	j := &Judge{
		composite:   composite{weights, o.Missing, o.MinCoverage},
		thresholds:  o.Thresholds,
		judgement:   canonical.Judgement{Preset: preset, Weights: weights, States: o.States},
		inputs:      inputs(&o.States),
		memory:      memory{expected: o.ExpectedGPUs, limit: o.MaxDevices},
		allocations: allocations{limit: o.MaxAllocations},
		xids:        xidRules{maps.Clone(o.XIDs)},
		birth:       o.Birth,
	}
	j.thresholds.Temperatures = slices.Clone(o.Thresholds.Temperatures)
	j.rules = cascade(&j.thresholds)
	j.evidence.memory, j.evidence.thresholds, j.evidence.hold = &j.memory, &j.thresholds, o.XIDHold
	for c := range conditions {
		if conditions[c].rate != nil {
			j.evidence.rates[c] = conditions[c].rate(&j.thresholds)
		}
	}
	return j, nil
}

// weights returns the name of the preset, or Custom, and its normalised weights.
func (o *Options) weights() (string, canonical.Weights, *OptionError) {
	given := o.Weights != canonical.Weights{}
	for _, p := range Presets {
		if p.Name == o.Preset && (!given || o.Weights == p.Weights) {
			return p.Name, p.Weights, nil
		}
	}
	if !given {
		names := make([]string, len(Presets))
		for i, p := range Presets {
			names[i] = p.Name
		}
		return "", canonical.Weights{}, Reject("preset", "preset %q is unknown: use one of %s, or give weights", o.Preset, strings.Join(names, ", "))
	}
	w, err := normalise(o.Weights)
	if err != nil {
		return "", w, Reject("weights", "%v", err)
	}
	return Custom, w, nil
}

// inputs returns the readings that a Judge with these states needs, in the order of
// canonical.Fields. NVML utilization is not among them: it replaces a missing graphics engine,
// and its own absence costs nothing. Nor are the inputs of conditions that are not basic: many
// boards never have them, and the last XID is absent until one occurs.
func inputs(states *[canonical.NumConditions]canonical.HealthSet) []canonical.Field {
	fields := []canonical.Field{
		canonical.SMActive, canonical.TensorActive, canonical.DRAMActive, canonical.GraphicsEngineActive,
		canonical.MemoryCopyUtilization, canonical.PCIeTransmit, canonical.PCIeReceive, canonical.FP64Active,
	}
	for i, c := range conditions {
		if canonical.Conditions[i].Basic && states[i] != 0 {
			fields = append(fields, c.Inputs[0]) // most boards report no margin
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// Judgement returns the configuration behind the verdicts. Do not write to it.
func (j *Judge) Judgement() *canonical.Judgement { return &j.judgement }

// Alternates reports whether the source read one node, another, and then one again within the last hour. Boards that leave so are
// not lost.
func (j *Judge) Alternates() bool { return j.memory.alternates() }

// Inputs returns the readings whose absence weakens a verdict, in the order of
// canonical.Fields. Do not write to them.
func (j *Judge) Inputs() []canonical.Field { return j.inputs }

// SetInterval sets the longest interval of all scrapers, 0 if there is none, for the next readings.
func (j *Judge) SetInterval(longest time.Duration) { j.interval = longest }

// Youth returns how long a counter that begins now is shown as 0: two scrape intervals, and at least
// Options.Birth. Allocations are remembered for an interval, and at least a minute, longer.
func (j *Judge) Youth() time.Duration { return Youth(j.birth, j.interval) }

// Youth returns the same for an Options.Birth and the longest interval of all scrapers.
func Youth(birth, interval time.Duration) time.Duration { return max(birth, 2*interval) }

// Judge returns a verdict for each device of f, in the memory of verdicts if it is large enough,
// and writes the warning temperature into the rows of the boards. It allocates nothing if f has
// the topology of the previous call and verdicts is the slice that the call returned.
func (j *Judge) Judge(f *canonical.Frame, verdicts []canonical.Verdict) []canonical.Verdict {
	n := f.Len()
	verdicts = slices.Grow(verdicts[:0], n)[:n]
	if f.At.Before(j.memory.at) {
		j.allocations.departed.rewind(f.At)
	}
	topology := j.memory.topology
	j.forget()
	j.memory.advance(f, &j.thresholds)
	if f.Topology != topology {
		for _, d := range j.memory.present {
			j.renew(d)
		}
	}
	j.observeXIDs(f)
	j.memory.observeAbsences(f)
	j.evidence.at, j.evidence.reading, j.evidence.switches = f.At, j.memory.readings, f.Switches
	for i, d := range j.memory.present {
		if !d.IsInstance() {
			d.links.observe(f.Row(i)[canonical.NVLinksActive], j.thresholds.SteadyReadings)
		}
	}
	for i, d := range j.memory.present {
		row, v := f.Row(i), &verdicts[i]
		*v = canonical.Verdict{
			RealUtilization: math.NaN(),
			RealPercent:     math.NaN(),
			Coverage:        math.NaN(),
			Class:           canonical.ClassUnknown,
			Health:          canonical.HealthUnknown,
		}
		found := profiling(row, j.thresholds.StalledUtilization)
		if !d.Implied {
			j.judgeActivity(d, row, found, v)
		}
		if !d.IsInstance() {
			row[canonical.TemperatureWarning] = d.warning
			d.observeRises(row, f.At, &j.evidence.rates)
			j.evidence.row, j.evidence.device, j.evidence.profiling = row, d, found
			j.evidence.health(&j.judgement.States, v)
			v.Action = j.evidence.action(v)
			j.addConditions(d, v, f.At)
		}
	}
	j.judged = len(j.events)
	return verdicts
}

// judgeActivity sets real utilization, coverage and class. A row with stalled profiling gets only
// a coverage. Without any activity a board on which no kernel ran is idle; in MIG mode its
// GPU-Util says nothing.
func (j *Judge) judgeActivity(d *device, row []float64, found canonical.Finding, v *canonical.Verdict) {
	percent, coverage := j.composite.score(row)
	v.Coverage = coverage
	if found == canonical.NotRead && row[canonical.NVMLUtilization] == 0 && !d.IsInstance() && len(d.instances) == 0 {
		v.Class = canonical.Idle
	}
	if found == canonical.Raised || !canonical.Given(percent) {
		return
	}
	v.RealPercent, v.RealUtilization = percent, percent/100
	var s signals
	s.read(row, v.RealUtilization, j.composite.missing, &j.thresholds)
	v.Class = walk(j.rules, &s)
}

// Resume makes j, which has judged nothing yet, continue from the state of other: its
// devices, their events, and the accounts. other must not be used afterwards. The limits
// stay j's; counts are not judged again.
func (j *Judge) Resume(other *Judge) {
	expected, devices, allocations := j.memory.expected, j.memory.limit, j.allocations.limit
	j.memory, j.allocations = other.memory, other.allocations
	j.memory.expected, j.memory.limit, j.allocations.limit = expected, devices, allocations
	for _, d := range j.memory.present {
		d.warning = j.thresholds.warning(d.Model)
	}
	j.events = append(j.events[:0], other.events[other.judged:]...)
	for _, d := range j.memory.devices {
		j.renew(d)
	}
}
