package client

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// parser reads the expositions of one node, one after the other. It is for one goroutine.
type parser struct {
	families map[string]handler
	// blocks are the label blocks of the latest exposition, and at most as many of earlier ones, by their text: nearly
	// all are in the next again.
	blocks map[string]*block
	begun  uint64 // expositions
}

func newParser() *parser { return &parser{families: families(), blocks: map[string]*block{}} }

// block is a label block. Its text is a copy.
type block struct {
	labels []exposition.Label
	key    string  // of its device
	met    uint64  // the latest exposition that has it
	device *device // in that one; nil before lookup
}

// sample is one sample of an exposition. Its labels are parsed on demand, as most rows of a state are 0
// and are not needed.
type sample struct {
	reader *reader
	text   string // of the label block
	value  float64
}

// block returns the label block. Most samples of a device have the same.
func (s *sample) block() *block {
	r := s.reader
	b := r.blocks[s.text]
	if b == nil {
		text := strings.Clone(s.text)
		b = &block{labels: exposition.ParseLabels(text, nil)}
		b.key = b.label("hostname") + "\x00" + b.label("gpu") + "\x00" + b.label("uuid") + "\x00" + b.label("mig_instance")
		r.blocks[text] = b
	}
	if b.met != r.begun {
		b.met, b.device = r.begun, nil
		r.met++
	}
	return b
}

// label returns the value of a label, or "".
func (b *block) label(name string) string {
	for _, l := range b.labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// label returns the value of a label, or "". It stays valid.
func (s *sample) label(name string) string { return s.block().label(name) }

// reader is one exposition being read.
type reader struct {
	*parser
	node    *Node
	devices map[string]*device // by the key of their blocks
	met     int                // blocks
	found   bool               // a series of ours
	sample  sample             // the latest
	family  string             // its name and handler, as samples of a family follow one another
	handle  handler
}

// device is a GPU being read. A device with counters but neither info nor presence is long
// gone.
type device struct {
	gpu      *GPU
	reported bool
}

// begin returns a reader of an exposition of the node at url.
func (p *parser) begin(url string) *reader {
	p.begun++
	nan := math.NaN()
	return &reader{
		parser: p, devices: map[string]*device{},
		node: &Node{URL: url, Host: unknownHost(), Weighting: Weighting{Weights: canonical.Weights{SM: nan, Tensor: nan, DRAM: nan, Engine: nan}}},
	}
}

// read reads the series of kpulse-proxy in whole lines, by the handlers of their families, and skips all others. It
// skips and counts malformed lines that begin like ours. It keeps nothing of lines.
func (r *reader) read(lines []byte) {
	text := exposition.View(lines)
	for e := range exposition.Entries(text) {
		switch name, ours := strings.CutPrefix(e.MetricName(), canonical.Prefix); {
		case e.Kind == exposition.Malformed && strings.HasPrefix(text[e.Start:e.End], canonical.Prefix):
			r.node.Skipped++
		case e.Kind == exposition.Series && ours:
			r.found = true
			if name != r.family {
				r.family, r.handle = strings.Clone(name), r.families[name]
			}
			if r.handle != nil {
				r.sample = sample{r, e.Labels, e.Value}
				r.handle(r, &r.sample)
			}
		}
	}
}

// forget removes from the blocks what they have of the exposition, and those that it lacks once they are the most.
func (r *reader) forget() {
	old := len(r.blocks) > 2*r.met
	maps.DeleteFunc(r.blocks, func(_ string, b *block) bool {
		b.device = nil
		return old && b.met != r.begun
	})
}

// end returns the node of the exposition.
func (r *reader) end() (*Node, error) {
	n := r.node
	switch {
	case !r.found && n.Skipped > 0:
		return nil, fmt.Errorf("all %d lines of kpulse-proxy in the response are malformed; does something on the way change them?", n.Skipped)
	case !r.found:
		return nil, errors.New("no series of kpulse-proxy in the answer; give the address of a kpulse-proxy, such as http://NODE:9401/metrics")
	}
	for _, d := range r.devices {
		if d.reported {
			n.GPUs = append(n.GPUs, d.gpu)
		}
	}
	n.finish()
	return n, nil
}

// gpu returns the device of a sample.
func (r *reader) gpu(s *sample) *GPU { return r.device(s).gpu }

// device returns the device of a sample.
func (r *reader) device(s *sample) *device { return r.deviceOf(s.block()) }

// deviceOf returns the device of a label block; a new one for the first that names it.
func (r *reader) deviceOf(b *block) *device {
	if b.device != nil {
		return b.device
	}
	d := r.devices[b.key]
	if d == nil {
		d = &device{gpu: NewGPU(r.node.URL, canonical.Device{
			Hostname: b.label("hostname"), GPU: b.label("gpu"), UUID: b.label("uuid"), Instance: b.label("mig_instance"), Profile: b.label("mig_profile"),
		})}
		r.devices[b.key] = d
	}
	b.device = d
	return d
}

// allocation returns the allocation of a sample. allocation_info, which precedes the counters, does not list one that has ended. A
// board that is missing keeps those that it had.
func (r *reader) allocation(s *sample) *Allocation {
	g, of := r.gpu(s), newAllocation(s)
	same := func(a Allocation) bool { return a.Workload == of.Workload && a.Kind == of.Kind && a.Name == of.Name }
	if i := slices.IndexFunc(g.Allocations, same); i >= 0 {
		return &g.Allocations[i]
	}
	list := &g.Ended
	if g.Gone {
		list = &g.Allocations
	}
	i := slices.IndexFunc(*list, same)
	if i < 0 {
		i, *list = len(*list), append(*list, of)
	}
	return &(*list)[i]
}

func (r *reader) source(s *sample) *Source {
	name, backend := s.label("source"), s.label("backend")
	sources := &r.node.Sources
	i := slices.IndexFunc(*sources, func(o Source) bool { return o.Name == name && o.Backend == backend })
	if i < 0 {
		i = len(*sources)
		*sources = append(*sources, Source{Name: name, Backend: backend})
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
	slices.SortStableFunc(g.Raised, func(a, b RaisedCondition) int { return cmp.Compare(b.State, a.State) })
}

// finish orders the devices and sums up the node.
func (n *Node) finish() {
	slices.SortFunc(n.GPUs, func(a, b *GPU) int {
		return cmp.Or(canonical.CompareDevices(&a.Device, &b.Device), cmp.Compare(a.UUID, b.UUID))
	})
	for i, g := range n.GPUs {
		g.derive()
		if i == 0 || g.Hostname != n.GPUs[i-1].Hostname {
			n.Machines++
		}
		if i > 0 && g.IsInstance() && n.GPUs[i-1].UUID == g.UUID && n.GPUs[i-1].Hostname == g.Hostname {
			n.GPUs[i-1].Cut = !n.GPUs[i-1].IsInstance()
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
