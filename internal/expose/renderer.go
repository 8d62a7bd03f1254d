package expose

import (
	"sync/atomic"

	"github.com/prometheus/common/version"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// renderer renders readings as series of ours in the text format. It is safe
// for concurrent use, and allocates nothing while devices and allocations stay the
// same.
type renderer struct {
	info       header
	devices    []deviceFamily
	weight     header
	hosts      []hostFamily
	sources    []sourceFamily
	sourceInfo header
	build      string
	// views are the sets of sources that are served together, by a number that
	// the caller gives them, each with the layout last used.
	views []atomic.Pointer[layout]
}

func newRenderer(views int) *renderer {
	return &renderer{
		info:       newHeader(families[infoFamily]),
		devices:    deviceFamilies(),
		weight:     newHeader(families[weightFamily]),
		hosts:      hostFamilies(),
		sources:    sourceFamilies(),
		sourceInfo: newHeader(families[sourceInfoFamily]),
		build:      buildInfo(),
		views:      make([]atomic.Pointer[layout], views),
	}
}

// write renders readings, the sources of a view in order, into s. Its last bytes
// stay in s until it is flushed.
func (e *renderer) write(s *output, view int, readings []reading) {
	l := e.views[view].Load()
	if !l.fits(readings) {
		l = newLayout(readings, l)
		e.views[view].Store(l)
	}
	for i := range readings {
		readings[i].shared = l.sources[i].shared
	}
	e.writeInfo(&s.buffer, l)
	for i := range e.devices {
		if s.err != nil {
			return
		}
		e.devices[i].write(s, l, readings)
	}
	e.writeWeights(&s.buffer, readings)
	for i := range e.hosts {
		e.hosts[i].write(&s.buffer, readings)
	}
	s.sources.reset()
	for i := range readings {
		s.sources.bytes = appendSource(s.sources.bytes, readings[i].source)
		s.sources.end()
	}
	for i := range e.sources {
		e.sources[i].write(s, readings)
	}
	e.writeSourceInfo(s, readings)
	s.buf = append(s.buf, e.build...)
}

// writeInfo renders the labels of all devices.
func (e *renderer) writeInfo(s *buffer, l *layout) {
	headed := false
	for i := range l.sources {
		text := &l.sources[i]
		for device := range text.info.len() {
			labels := text.rows[ofDevices].labels.at(device)
			if len(labels) == 0 {
				continue
			}
			if !headed {
				headed = true
				s.buf = append(s.buf, e.info.lines...)
			}
			s.buf = append(s.buf, e.info.name...)
			s.buf = append(s.buf, labels...)
			s.buf = append(s.buf, text.info.at(device)...)
			s.buf = append(s.buf, "1\n"...)
			s.flushIfFull()
		}
	}
}

// write renders one family of all devices, or allocations. This loop is where the
// time goes.
func (f *deviceFamily) write(s *output, l *layout, readings []reading) {
	values := s.scratch(len(f.tails))
	headed := false
	for i := range readings {
		snap, text := readings[i].snapshot, &l.sources[i].rows[f.of]
		if snap == nil || f.absent(&snap.Frame) {
			continue
		}
		for row := range text.upto[f.reach] {
			labels := text.labels.at(row)
			if len(labels) == 0 || text.kinds[row]&f.kinds == 0 {
				continue
			}
			f.fill(values, snap, row)
			buf := s.buf
			for j, v := range values {
				if !canonical.Given(v) {
					continue
				}
				if !headed {
					headed = true
					buf = append(buf, f.lines...)
				}
				buf = append(buf, f.name...)
				buf = append(buf, labels...)
				buf = append(buf, f.tails[j]...)
				if v == 0 { // as most are
					buf = append(buf, '0', '\n')
					continue
				}
				buf = append(exposition.AppendFloat(buf, v), '\n')
			}
			s.buf = buf
			s.flushIfFull()
		}
	}
}

// write renders one family of all sources.
func (f *sourceFamily) write(s *output, readings []reading) {
	values := s.scratch(len(f.tails))
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
			if !headed {
				headed = true
				s.buf = append(s.buf, f.lines...)
			}
			s.buf = append(append(s.buf, f.name...), s.sources.at(i)...)
			if f.ofStreams {
				s.buf = exposition.AppendLabel(append(s.buf, ','), "stream", r.source.Streams[j].Name)
			}
			s.buf = append(s.buf, f.tails[j]...)
			s.buf = append(exposition.AppendFloat(s.buf, v), '\n')
		}
	}
	s.flushIfFull()
}

// writeSourceInfo renders how the sources that could be read are read.
func (e *renderer) writeSourceInfo(s *output, readings []reading) {
	headed := false
	for i := range readings {
		if readings[i].snapshot == nil {
			continue
		}
		if !headed {
			headed = true
			s.buf = append(s.buf, e.sourceInfo.lines...)
		}
		s.buf = append(append(s.buf, e.sourceInfo.name...), s.sources.at(i)...)
		s.buf = appendSourceInfo(s.buf, readings[i].source)
		s.buf = append(s.buf, "1\n"...)
	}
}

// writeWeights renders the weights that the first reading was judged with; all
// are judged alike.
func (e *renderer) writeWeights(s *buffer, readings []reading) {
	for i := range readings {
		if readings[i].snapshot == nil {
			continue
		}
		judgement := readings[i].snapshot.Judgement
		s.buf = append(s.buf, e.weight.lines...)
		for j := range weights {
			s.buf = append(append(s.buf, e.weight.name...), '{')
			s.buf = exposition.AppendLabel(s.buf, "input", weights[j].input)
			s.buf = exposition.AppendLabel(append(s.buf, ','), "preset", judgement.Preset)
			s.buf = append(s.buf, "} "...)
			s.buf = append(exposition.AppendFloat(s.buf, weights[j].of(&judgement.Weights)), '\n')
		}
		return
	}
}

// weights are the inputs of the composite, by their word in the exposition.
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
	h := newHeader(families[buildFamily])
	b := append([]byte(h.lines), h.name...)
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
