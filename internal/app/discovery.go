package app

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/checks"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/kernellog"
	"github.com/kpulse/kpulse-proxy/internal/pipeline"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// discovery reads the exporters that --kube.discover finds. An exporter is a member while its pod
// runs.
type discovery struct {
	service   *service
	finder    *holders.Discovery
	machine   string          // our own node; "" if unknown
	kernelLog *kernellog.Feed // of our own node; nil for none

	// ctx is the context of all members, from Run on.
	ctx     context.Context //nolint:containedctx // of what changed is called with
	running sync.WaitGroup

	mu      sync.Mutex
	members map[holders.Exporter]*member
	last    map[string]*member // the latest member that left, by name
}

// member is one exporter at one address.
type member struct {
	name string // its node's, if it is the first one there
	stop context.CancelFunc
	done chan struct{} // closed when it is no longer read
	left time.Time     // when it was stopped

	// remains is the state for the next exporter of this name, or nil. It is set before done is
	// closed.
	remains *pipeline.Remains
}

// startDiscovery creates the discovery of --kube.discover. It sends nothing.
func (p *service) startDiscovery() (err error) {
	if !p.opts.Discovers() {
		return nil
	}
	d := &discovery{service: p, members: map[holders.Exporter]*member{}, last: map[string]*member{}}
	if d.machine, err = thisMachine(); err != nil {
		return err
	}
	if p.kernelLog != nil {
		d.kernelLog = p.kernelLog.Feed(isMine(source.Caps{}))
	}
	if d.finder, err = checks.NewFinder(p.opts.Options, p.holding.client, p.logger, d.changed); err != nil {
		return err
	}
	p.holding.discovery = d
	p.notes = append(p.notes, d.finder.Notes)
	p.collectors = append(p.collectors, discoveryCollectors(d.finder)...)
	return nil
}

// run finds and reads exporters until ctx ends.
func (d *discovery) run(ctx context.Context) {
	d.ctx = ctx
	o := d.service.current()
	d.service.logger.Info("discovering exporters", "selector", o.Kube.Discover.Selector, "namespace", o.Kube.Discover.Namespace, "node", o.FlagSource.NodeName)
	d.finder.Run(ctx)
	d.running.Wait()
}

// changed starts reading new exporters, and stops reading those that are gone.
func (d *discovery) changed(all []holders.Exporter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, now := d.service.current(), map[holders.Exporter]bool{}
	for i := range all {
		now[all[i]] = true
	}
	for e, m := range d.members {
		if !now[e] {
			d.remove(e, m)
		}
	}
	for i := range all {
		if e := &all[i]; d.members[*e] == nil {
			d.add(e)
		}
	}
	d.promote(all)
	d.forget(o.Judge.XIDHold)
}

// remove stops reading a member. The caller holds mu.
func (d *discovery) remove(e holders.Exporter, m *member) {
	m.left = time.Now()
	m.stop()
	delete(d.members, e)
	if m.name == nodeOf(&e) {
		d.last[m.name] = m
	}
}

// nodeOf returns the name of the first exporter of a node.
func nodeOf(e *holders.Exporter) string { return cmp.Or(e.Node, e.Address.String()) }

// add starts reading an exporter. Its name is its node, which outlives pods and addresses; if
// several run on a node, the first has that name. It continues from the state of the latest
// exporter of its name. The caller holds mu.
func (d *discovery) add(e *holders.Exporter) {
	m := &member{name: nodeOf(e), done: make(chan struct{})}
	for _, other := range d.members {
		if other.name == m.name {
			m.name = fmt.Sprintf("%s/%s/%s", nodeOf(e), e.Namespace, e.Pod)
			break
		}
	}
	before := d.last[m.name]
	delete(d.last, m.name)
	ctx, stop := context.WithCancel(d.ctx)
	m.stop = stop
	d.members[*e] = m
	exporter := *e
	d.running.Go(func() {
		defer close(m.done)
		d.live(ctx, m, &exporter, before)
	})
}

// promote gives the name of a node to the first of its exporters if the one that had the name has
// left, as when a DaemonSet starts the new pod first. The exporter continues from the state of
// the one that left. The caller holds mu.
func (d *discovery) promote(all []holders.Exporter) {
	named := map[string]bool{}
	for e, m := range d.members {
		named[nodeOf(&e)] = named[nodeOf(&e)] || m.name == nodeOf(&e)
	}
	for i := range all {
		if e := &all[i]; !named[nodeOf(e)] {
			named[nodeOf(e)] = true
			d.remove(*e, d.members[*e])
			d.add(e)
		}
	}
}

// forget drops members that left longer ago than XIDs are held. The caller holds mu.
func (d *discovery) forget(held time.Duration) {
	for name, m := range d.last {
		if time.Since(m.left) > held {
			delete(d.last, name)
		}
	}
}

// live reads an exporter until ctx ends, once its predecessor, which may be nil, is no longer
// read.
func (d *discovery) live(ctx context.Context, m *member, e *holders.Exporter, before *member) {
	if before != nil {
		<-before.done // its ctx has ended
		m.remains = before.remains
	}
	if ctx.Err() != nil {
		return
	}
	r, err := d.service.joinFound(d, m, e)
	if err != nil {
		d.service.logger.Error("cannot read a discovered exporter", "reads", m.name, "pod", e.Namespace+"/"+e.Pod, "cause", err)
		return
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // scrapes are read to their end
	defer end()
	read := make(chan error, 1)
	go func() { read <- r.pipeline.Run(life) }()
	d.service.logger.Info("reading an exporter", "reads", m.name, "pod", e.Namespace+"/"+e.Pod, "address", e.Address)
	<-ctx.Done()
	d.service.readers.leave(r)
	end()
	err = <-read
	m.remains = r.pipeline.Leave()
	args := []any{"reads", m.name, "pod", e.Namespace + "/" + e.Pod, "address", e.Address}
	if err != nil {
		args = append(args, "cause", err)
	}
	d.service.logger.Info("stopped reading an exporter", args...)
}

// joinFound wires the reader of an exporter that was found, and adds it to the served ones.
func (p *service) joinFound(d *discovery, m *member, e *holders.Exporter) (*reader, error) {
	p.mu.Lock() // until it has joined, or a reload would miss it
	defer p.mu.Unlock()
	s, err := p.opts.Found(e)
	if err != nil {
		return nil, err
	}
	s.Called, s.Look = m.name, checks.LookAtPod(e)
	src, err := open(p.opts, &s, p.userAgent, p.logger)
	if err != nil {
		return nil, err
	}
	r := &reader{backend: s.Backend.Name, exporter: e, source: src, hostname: e.Node}
	var events func(*canonical.Frame)
	if d.kernelLog != nil && m.name == d.machine {
		events = d.kernelLog.Take
	}
	r.pipeline, err = wire(r.source, p.opts, &s, parts{p.observer(), p.attribute(r), events, p.logger})
	if err != nil {
		return nil, err
	}
	if m.remains != nil {
		r.pipeline.Resume(m.remains)
	}
	p.readers.join(r)
	return r, nil
}
