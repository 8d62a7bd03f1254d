package expose

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// patience is how long a test waits for what must happen. It is far more than a busy machine
// needs: only a failing test waits that long.
const patience = time.Minute

// fakeSource is a source whose reading or failure a test sets.
type fakeSource struct {
	name     string
	snapshot *canonical.Snapshot
	failure  error
	state    canonical.Source
	events   []canonical.Event
	fatal    []string // UUIDs
	ready    error
	slow     bool // Read waits for the end of its context

	glancing sync.Mutex
	deadline atomic.Int64 // time left when Read was called, in ns
	entered  chan struct{}
	hold     chan struct{} // Read waits until it is closed; nil: does not wait
	held     atomic.Int64  // snapshots that were not released
	reads    atomic.Int64
}

// sourceOf returns a source that works.
func sourceOf(s *canonical.Snapshot) *fakeSource {
	return &fakeSource{name: s.Source.Name, snapshot: s, state: s.Source, entered: make(chan struct{}, 100)}
}

// brokenSource returns a source that fails with f.
func brokenSource(name string, f *canonical.Failure) *fakeSource {
	return &fakeSource{name: name, failure: f, state: canonical.Source{Name: name, Backend: "prometheus", Failure: f}, ready: f, entered: make(chan struct{}, 100)}
}

func (f *fakeSource) Name() string { return f.name }

func (f *fakeSource) Events(dst []canonical.Event) []canonical.Event { return append(dst, f.events...) }

func (f *fakeSource) Resolve(uuid string) (known, resolved bool) {
	if f.state.Roster != nil {
		known = slices.ContainsFunc(f.state.Roster.Devices, func(d canonical.Device) bool { return d.UUID == uuid })
	}
	at := slices.Index(f.fatal, uuid)
	if at >= 0 {
		f.fatal = slices.Delete(f.fatal, at, at+1)
	}
	return known, at >= 0
}

func (f *fakeSource) Read(ctx context.Context) (*canonical.Snapshot, func(), error) {
	f.reads.Add(1)
	if deadline, ok := ctx.Deadline(); ok {
		f.deadline.Store(int64(time.Until(deadline)))
	}
	select {
	case f.entered <- struct{}{}:
	default: // no test waits for so many
	}
	if f.hold != nil {
		<-f.hold
	}
	if f.slow {
		<-ctx.Done()
		return nil, nil, &canonical.Failure{Kind: "timeout", Timeout: true, Cause: context.Cause(ctx).Error(), Remedy: "wait"}
	}
	if f.failure != nil {
		return nil, nil, f.failure
	}
	f.held.Add(1)
	return f.snapshot, func() { f.held.Add(-1) }, nil
}

func (f *fakeSource) Glance(see func(*canonical.Snapshot)) {
	f.glancing.Lock() // as a pipeline does
	defer f.glancing.Unlock()
	if f.snapshot != nil {
		see(f.snapshot)
	}
}

func (f *fakeSource) Status() (canonical.Source, error) { return f.state, f.ready }

var (
	refused = &canonical.Failure{Kind: "unreachable", Cause: "http://node:9400/metrics: connection refused", Remedy: "start the exporter"}
	tooSlow = &canonical.Failure{Kind: "timeout", Timeout: true, Cause: "http://node:9400/metrics did not answer within 1s", Remedy: "raise scrape_timeout"}
)

// serve starts a real server of opts; zero options get values that work.
func serve(t testing.TB, opts Options) *httptest.Server {
	t.Helper()
	opts.Form.Full = true
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
		for _, f := range opts.Sources.now() {
			if n := f.(*fakeSource).held.Load(); n != 0 {
				t.Errorf("%d snapshots of %s were not released, or twice", n, f.Name())
			}
		}
	})
	return server
}
