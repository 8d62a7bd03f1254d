package app

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/kube"
	"github.com/kpulse/kpulse-proxy/internal/pipeline"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// reader is a source that is read.
type reader struct {
	backend  string
	hostname string         // of the readings that name none
	exporter *kube.Exporter // that was found, nil for a source of the settings
	source   source.Source
	pipeline *pipeline.Pipeline
}

// readers are the sources that are read, and what scrapes are served of them. It is safe for
// concurrent use.
type readers struct {
	served *expose.Set
	turns  *pipeline.Turns // nil if there is one source alone

	mu    sync.Mutex
	fixed []*reader // in the order of options.sources
	found []*reader // those that discovery found, by name
}

func newReaders() *readers { return &readers{served: expose.NewSet()} }

// all returns the readers of now, in the order in which they are served.
func (r *readers) all() []*reader {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.fixed, r.found)
}

// named returns the position of the reader with a name and the reader, -1 and nil for none.
func (r *readers) named(name string) (int, *reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, list := range [][]*reader{r.fixed, r.found} {
		at := slices.IndexFunc(list, func(one *reader) bool { return one.pipeline.Name() == name })
		if at >= 0 {
			return at + i*len(r.fixed), list[at]
		}
	}
	return -1, nil
}

// join has a reader that was found served with the others.
func (r *readers) join(one *reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, one)
	slices.SortFunc(r.found, func(a, b *reader) int { return cmp.Compare(a.pipeline.Name(), b.pipeline.Name()) })
	r.serve()
}

// leave has a reader that was found served no longer, and waits for the scrapes that read it.
func (r *readers) leave(one *reader) {
	r.mu.Lock()
	r.found = slices.DeleteFunc(r.found, func(other *reader) bool { return other == one })
	drained := r.serve()
	r.mu.Unlock()
	drained()
}

// serve serves the readers of now. The caller holds mu.
func (r *readers) serve() (drained func()) {
	var sources []expose.Source
	for _, one := range slices.Concat(r.fixed, r.found) {
		sources = append(sources, one.pipeline)
	}
	return r.served.Replace(sources)
}

// close closes what is not going to be read.
func (r *readers) close() (err error) {
	for _, one := range r.fixed {
		err = errors.Join(err, one.source.Close())
	}
	return err
}
