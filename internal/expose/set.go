package expose

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Set holds the sources that are served. They may be replaced while requests are answered: each
// request sees the same sources from beginning to end. Its methods may be called from any
// goroutine.
type Set struct {
	mu      sync.Mutex
	members *members
	// changed, unless nil, is called with the sources before and after each replacement.
	changed func(before, after []Source)
}

// members are the sources of a Set between two replacements.
type members struct {
	sources []Source // never written to; names differ
	// all is the text that the exposition of all sources repeats, single that of each by itself.
	all    atomic.Pointer[layout]
	single []atomic.Pointer[layout]
	users  sync.WaitGroup // the scrapes that read these sources
	// drained waits for these users, and for those of the members before.
	drained func()
}

// NewSet returns a set of sources, in the order of the exposition.
func NewSet(sources ...Source) *Set {
	return &Set{members: newMembers(sources, func() {})}
}

func newMembers(sources []Source, before func()) *members {
	m := &members{sources: sources, single: make([]atomic.Pointer[layout], len(sources))}
	m.drained = sync.OnceFunc(func() {
		before()
		before = nil // forgets the members before
		m.users.Wait()
	})
	return m
}

// Replace makes later requests see these sources, whose names must differ. Once drained returns,
// no scrape reads the earlier ones, and a removed source can be closed.
func (s *Set) Replace(sources []Source) (drained func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.members
	s.members = newMembers(sources, before.drained)
	if s.changed != nil {
		s.changed(before.sources, sources)
	}
	go before.drained() // frees the members before, which hold all their labels
	return before.drained
}

// use returns the current members for a scrape, which must call users.Done.
func (s *Set) use() *members {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members.users.Add(1)
	return s.members
}

// layout returns the layout of the latest scrape of all sources, nil if there was none.
func (s *Set) layout() *layout {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members.all.Load()
}

// now returns the sources for requests that need only their state and do not read them.
func (s *Set) now() []Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members.sources
}

// duplicate returns an error if two sources have the same name.
func duplicate(sources []Source) error {
	seen := map[string]bool{}
	for _, f := range sources {
		if seen[f.Name()] {
			return fmt.Errorf("two sources are named %q; give them different names", f.Name())
		}
		seen[f.Name()] = true
	}
	return nil
}
