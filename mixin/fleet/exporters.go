package fleet

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// Exporters serves the pages of a fleet's exporters over HTTP, each at /CLUSTER-HOST/metrics, on the real clock.
type Exporters struct {
	// Paths are those of all hosts, in order.
	Paths []string

	began time.Time
	mu    sync.Mutex
	hosts map[string]*host
}

// NewExporters returns the exporters of a number of hosts, on which nothing goes wrong, with their default counters or with all.
func NewExporters(hosts int, allCounters bool) *Exporters {
	e := &Exporters{began: time.Now(), hosts: map[string]*host{}}
	for _, h := range newFleet(hosts) {
		h.allCounters = allCounters
		path := "/" + h.cluster + "-" + h.name + "/metrics"
		e.Paths, e.hosts[path] = append(e.Paths, path), h
	}
	return e
}

func (e *Exporters) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.hosts[r.URL.Path]
	if h == nil {
		http.Error(w, "no such exporter: "+strings.TrimSuffix(r.URL.Path, "/metrics"), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(h.page(nil, time.Since(e.began)))
}
