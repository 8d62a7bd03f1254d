package app

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/kernellog"
	"github.com/kpulse/kpulse-proxy/internal/pipeline"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// discovery reads the exporters that --kube.discover finds: one of each node, the first there, while
// its pod runs. Their names are those of their nodes, which outlive pods and addresses.
type discovery struct {
	service   *service
	finder    *holders.Discovery
	machine   string          // our own node; "" if unknown
	kernelLog *kernellog.Feed // of our own node; nil for none

	// ctx is the context of all members, from run on.
	ctx     context.Context //nolint:containedctx // of what changed is called with
	running sync.WaitGroup

	// Only changed uses the following.
	members map[string]*member // by name
	last    map[string]*member // the latest member that left, by name
}

// member is an exporter while it is read.
type member struct {
	name     string
	exporter holders.Exporter
	stop     context.CancelFunc
	left     time.Time     // when it was stopped
	done     chan struct{} // closed when it is no longer read
	// remains is the state for the next exporter of this name, or nil. It is set before done is
	// closed.
	remains *pipeline.Remains
}

// startDiscovery creates the discovery of --kube.discover. It sends nothing.
func (p *service) startDiscovery() (err error) {
	if !p.opts.Discovers() {
		return nil
	}
	d := &discovery{service: p, members: map[string]*member{}, last: map[string]*member{}}
	if d.machine, err = thisMachine(); err != nil {
		return err
	}
	if p.kernelLog != nil {
		d.kernelLog = p.kernelLog.Feed(isMine(source.Caps{}))
	}
	o := &p.opts.Kube.Discover
	selectors, err := holders.ParseSelector(o.Selector)
	if err != nil {
		return fmt.Errorf("--kube.discover: %w", err)
	}
	d.finder = holders.NewDiscovery(holders.DiscoveryOptions{
		Client: p.kubernetes, Selectors: selectors, Namespace: o.Namespace, Node: p.opts.FlagSource.NodeName, Port: o.Port,
		Max: int(o.MaxSources), Logger: p.logger, Changed: d.changed,
	})
	p.discovery = d
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

// changed stops reading exporters that are gone, and starts reading those of nodes that have none. One
// continues from the state of the last of its name, if that left no longer ago than XIDs are held.
func (d *discovery) changed(all []holders.Exporter) {
	running := map[holders.Exporter]bool{}
	for _, e := range all {
		running[e] = true
	}
	held := d.service.current().Judge.XIDHold
	for name, m := range d.last {
		if time.Since(m.left) > held {
			delete(d.last, name)
		}
	}
	for name, m := range d.members {
		if !running[m.exporter] {
			m.left = time.Now()
			m.stop()
			delete(d.members, name)
			d.last[name] = m
		}
	}
	for _, e := range all {
		name := cmp.Or(e.Node, e.Address.String())
		if d.members[name] != nil {
			continue
		}
		m, before := &member{name: name, exporter: e, done: make(chan struct{})}, d.last[name]
		delete(d.last, name)
		d.members[name] = m
		var ctx context.Context
		ctx, m.stop = context.WithCancel(d.ctx)
		d.running.Go(func() {
			defer close(m.done)
			if before != nil {
				<-before.done // its ctx has ended
				m.remains = before.remains
			}
			d.read(ctx, m)
		})
	}
}

// read reads an exporter until ctx ends, and sets what remains of it.
func (d *discovery) read(ctx context.Context, m *member) {
	if ctx.Err() != nil {
		return
	}
	logger := d.service.logger.With("reads", m.name, "pod", m.exporter.Namespace+"/"+m.exporter.Pod)
	r, err := d.join(m)
	if err != nil {
		logger.Error("cannot read a discovered exporter", "cause", err)
		return
	}
	end := inBackground(context.WithoutCancel(ctx), r.pipeline.Run) // scrapes are read to their end
	logger.Info("reading an exporter", "address", m.exporter.Address)
	<-ctx.Done()
	d.service.readers.leave(r)
	end()
	m.remains = r.pipeline.Leave()
	logger.Info("stopped reading an exporter")
}

// join wires the reader of an exporter, and adds it to the served ones.
func (d *discovery) join(m *member) (*reader, error) {
	p := d.service
	p.mu.Lock() // until it has joined, or a reload would miss it
	defer p.mu.Unlock()
	s, err := p.opts.Found(&m.exporter)
	if err != nil {
		return nil, err
	}
	s.Called = m.name
	s.Look = fmt.Sprintf("its pod: kubectl describe pod -n %s %s", m.exporter.Namespace, m.exporter.Pod)
	r, err := p.newReader(&s, &m.exporter, func(source.Source) func(*canonical.Frame) {
		if d.kernelLog == nil || m.name != d.machine {
			return nil
		}
		return d.kernelLog.Take
	})
	if err != nil {
		return nil, err
	}
	if m.remains != nil {
		r.pipeline.Resume(m.remains)
	}
	p.readers.join(r)
	return r, nil
}
