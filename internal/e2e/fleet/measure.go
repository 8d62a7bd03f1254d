package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"time"
)

// nodesPerProxy is how many exporters one proxy reads, so that a fleet fits on one machine.
const nodesPerProxy = 250

// interval is that of the scrapes. Small fleets are scraped more often, so that chunks are
// full, as they are after half an hour elsewhere, when their bytes are counted.
func interval(nodes int) time.Duration {
	if nodes <= 10 {
		return time.Second
	}
	return 15 * time.Second
}

// trial is one fleet in one form.
type trial struct {
	nodes int
	form  string
	lasts time.Duration
	proxy string
	rules []string
}

// cost is what a trial took.
type cost struct {
	series, ours float64 // in the head of Prometheus
	memory       float64 // resident, in bytes
	cpu          float64 // of Prometheus, in cores
	bytes        float64 // a sample in a block
	proxies      float64 // seconds of CPU for a scrape of a node
	slowest      string  // rule group, with its seconds
}

// measure runs a trial.
func measure(ctx context.Context, trial trial) (cost, error) {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return cost{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	exporters := httptest.NewServer(&exporters{})
	defer exporters.Close()
	var running []*child
	defer func() {
		for _, c := range running {
			c.stop()
		}
	}()

	var groups []group
	var proxies []*child
	for first := 0; first < trial.nodes; first += nodesPerProxy {
		var urls []string
		for node := first; node < min(first+nodesPerProxy, trial.nodes); node++ {
			urls = append(urls, fmt.Sprintf("%s/node-%04d/metrics", exporters.URL, node))
		}
		if trial.form == forms[0] {
			groups = append(groups, group{sources: urls})
			continue
		}
		proxy, err := startProxy(ctx, dir, trial, urls)
		if err != nil {
			return cost{}, err
		}
		running, proxies = append(running, proxy), append(proxies, proxy)
		groups = append(groups, group{proxy: proxy.address, sources: urls})
	}
	prometheus, err := startPrometheus(ctx, dir, trial, groups)
	if err != nil {
		return cost{}, err
	}
	running = append(running, prometheus)
	return observe(trial, prometheus, proxies)
}

// observe waits until all nodes are scraped, and reads after that what the rest costs.
func observe(trial trial, prometheus *child, proxies []*child) (c cost, err error) {
	up := func() float64 { return prometheus.query(`sum(up)`) }
	for end := time.Now().Add(5 * time.Minute); up() < float64(trial.nodes); time.Sleep(time.Second) {
		if time.Now().After(end) {
			return c, fmt.Errorf("%v of %d targets are up after 5 minutes:\n%s", up(), trial.nodes, prometheus.tail())
		}
	}
	before, seconds := spent(proxies...), spent(prometheus)
	began := time.Now()
	time.Sleep(trial.lasts)
	took := time.Since(began)
	c.cpu = (spent(prometheus) - seconds) / took.Seconds()
	c.proxies = (spent(proxies...) - before) / (took.Seconds() / interval(trial.nodes).Seconds() * float64(trial.nodes))
	if n := up(); n < float64(trial.nodes) {
		return c, fmt.Errorf("%v of %d targets are up at the end", n, trial.nodes)
	}
	c.series = prometheus.series()
	c.ours = prometheus.query(`count({__name__=~"kpulse_.+"})`)
	c.memory = resident(prometheus)
	if c.bytes, err = prometheus.bytesPerSample(); err != nil {
		return c, err
	}
	c.slowest = prometheus.slowest()
	return c, nil
}
