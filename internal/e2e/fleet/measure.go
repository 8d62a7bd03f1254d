package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"time"
)

// nodesPerProxy is how many exporters a proxy reads; it lets a fleet fit on one machine.
const nodesPerProxy = 250

// interval returns the scrape interval. Small fleets are scraped more often, so their chunks are
// full when memory and bytes are measured, as they are after half an hour elsewhere.
func interval(nodes int) time.Duration {
	switch {
	case nodes <= 10:
		return time.Second
	case nodes <= 100:
		return 2 * time.Second
	}
	return 15 * time.Second
}

// longest is the maximum time for which a fleet is scraped before its memory is read, even if
// chunks are not full.
const longest = 4 * time.Minute

// fullChunk is the number of samples of a series that Prometheus packs into a chunk.
const fullChunk = 120

// trial is one fleet in one form.
type trial struct {
	nodes int
	form  form
	lasts time.Duration // 0 means until chunks are full
	proxy string
	rules []string // files for a Prometheus that scrapes proxies
	alone string   // the one for a Prometheus that scrapes exporters, or ""
}

// evaluated returns the rule files of the form.
func (t trial) evaluated() []string {
	switch {
	case !t.form.rules:
		return nil
	case t.form.flags != nil:
		return t.rules
	case t.alone != "":
		return []string{t.alone}
	}
	return nil
}

// steady returns how long a fleet is scraped before its memory is read.
func (t trial) steady() time.Duration {
	if t.lasts != 0 {
		return t.lasts
	}
	return min(fullChunk*interval(t.nodes), longest)
}

// cost is the cost of a trial.
type cost struct {
	series, ours   float64 // in the head of Prometheus; ours excludes what Prometheus records
	live, resident float64 // bytes in use after a garbage collection, on average, and the maximum resident
	cpu            float64 // of Prometheus, in cores
	bytes          float64 // per sample in a block, 0 if chunks are not full
	proxies        float64 // CPU seconds per scrape of a node
	// With rules: the same after their evaluation, and how long each group took.
	ruled  *cost
	groups map[string]float64
}

// fleet is the programs of a trial.
type fleet struct {
	trial      trial
	dir        string
	proxies    []*child
	prometheus *child
	closes     []func()
}

func (f *fleet) close() {
	for i := range f.closes {
		f.closes[len(f.closes)-1-i]()
	}
}

// measure runs a trial.
func measure(ctx context.Context, trial trial) (cost, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go guardMemory(ctx, stop)
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return cost{}, err
	}
	f := &fleet{trial: trial, dir: dir, closes: []func(){func() { _ = os.RemoveAll(dir) }}}
	defer f.close()
	if err := f.start(ctx); err != nil {
		return cost{}, err
	}
	return f.observe(ctx)
}

// start starts the exporters, the proxies of the form, and Prometheus.
func (f *fleet) start(ctx context.Context) error {
	exporters := httptest.NewServer(&exporters{})
	f.closes = append(f.closes, exporters.Close)
	var groups []group
	var all []string
	for first := 0; first < f.trial.nodes; first += nodesPerProxy {
		var urls []string
		for node := first; node < min(first+nodesPerProxy, f.trial.nodes); node++ {
			urls = append(urls, fmt.Sprintf("%s/node-%04d/metrics", exporters.URL, node))
		}
		all = append(all, urls...)
		if f.trial.form.flags == nil {
			continue
		}
		proxy, err := startProxy(ctx, f.dir, f.trial, urls)
		if err != nil {
			return err
		}
		f.proxies, f.closes = append(f.proxies, proxy), append(f.closes, proxy.stop)
		groups = append(groups, group{proxy: proxy.address, sources: urls})
	}
	switch {
	case f.trial.form.flags == nil:
		groups = []group{{sources: all}}
	case f.trial.form.edge != "":
		groups = []group{{sources: f.startEdge(ctx, len(all))}}
	}
	prometheus, err := startPrometheus(ctx, f.dir, f.trial, groups)
	if err != nil {
		return err
	}
	f.prometheus, f.closes = prometheus, append(f.closes, prometheus.stop)
	return nil
}

// startEdge returns the addresses of the edge proxies.
func (f *fleet) startEdge(ctx context.Context, nodes int) (urls []string) {
	split := &edge{}
	server := httptest.NewServer(split)
	f.closes = append(f.closes, server.Close)
	go split.run(ctx, interval(nodes), f.proxies)
	for node := range nodes {
		urls = append(urls, fmt.Sprintf("%s/node-%04d/metrics", server.URL, node))
	}
	return urls
}

// observe waits until all nodes are scraped, then measures.
func (f *fleet) observe(ctx context.Context) (c cost, err error) {
	up := func() float64 { return f.prometheus.query(`sum(up)`) }
	for end := time.Now().Add(5 * time.Minute); up() < float64(f.trial.nodes); {
		if time.Now().After(end) {
			return c, fmt.Errorf("%v of %d targets are up after 5 minutes:\n%s", up(), f.trial.nodes, f.prometheus.tail())
		}
		if err := pause(ctx, time.Second); err != nil {
			return c, err
		}
	}
	var live []float64
	if c, live, err = f.watch(ctx, f.trial.steady()); err != nil {
		return c, err
	}
	for _, bytes := range live {
		c.live += bytes / float64(len(live))
	}
	if n := up(); n < float64(f.trial.nodes) {
		return c, fmt.Errorf("%v of %d targets are up at the end", n, f.trial.nodes)
	}
	c.ours = f.prometheus.query(`count({__name__=~"(.+:)?kpulse_.+"})`)
	if f.trial.steady() >= fullChunk*interval(f.trial.nodes) {
		if c.bytes, err = f.prometheus.bytesPerSample(); err != nil {
			return c, err
		}
	}
	if len(f.trial.evaluated()) > 0 {
		err = f.evaluate(ctx, &c)
	}
	return c, err
}

// readings is how often memory is read while a chunk fills.
const readings = 8

// watch measures for some time. live is the memory in use at several moments.
func (f *fleet) watch(ctx context.Context, lasts time.Duration) (c cost, live []float64, err error) {
	scraped, seconds := spent(f.proxies...), spent(f.prometheus)
	began := time.Now()
	for time.Since(began) < lasts {
		if err := pause(ctx, time.Second); err != nil {
			return c, nil, err
		}
		c.resident = max(c.resident, resident(f.prometheus))
		if time.Since(began) < lasts*time.Duration(len(live)+1)/readings {
			continue
		}
		bytes, err := f.prometheus.live()
		if err != nil {
			return c, nil, err
		}
		live = append(live, bytes)
	}
	took := time.Since(began)
	c.cpu = (spent(f.prometheus) - seconds) / took.Seconds()
	c.proxies = (spent(f.proxies...) - scraped) / (took.Seconds() / interval(f.trial.nodes).Seconds() * float64(f.trial.nodes))
	c.series = f.prometheus.series()
	return c, live, nil
}

const (
	// rulesInterval is the scrape interval while rules are evaluated: the time that rates take
	// depends on it.
	rulesInterval = 15 * time.Second
	// rulesRange is the longest range of rules that read scraped series.
	rulesRange = 5 * time.Minute
	// twoEvaluations is how long it takes to evaluate every group twice.
	twoEvaluations = 130 * time.Second
)

// evaluate makes Prometheus evaluate the rules, and measures that.
func (f *fleet) evaluate(ctx context.Context, c *cost) error {
	if err := f.prometheus.loadRules(f.dir, f.trial.evaluated()); err != nil {
		return err
	}
	lasts := twoEvaluations
	if interval(f.trial.nodes) != rulesInterval {
		lasts = max(lasts, rulesRange+time.Minute)
	}
	ruled, live, err := f.watch(ctx, lasts)
	if err != nil {
		return err
	}
	ruled.live = live[len(live)-1]
	c.ruled, ruled.ours, ruled.proxies = &ruled, c.ours, c.proxies
	c.groups, err = f.prometheus.groups()
	return err
}

// pause sleeps, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
