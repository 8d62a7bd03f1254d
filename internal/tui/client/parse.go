package client

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// parser reads expositions of kpulse-proxy. It is for one goroutine at a time.
type parser struct {
	families   map[string]family
	classes    map[string]canonical.Class
	states     map[string]canonical.Health
	conditions map[string]canonical.Condition
}

func newParser() *parser {
	p := &parser{
		families:   families(),
		classes:    map[string]canonical.Class{},
		states:     map[string]canonical.Health{},
		conditions: map[string]canonical.Condition{},
	}
	for c, info := range canonical.Classes {
		p.classes[info.Name] = canonical.Class(c)
	}
	for h, name := range canonical.HealthStates {
		p.states[name] = canonical.Health(h)
	}
	for c, name := range canonical.Conditions {
		p.conditions[name] = canonical.Condition(c)
	}
	return p
}

// reader is one exposition being read.
type reader struct {
	*parser
	node    *Node
	devices map[string]*device
	key     []byte // scratch
	order   []*device
}

// device is a GPU being read. Devices that only a counter tells of went long ago;
// they are told of otherwise too where they are there, or missed.
type device struct {
	gpu  *GPU
	told bool
}

var errNoSeries = errors.New("no series of kpulse-proxy in the answer; give the address of a kpulse-proxy, such as http://NODE:9401/metrics")

// parse reads the series of ours in an exposition and skips all others. Lines of
// ours that are broken are skipped and counted. url goes into the Node.
func (p *parser) parse(url string, body []byte) (*Node, error) {
	r := &reader{parser: p, devices: map[string]*device{}}
	nan := math.NaN()
	r.node = &Node{URL: url, Host: unknownHost(), Weights: canonical.Weights{SM: nan, Tensor: nan, DRAM: nan, Engine: nan}}
	var s sample
	seen := false
	for len(body) > 0 {
		var line []byte
		line, body, _ = bytes.Cut(body, []byte{'\n'})
		if !bytes.HasPrefix(line, []byte(canonical.Prefix)) {
			continue
		}
		if s.read(line) != nil {
			r.node.Skipped++
			continue
		}
		seen = true
		if take := p.families[string(s.name[len(canonical.Prefix):])]; take != nil {
			take(r, &s)
		}
	}
	switch {
	case !seen && r.node.Skipped > 0:
		return nil, fmt.Errorf("all %d lines of kpulse-proxy in the answer are broken; is something between us and it?", r.node.Skipped)
	case !seen:
		return nil, errNoSeries
	}
	r.finish()
	return r.node, nil
}

// gpu returns the device that a sample is of.
func (r *reader) gpu(s *sample) *GPU { return r.device(s).gpu }

func (r *reader) device(s *sample) *device {
	r.key = r.key[:0]
	for _, name := range [...]string{"hostname", "gpu", "uuid", "mig_instance"} {
		r.key = append(append(r.key, s.get(name)...), 0)
	}
	d := r.devices[string(r.key)]
	if d == nil {
		d = &device{gpu: r.newGPU(s)}
		r.devices[string(r.key)] = d
		r.order = append(r.order, d)
	}
	return d
}

func (r *reader) newGPU(s *sample) *GPU {
	return NewGPU(r.node.URL, canonical.Device{
		Hostname: string(s.get("hostname")), GPU: string(s.get("gpu")), UUID: string(s.get("uuid")),
		Instance: string(s.get("mig_instance")), Profile: string(s.get("mig_profile")),
	})
}

// allocation returns the one that a sample is of, nil where allocation_info, which
// stands before, did not tell of it: then it ended.
func (r *reader) allocation(s *sample) *Allocation {
	g, w := r.gpu(s), workload(s)
	for i := range g.Allocations {
		a := &g.Allocations[i]
		if a.Workload == w {
			return a
		}
	}
	return nil
}

func (r *reader) source(s *sample) *Source {
	name, backend := s.get("source"), s.get("backend")
	for i := range r.node.Sources {
		if o := &r.node.Sources[i]; o.Name == string(name) && o.Backend == string(backend) {
			return o
		}
	}
	r.node.Sources = append(r.node.Sources, Source{Name: string(name), Backend: string(backend)})
	return &r.node.Sources[len(r.node.Sources)-1]
}

// finish puts into order what was read.
func (r *reader) finish() {
	for _, d := range r.order {
		if d.told {
			slices.SortStableFunc(d.gpu.Raised, func(a, b RaisedCondition) int { return cmp.Compare(b.State, a.State) })
			r.node.GPUs = append(r.node.GPUs, d.gpu)
		}
	}
	slices.SortStableFunc(r.node.GPUs, compareGPUs)
	for i, g := range r.node.GPUs[:max(0, len(r.node.GPUs)-1)] {
		next := r.node.GPUs[i+1]
		g.Cut = g.Instance == "" && next.Instance != "" && next.UUID == g.UUID && next.Hostname == g.Hostname
	}
	for _, o := range r.node.Sources {
		if o.Up {
			r.node.Up = true
		}
		if o.At.After(r.node.At) {
			r.node.At = o.At
		}
		if o.Period > 0 && (r.node.Period == 0 || o.Period < r.node.Period) {
			r.node.Period = o.Period
		}
	}
	for i, g := range r.node.GPUs { // in the order of their nodes
		if i == 0 || g.Hostname != r.node.GPUs[i-1].Hostname {
			r.node.Machines++
		}
	}
	if r.node.Machines > 0 {
		r.node.Name = r.node.GPUs[0].Hostname
	}
	if r.node.Machines > 1 {
		r.node.Name += fmt.Sprintf(" +%d", r.node.Machines-1)
	}
}

// compareGPUs orders by node and index, with instances behind their board.
func compareGPUs(a, b *GPU) int {
	return cmp.Or(
		cmp.Compare(a.Hostname, b.Hostname),
		CompareNumbers(a.GPU, b.GPU),
		cmp.Compare(a.UUID, b.UUID),
		CompareNumbers(a.Instance, b.Instance),
	)
}

// compareNumbers orders numbers as such, 2 before 10, behind what is empty.
func CompareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
