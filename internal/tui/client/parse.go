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

// parser reads expositions of kpulse-proxy. It is for one goroutine at a time.
type parser struct {
	families   map[string]handler
	classes    map[string]canonical.Class
	states     map[string]canonical.Health
	conditions map[string]canonical.Condition
	actions    map[string]canonical.Action

	// Most samples of a device have the same label block, which each read parses once. blocks
	// maps the text of blocks; their labels are in labels.
	blocks map[string]*block
	labels []exposition.Label
	memory []block
}

// block is a label block.
type block struct {
	labels []exposition.Label
	device *device // nil before lookup
}

func newParser() *parser {
	p := &parser{
		families:   families(),
		classes:    map[string]canonical.Class{},
		states:     map[string]canonical.Health{},
		conditions: map[string]canonical.Condition{},
		actions:    map[string]canonical.Action{},
		blocks:     map[string]*block{},
	}
	for c, info := range canonical.Classes {
		p.classes[info.Name] = canonical.Class(c)
	}
	for h, name := range canonical.HealthStates {
		p.states[name] = canonical.Health(h)
	}
	for c, name := range canonical.ConditionNames() {
		p.conditions[name] = canonical.Condition(c)
	}
	for a, name := range canonical.Actions {
		p.actions[name] = canonical.Action(a)
	}
	return p
}

// sample is one sample of an exposition. Its strings are parts of the lines. Its labels are
// parsed on demand, as most rows of a state are 0 and are not needed.
type sample struct {
	parser *parser
	block  string // the text of the labels
	read   *block // nil before labels
	value  float64
}

// labels returns the label block.
func (s *sample) labels() *block {
	if s.read == nil {
		s.read = s.parser.block(s.block)
	}
	return s.read
}

// label returns the value of a label, or "". It is valid as long as the lines are.
func (s *sample) label(name string) string {
	labels := s.labels().labels
	for i := range labels {
		if labels[i].Name == name {
			return labels[i].Value
		}
	}
	return ""
}

// text returns the value of a label as a copy.
func (s *sample) text(name string) string { return strings.Clone(s.label(name)) }

// reader is one exposition being read.
type reader struct {
	*parser
	node    *Node
	devices map[string]*device
	order   []*device
	found   bool   // a series of ours was read
	key     []byte // scratch
}

// device is a GPU being read. A device with counters but neither info nor presence is long
// gone.
type device struct {
	gpu      *GPU
	reported bool
}

// begin returns a reader of an exposition of the node at url.
func (p *parser) begin(url string) *reader {
	nan := math.NaN()
	return &reader{
		parser:  p,
		node:    &Node{URL: url, Host: unknownHost(), Weights: canonical.Weights{SM: nan, Tensor: nan, DRAM: nan, Engine: nan}},
		devices: map[string]*device{},
	}
}

// read reads the series of kpulse-proxy in lines, which are complete, and skips all others. It
// skips and counts malformed lines that begin like ours. It keeps nothing of lines.
func (r *reader) read(lines []byte) {
	defer r.forget()
	var s sample
	text := exposition.View(lines)
	for e := range exposition.Entries(text) {
		switch name, ours := strings.CutPrefix(e.MetricName(), canonical.Prefix); {
		case e.Kind == exposition.Malformed && strings.HasPrefix(text[e.Start:e.End], canonical.Prefix):
			r.node.Skipped++
		case e.Kind == exposition.Series && ours:
			r.found = true
			if handle := r.families[name]; handle != nil {
				s = sample{parser: r.parser, block: e.Labels, value: e.Value}
				handle(r, &s)
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

// block returns the label block with a text.
func (p *parser) block(text string) *block {
	if b := p.blocks[text]; b != nil {
		return b
	}
	begin := len(p.labels)
	p.labels = exposition.ParseLabels(text, p.labels)
	p.memory = append(p.memory, block{labels: p.labels[begin:]})
	b := &p.memory[len(p.memory)-1]
	p.blocks[text] = b
	return b
}

// forget drops the blocks, which are parts of the lines, and keeps their memory.
func (p *parser) forget() {
	clear(p.blocks)
	clear(p.labels)
	clear(p.memory)
	p.labels, p.memory = p.labels[:0], p.memory[:0]
}

// gpu returns the device of a sample.
func (r *reader) gpu(s *sample) *GPU { return r.device(s).gpu }

func (r *reader) device(s *sample) *device {
	b := s.labels()
	if b.device == nil {
		b.device = r.lookup(s)
	}
	return b.device
}

// lookup returns the device of a sample by its labels; a new one for the device's first sample.
func (r *reader) lookup(s *sample) *device {
	r.key = r.key[:0]
	for _, name := range [...]string{"hostname", "gpu", "uuid", "mig_instance"} {
		r.key = append(append(r.key, s.label(name)...), 0)
	}
	d := r.devices[string(r.key)]
	if d == nil {
		d = &device{gpu: NewGPU(r.node.URL, canonical.Device{
			Hostname: s.text("hostname"), GPU: s.text("gpu"), UUID: s.text("uuid"), Instance: s.text("mig_instance"), Profile: s.text("mig_profile"),
		})}
		r.devices[string(r.key)] = d
		r.order = append(r.order, d)
	}
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
	i := slices.IndexFunc(r.node.Sources, func(o Source) bool { return o.Name == name && o.Backend == backend })
	if i < 0 {
		i = len(r.node.Sources)
		r.node.Sources = append(r.node.Sources, Source{Name: strings.Clone(name), Backend: strings.Clone(backend)})
	}
	return &r.node.Sources[i]
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
