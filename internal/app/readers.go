package app

import (
	"cmp"
	"slices"
	"sync"

	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/pipeline"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// reader is a source and its pipeline.
type reader struct {
	backend  string
	exporter *holders.Exporter // that discovery found; nil for a source of the settings
	source   source.Source
	pipeline *pipeline.Pipeline
}

// readers are the sources that are read and served to scrapes. It is safe for concurrent use.
type readers struct {
	served *expose.Set

	mu    sync.Mutex
	fixed []*reader // in the order of options.Upstreams
	found []*reader // those that discovery found, by name
}

// all returns the current readers, in the order in which they are served.
func (r *readers) all() []*reader {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.fixed, r.found)
}

// named returns the position of the reader with a name and the reader, or -1 and nil.
func (r *readers) named(name string) (int, *reader) {
	all := r.all()
	at := slices.IndexFunc(all, func(one *reader) bool { return one.pipeline.Name() == name })
	if at < 0 {
		return at, nil
	}
	return at, all[at]
}

// join adds a reader that was found to the served ones.
func (r *readers) join(one *reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, one)
	slices.SortFunc(r.found, func(a, b *reader) int { return cmp.Compare(a.pipeline.Name(), b.pipeline.Name()) })
	r.serve()
}

// leave removes a reader that was found from the served ones, and waits for the scrapes that read
// it.
func (r *readers) leave(one *reader) {
	r.mu.Lock()
	r.found = slices.DeleteFunc(r.found, func(other *reader) bool { return other == one })
	drained := r.serve()
	r.mu.Unlock()
	drained()
}

// serve serves the current readers. drained waits for scrapes of the others. The caller holds mu.
func (r *readers) serve() (drained func()) {
	var sources []expose.Source
	for _, one := range slices.Concat(r.fixed, r.found) {
		sources = append(sources, one.pipeline)
	}
	return r.served.Replace(sources)
}
