package client

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

var errNoSeries = errors.New("no series of kpulse-proxy in the answer; give the address of a kpulse-proxy, such as http://NODE:9401/metrics")

// parser reads expositions of kpulse-proxy, by the handlers of their families.
type parser map[string]handler

// sample is one sample of an exposition. Its strings are parts of the lines. Its labels are
// parsed on demand, as most rows of a state are 0 and are not needed.
type sample struct {
	reader *reader
	text   string // of the label block
	value  float64
}

// block is a label block.
type block struct {
	labels []exposition.Label
	device *device // nil before lookup
}

// block returns the label block. Most samples of a device have the same.
func (s *sample) block() *block {
	b := s.reader.blocks[s.text]
	if b == nil {
		b = &block{labels: exposition.ParseLabels(s.text, nil)}
		s.reader.blocks[s.text] = b
	}
	return b
}

// label returns the value of a label, or "". It is valid as long as the lines are.
func (s *sample) label(name string) string {
	for _, l := range s.block().labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// copied returns the value of a label as a copy.
func (s *sample) copied(name string) string { return strings.Clone(s.label(name)) }

// reader is one exposition being read.
type reader struct {
	parser
	node    *Node
	devices map[string]*device
	order   []*device
	found   bool              // a series of ours was read
	blocks  map[string]*block // by their text, of the lines being read
}

// device is a GPU being read. A device with counters but neither info nor presence is long
// gone.
type device struct {
	gpu      *GPU
	reported bool
}

// begin returns a reader of an exposition of the node at url.
func (p parser) begin(url string) *reader {
	nan := math.NaN()
	n := &Node{URL: url, Host: unknownHost(), Weighting: Weighting{Weights: canonical.Weights{SM: nan, Tensor: nan, DRAM: nan, Engine: nan}}}
	return &reader{parser: p, node: n, devices: map[string]*device{}, blocks: map[string]*block{}}
}

// read reads the series of kpulse-proxy in lines, which are complete, and skips all others. It
// skips and counts malformed lines that begin like ours. It keeps nothing of lines.
func (r *reader) read(lines []byte) {
	defer clear(r.blocks)
	text := exposition.View(lines)
	for e := range exposition.Entries(text) {
		switch name, ours := strings.CutPrefix(e.MetricName(), canonical.Prefix); {
		case e.Kind == exposition.Malformed && strings.HasPrefix(text[e.Start:e.End], canonical.Prefix):
			r.node.Skipped++
		case e.Kind == exposition.Series && ours:
			r.found = true
			if handle := r.parser[name]; handle != nil {
				handle(r, &sample{r, e.Labels, e.Value})
			}
		}
	}
}

// end returns the node of the exposition that was read.
func (r *reader) end() (*Node, error) {
	switch {
	case !r.found && r.node.Skipped > 0:
		return nil, fmt.Errorf("all %d lines of kpulse-proxy in the response are malformed; does something on the way change them?", r.node.Skipped)
	case !r.found:
		return nil, errNoSeries
	}
	r.finish()
	return r.node, nil
}

// gpu returns the device of a sample.
func (r *reader) gpu(s *sample) *GPU { return r.device(s).gpu }

// device returns the device of a sample by its labels; a new one for the device's first sample.
func (r *reader) device(s *sample) *device {
	b := s.block()
	if b.device != nil {
		return b.device
	}
	key := s.label("hostname") + "\x00" + s.label("gpu") + "\x00" + s.label("uuid") + "\x00" + s.label("mig_instance")
	d := r.devices[key]
	if d == nil {
		d = &device{gpu: NewGPU(r.node.URL, canonical.Device{
			Hostname: s.copied("hostname"), GPU: s.copied("gpu"), UUID: s.copied("uuid"), Instance: s.copied("mig_instance"), Profile: s.copied("mig_profile"),
		})}
		r.devices[key] = d
		r.order = append(r.order, d)
	}
	b.device = d
	return d
}

// allocation returns the allocation of a sample, or nil if it has ended: allocation_info, which
// precedes the counters, does not list an ended one.
func (r *reader) allocation(s *sample) *Allocation {
	g, w := r.gpu(s), workload(s, (*sample).label)
	i := slices.IndexFunc(g.Allocations, func(a Allocation) bool { return a.Workload == w })
	if i < 0 {
		return nil
	}
	return &g.Allocations[i]
}

// workload returns the workload of a sample. get returns the value of a label.
func workload(s *sample, get func(*sample, string) string) canonical.Workload {
	return canonical.Workload{
		Namespace: get(s, "workload_namespace"), Pod: get(s, "workload_pod"), Container: get(s, "workload_container"), Job: get(s, "hpc_job"),
	}
}

func (r *reader) source(s *sample) *Source {
	name, backend := s.label("source"), s.label("backend")
	sources := &r.node.Sources
	i := slices.IndexFunc(*sources, func(o Source) bool { return o.Name == name && o.Backend == backend })
	if i < 0 {
		i = len(*sources)
		*sources = append(*sources, Source{Name: strings.Clone(name), Backend: strings.Clone(backend)})
	}
	return &(*sources)[i]
}

// derive fills in what the lean form leaves out because it follows from the rest.
func (g *GPU) derive() {
	v := &g.Values
	if used, total := v[canonical.FramebufferUsed], v[canonical.FramebufferTotal]; math.IsNaN(v[canonical.FramebufferUsedRatio]) && total > 0 {
		v[canonical.FramebufferUsedRatio] = used / total
	}
	if g.Action == canonical.NumActions && g.Health != canonical.HealthUnknown {
		g.Action = canonical.ActionNone
	}
}

// finish orders the devices and sums up the node.
func (r *reader) finish() {
	n := r.node
	for _, d := range r.order {
		if d.reported {
			d.gpu.derive()
			slices.SortStableFunc(d.gpu.Raised, func(a, b RaisedCondition) int { return cmp.Compare(b.State, a.State) })
			n.GPUs = append(n.GPUs, d.gpu)
		}
	}
	slices.SortStableFunc(n.GPUs, func(a, b *GPU) int { return canonical.CompareDevices(&a.Device, &b.Device) })
	for i, g := range n.GPUs {
		if i == 0 || g.Hostname != n.GPUs[i-1].Hostname {
			n.Machines++
		}
		if i+1 < len(n.GPUs) {
			next := n.GPUs[i+1]
			g.Cut = !g.IsInstance() && next.IsInstance() && next.UUID == g.UUID && next.Hostname == g.Hostname
		}
	}
	if n.Machines > 0 {
		n.Name = n.GPUs[0].Hostname
	}
	if n.Machines > 1 {
		n.Name += fmt.Sprintf(" +%d", n.Machines-1)
	}
	for _, o := range n.Sources {
		n.Up = n.Up || o.Up
		if o.At.After(n.At) {
			n.At = o.At
		}
		if o.Period > 0 && (n.Period == 0 || o.Period < n.Period) {
			n.Period = o.Period
		}
	}
}
