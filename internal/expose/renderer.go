package expose

import (
	"slices"
	"strconv"

	"github.com/prometheus/common/version"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// renderer renders readings as kpulse_ series in the text format. It is safe
// for concurrent use, and allocates nothing while devices and allocations stay the
// same.
type renderer struct {
	info       header
	fabric     header
	devices    []deviceFamily
	weight     header
	hosts      []hostFamily
	switches   header
	sources    []sourceFamily
	sourceInfo header
	build      string
}

func newRenderer(f Form) *renderer {
	e := &renderer{
		info:       f.header(newHeader(families[infoFamily])),
		fabric:     f.header(newHeader(families[fabricFamily])),
		devices:    f.deviceFamilies(),
		weight:     f.header(newHeader(families[weightFamily])),
		hosts:      slices.DeleteFunc(hostFamilies(), func(one hostFamily) bool { return f.excludes(one.name) }),
		switches:   f.header(newHeader(families[sxidsFamily])),
		sources:    slices.DeleteFunc(sourceFamilies(), func(one sourceFamily) bool { return f.excludes(one.name) }),
		sourceInfo: f.header(newHeader(families[sourceInfoFamily])),
	}
	if h := f.header(newHeader(families[buildFamily])); !h.excluded() {
		e.build = buildInfo()
	}
	return e
}

// layoutOf returns the layout of readings, one for each source of v, in order.
func (v *view) layoutOf(readings []reading) *layout {
	l := v.layout.Load()
	if !l.fits(readings) {
		l = newLayout(readings, l)
		v.layout.Store(l)
	}
	return l
}

// writeFurther renders the families that the upstreams lack. It omits HELP and TYPE of a family
// whose lines are passed through already.
func (e *renderer) writeFurther(o *output, v *view, readings []reading, passed bool) {
	families := 0
	for i := range readings {
		if further := readings[i].further(); further != nil {
			families = further.Len()
		}
	}
	if families == 0 {
		return
	}
	l := v.layoutOf(readings)
	o.further = o.further[:0]
	for family := range families {
		header := !passed || !begun(readings, family)
		for i := range readings {
			further := readings[i].further()
			if further == nil {
				continue
			}
			before := len(o.further)
			o.further = further.AppendFamily(o.further, family, header, l.sources[i].shown)
			header = header && len(o.further) == before
		}
		o.passFurther(furtherChunk)
	}
	o.passFurther(1)
}

// begun reports whether any of the upstreams has lines of a family.
func begun(readings []reading, family int) bool {
	for i := range readings {
		if further := readings[i].further(); further != nil && further.Begun(family) {
			return true
		}
	}
	return false
}

// write renders readings, the sources of a view in order, into o. The last bytes stay in o
// until o is flushed.
func (e *renderer) write(o *output, v *view, readings []reading) {
	l := v.layoutOf(readings)
	for i := range readings {
		readings[i].shared = l.sources[i].shared
	}
	e.info.writeEach(&o.buffer, l, func(text *sourceText) *texts { return &text.info })
	e.fabric.writeEach(&o.buffer, l, func(text *sourceText) *texts { return &text.fabric })
	for i := range e.devices {
		if o.err != nil {
			return
		}
		e.devices[i].write(o, l, readings)
	}
	e.writeWeights(&o.buffer, readings)
	for i := range e.hosts {
		e.hosts[i].write(&o.buffer, readings)
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
	e.writeSourceInfo(o, readings)
	o.buf = append(o.buf, e.build...)
}

// writeEach renders series that are always 1, with the given ends.
func (h *header) writeEach(b *buffer, l *layout, ends func(*sourceText) *texts) {
	headed := false
	for i := range l.sources {
		if h.excluded() {
			return
		}
		text := &l.sources[i]
		for device := range ends(text).len() {
			end := ends(text).at(device)
			if len(end) == 0 {
				continue
			}
			b.buf = append(h.begin(b.buf, &headed), text.rows[ofDevices].labels.at(device)...)
			b.buf = append(b.buf, end...)
			b.buf = append(b.buf, "1\n"...)
			b.flushIfFull()
		}
	}
}

// write renders one family of all devices, or allocations. This loop takes most of the time.
func (f *deviceFamily) write(o *output, l *layout, readings []reading) {
	scratch := o.scratch(len(f.tails))
	headed := false
	for i := range readings {
		snap, text := readings[i].snapshot, &l.sources[i].rows[f.of]
		if snap == nil || f.absent(&snap.Frame) {
			continue
		}
		if f.codes {
			headed = f.writeXIDs(o, text, snap, headed)
			continue
		}
		for row := range text.upto[f.reach] {
			labels := text.labels.at(row)
			if len(labels) == 0 || text.kinds[row]&f.kinds == 0 {
				continue
			}
			if f.none != nil && f.none(snap, row) {
				continue
			}
			buf := o.buf
			for j, v := range f.values(scratch, snap, row) {
				if !canonical.Given(v) {
					continue
				}
				buf = append(f.begin(buf, &headed), labels...)
				buf = append(buf, f.tails[j]...)
				if v == 0 { // as most values are
					buf = append(buf, '0', '\n')
					continue
				}
				buf = append(exposition.AppendFloat(buf, v), '\n')
			}
			o.buf = buf
			o.flushIfFull()
		}
	}
}

// write renders one family of all sources.
func (f *sourceFamily) write(o *output, readings []reading) {
	values := o.scratch(len(f.tails))
	headed := false
	for i := range readings {
		r := &readings[i]
		if r.snapshot == nil && !f.always {
			continue
		}
		f.fill(values, r)
		for j, v := range values {
			if !canonical.Given(v) {
				continue
			}
			o.buf = append(f.begin(o.buf, &headed), o.sources.at(i)...)
			if f.ofStreams {
				o.buf = exposition.AppendLabel(append(o.buf, ','), "stream", r.source.Streams[j].Name)
			}
			o.buf = append(o.buf, f.tails[j]...)
			o.buf = append(exposition.AppendFloat(o.buf, v), '\n')
		}
	}
	o.flushIfFull()
}

// writeSwitches renders the errors of NVSwitches.
func (e *renderer) writeSwitches(o *output) {
	headed := false
	if e.switches.excluded() {
		return
	}
	for i := range o.switches {
		s := &o.switches[i]
		o.buf = exposition.AppendLabel(append(e.switches.begin(o.buf, &headed), '{'), "hostname", s.Hostname)
		o.buf = exposition.AppendLabel(append(o.buf, ','), "pci_bus_id", s.PCIBusID)
		o.buf = strconv.AppendUint(append(o.buf, `,sxid="`...), uint64(s.Code), 10)
		o.buf = strconv.AppendUint(append(o.buf, `"} `...), s.Count, 10)
		o.buf = append(o.buf, '\n')
	}
}

// writeSourceInfo renders source_info for the sources that could be read.
func (e *renderer) writeSourceInfo(o *output, readings []reading) {
	headed := false
	for i := range readings {
		if readings[i].snapshot == nil || e.sourceInfo.excluded() {
			continue
		}
		o.buf = append(e.sourceInfo.begin(o.buf, &headed), o.sources.at(i)...)
		o.buf = appendSourceInfo(o.buf, readings[i].source)
		o.buf = append(o.buf, "1\n"...)
	}
}

// writeWeights renders the weights that the first reading was judged by; they are the same for
// all.
func (e *renderer) writeWeights(b *buffer, readings []reading) {
	headed := false
	for i := range readings {
		if readings[i].snapshot == nil || e.weight.excluded() {
			continue
		}
		judgement := readings[i].snapshot.Judgement
		for j := range weights {
			b.buf = append(e.weight.begin(b.buf, &headed), '{')
			b.buf = exposition.AppendLabel(b.buf, "input", weights[j].input)
			b.buf = exposition.AppendLabel(append(b.buf, ','), "preset", judgement.Preset)
			b.buf = append(b.buf, "} "...)
			b.buf = append(exposition.AppendFloat(b.buf, weights[j].of(&judgement.Weights)), '\n')
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
func buildInfo() string {
	h, headed := newHeader(families[buildFamily]), false
	b := h.begin(nil, &headed)
	for i, l := range []struct{ name, value string }{
		{"version", version.Version},
		{"revision", version.GetRevision()},
		{"branch", version.Branch},
		{"goversion", version.GoVersion},
		{"goos", version.GoOS},
		{"goarch", version.GoArch},
		{"tags", version.GetTags()},
	} {
		separator := byte(',')
		if i == 0 {
			separator = '{'
		}
		b = exposition.AppendLabel(append(b, separator), l.name, l.value)
	}
	return string(append(b, "} 1\n"...))
}
