package expose

import (
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/common/version"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// renderer renders readings as kpulse_ series in the text format. It is safe
// for concurrent use, and allocates nothing while devices and allocations stay the
// same.
type renderer struct {
	devices  []deviceFamily
	weight   header
	hosts    []deviceFamily
	switches header
	faults   header
	sources  []sourceFamily
	build    string
}

func newRenderer(f Form) *renderer {
	e := &renderer{
		devices:  f.deviceFamilies(),
		switches: f.header(switchSeries),
		faults:   f.header(faultSeries),
		sources:  f.sourceFamilies(),
	}
	if f.Full {
		e.weight, e.hosts = f.header(weightSeries), f.included(hostFamilies())
	}
	if h := f.header(buildSeries); !h.excluded() {
		e.build = buildInfo(&h)
	}
	return e
}

// layoutOf returns the layout of readings, which kept has if devices and allocations are the same.
func layoutOf(kept *atomic.Pointer[layout], readings []outcome) *layout {
	l := kept.Load()
	if !l.fits(readings) {
		l = newLayout(readings)
		kept.Store(l)
	}
	return l
}

// writeFurther renders the families that the upstreams lack. It omits HELP and TYPE of a family
// whose lines are passed through already.
func (o *output) writeFurther(kept *atomic.Pointer[layout], readings []outcome, passed bool) {
	o.further = o.further[:0]
	families := 0
	for i := range readings {
		var further canonical.Families
		if s := readings[i].snapshot; s != nil && s.Further != nil {
			further, families = s.Further, s.Further.Len()
		}
		o.further = append(o.further, further)
	}
	if families == 0 {
		return
	}
	l := layoutOf(kept, readings)
	for family := range families {
		header := !passed || !slices.ContainsFunc(o.further, func(f canonical.Families) bool { return f != nil && f.Begun(family) })
		for i, f := range o.further {
			if f == nil {
				continue
			}
			before := len(o.buf)
			o.buf = f.AppendFamily(o.buf, family, header, l.sources[i].shown)
			header = header && len(o.buf) == before
		}
		o.flushIfFull()
	}
}

// write renders readings, one for each source in order, into o. The last bytes stay in o
// until o is flushed.
func (e *renderer) write(o *output, kept *atomic.Pointer[layout], readings []outcome) {
	l := layoutOf(kept, readings)
	for i := range readings {
		readings[i].shared = l.sources[i].shared
	}
	for i := range e.devices {
		if o.err != nil {
			return
		}
		e.devices[i].write(o, l, readings)
	}
	e.writeWeights(&o.buffer, readings)
	for i := range e.hosts {
		e.hosts[i].write(o, l, readings)
	}
	e.writeSwitches(o)
	o.sources.reset()
	for i := range readings {
		o.sources.bytes = appendSource(o.sources.bytes, readings[i].source)
		o.sources.end()
	}
	for i := range e.sources {
		e.sources[i].write(o, readings)
	}
	o.buf = append(o.buf, e.build...)
}

// writeSwitches renders the errors of NVSwitches, and those that are fatal and not resolved.
func (e *renderer) writeSwitches(o *output) {
	headed := false
	for i := range o.switches {
		s := &o.switches[i]
		if e.switches.excluded() {
			break
		}
		o.buf = appendLabels(append(e.switches.begin(o.buf, &headed), '{'), "hostname", s.Hostname, "pci_bus_id", s.PCIBusID)
		o.buf = strconv.AppendUint(append(o.buf, `,sxid="`...), uint64(s.Code), 10)
		severity := canonical.SeverityWarning
		if s.Fatal {
			severity = canonical.SeverityFatal
		}
		o.buf = append(append(append(o.buf, `",severity="`...), severity.String()...), `"} `...)
		o.buf = strconv.AppendUint(o.buf, s.Count, 10)
		o.buf = append(o.buf, '\n')
	}
	headed = false
	for i := range o.faults {
		if s := &o.faults[i]; !e.faults.excluded() {
			o.buf = appendLabels(append(e.faults.begin(o.buf, &headed), '{'), "hostname", s.Hostname, "pci_bus_id", s.PCIBusID)
			o.buf = append(strconv.AppendUint(append(o.buf, `,sxid="`...), uint64(s.Code), 10), "\"} 1\n"...)
		}
	}
}

// writeWeights renders the weights that the first reading was judged by; they are the same for
// all.
func (e *renderer) writeWeights(b *buffer, readings []outcome) {
	headed := false
	for i := range readings {
		if readings[i].snapshot == nil || e.weight.excluded() {
			continue
		}
		judgement := readings[i].snapshot.Judgement
		for j := range weights {
			b.buf = appendLabels(append(e.weight.begin(b.buf, &headed), '{'), "input", weights[j].input, "preset", judgement.Preset)
			b.buf = append(exposition.AppendFloat(append(b.buf, "} "...), weights[j].of(&judgement.Weights)), '\n')
		}
		return
	}
}

// weights are the inputs of real utilization, with their names in the exposition.
var weights = [...]struct {
	input string
	of    func(*canonical.Weights) float64
}{
	{"sm", func(w *canonical.Weights) float64 { return w.SM }},
	{"tensor", func(w *canonical.Weights) float64 { return w.Tensor }},
	{"dram", func(w *canonical.Weights) float64 { return w.DRAM }},
	{"engine", func(w *canonical.Weights) float64 { return w.Engine }},
}

// buildInfo returns the family build_info.
func buildInfo(h *header) string {
	headed := false
	b := appendLabels(append(h.begin(nil, &headed), '{'),
		"version", version.Version, "revision", version.GetRevision(), "branch", version.Branch, "goversion", version.GoVersion,
		"goos", version.GoOS, "goarch", version.GoArch, "tags", version.GetTags())
	return string(append(b, "} 1\n"...))
}
