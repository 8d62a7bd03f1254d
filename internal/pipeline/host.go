package pipeline

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// hostEvery is the pause between two reads of the host.
	hostEvery = time.Second
	// hostOutdated is the age from which a load of the host is no longer served: /proc may be a
	// file system that hangs, as in some containers.
	hostOutdated = 3 * hostEvery
	// hostPatience is how long the first reading waits for that of the host.
	hostPatience = 50 * time.Millisecond
)

// hostWatch keeps the latest load of this machine. A goroutine of its own reads it, so no reading
// waits for /proc.
type hostWatch struct {
	read   func() canonical.Host // nil if there is none to read
	latest *atomic.Pointer[hostLoad]
	first  chan struct{} // closed after the first read
	waited bool
}

// hostLoad is what was read at an instant. It is immutable.
type hostLoad struct {
	at   time.Time
	host canonical.Host
}

func newHostWatch(read func() canonical.Host) hostWatch {
	return hostWatch{read: read, latest: &atomic.Pointer[hostLoad]{}, first: make(chan struct{})}
}

// run reads the host until ctx ends.
func (w *hostWatch) run(ctx context.Context) {
	for begun := false; ctx.Err() == nil; pause(ctx, hostEvery) {
		w.latest.Store(&hostLoad{host: w.read(), at: time.Now()})
		if !begun {
			begun = true
			close(w.first)
		}
	}
}

// load returns the latest load, nil if it is unknown. The reading goroutine calls it.
func (w *hostWatch) load() *canonical.Host {
	if w.read == nil {
		return nil
	}
	if !w.waited {
		w.waited = true
		select {
		case <-w.first:
		case <-time.After(hostPatience):
		}
	}
	latest := w.latest.Load()
	if latest == nil || time.Since(latest.at) > hostOutdated {
		return nil
	}
	return &latest.host
}
