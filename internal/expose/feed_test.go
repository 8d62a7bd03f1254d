package expose

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// fakeFeed is a source whose reading, or failure to read, a test decides.
type fakeFeed struct {
	name     string
	snapshot *canonical.Snapshot
	failure  error
	state    canonical.Source
	ready    error
	slow     bool // Read waits for the end of its context

	deadline atomic.Int64 // what was left of it when Read was called, in ns
	entered  chan struct{}
	held     atomic.Int64 // snapshots that were not released
	reads    atomic.Int64
}

// feedOf returns a feed that works.
func feedOf(s *canonical.Snapshot) *fakeFeed {
	return &fakeFeed{name: s.Source.Name, snapshot: s, state: s.Source, entered: make(chan struct{}, 100)}
}

// brokenFeed returns a feed that fails with f.
func brokenFeed(name string, f *canonical.Failure) *fakeFeed {
	return &fakeFeed{name: name, failure: f, state: canonical.Source{Name: name, Backend: "prometheus", Failure: f}, ready: f, entered: make(chan struct{}, 100)}
}

func (f *fakeFeed) Name() string { return f.name }

func (f *fakeFeed) Read(ctx context.Context) (*canonical.Snapshot, func(), error) {
	f.reads.Add(1)
	if deadline, ok := ctx.Deadline(); ok {
		f.deadline.Store(int64(time.Until(deadline)))
	}
	select {
	case f.entered <- struct{}{}:
	default: // no test waits for so many
	}
	if f.slow {
		<-ctx.Done()
		return nil, nil, &canonical.Failure{Kind: "timeout", Timeout: true, Cause: "no answer", Remedy: "wait"}
	}
	if f.failure != nil {
		return nil, nil, f.failure
	}
	f.held.Add(1)
	return f.snapshot, func() { f.held.Add(-1) }, nil
}

func (f *fakeFeed) Status() (canonical.Source, error) { return f.state, f.ready }

var (
	refused = &canonical.Failure{Kind: "unreachable", Cause: "http://node:9400/metrics: connection refused", Remedy: "start the exporter"}
	tooSlow = &canonical.Failure{Kind: "timeout", Timeout: true, Cause: "http://node:9400/metrics did not answer within 1s", Remedy: "raise scrape_timeout"}
)

// serve starts a real server of opts; zero options get values that work.
func serve(t testing.TB, opts Options) *httptest.Server {
	t.Helper()
	if opts.MaxRequests == 0 {
		opts.MaxRequests = 4
	}
	if opts.Timeout == 0 {
		opts.Timeout = 10 * time.Second
	}
	h, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		for _, f := range opts.Feeds {
			if n := f.(*fakeFeed).held.Load(); n != 0 {
				t.Errorf("%d snapshots of %s were not released, or twice", n, f.Name())
			}
		}
	})
	return server
}
