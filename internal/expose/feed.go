package expose

import (
	"context"
	"errors"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Feed is one source as the exposition needs it. Its methods may be called from
// any goroutine.
type Feed interface {
	// Name tells sources apart. It never changes and holds no credentials.
	Name() string
	// Read returns a snapshot fit to be served now: of a scraped source a fresh
	// one, or one shared with overlapping scrapes; of a stream the latest that is
	// not stale. It returns when ctx ends at the latest. release must be called
	// once when the caller is done with the snapshot. The error is a
	// *canonical.Failure.
	Read(ctx context.Context) (snap *canonical.Snapshot, release func(), err error)
	// Status returns the state of the source after its last reading, without
	// reading it. ready is nil once a reading younger than the staleness limit
	// exists, else it says why there is none.
	Status() (state canonical.Source, ready error)
}

// reading is what came of reading one feed for one scrape. Exactly one of
// snapshot and failure is set.
type reading struct {
	snapshot *canonical.Snapshot
	failure  *canonical.Failure
	// source is the snapshot's, or the state after the failure.
	source  *canonical.Source
	release func() // nil after a failure
	// shared is how many devices of the snapshot an earlier reading has too. It is
	// known once the labels are laid out.
	shared int
}

// readFeed reads f for one scrape.
func readFeed(ctx context.Context, f Feed) reading {
	snap, release, err := f.Read(ctx)
	if err == nil {
		return reading{snapshot: snap, source: &snap.Source, release: release}
	}
	failure, ok := errors.AsType[*canonical.Failure](err)
	if !ok {
		failure = &canonical.Failure{Kind: "stream_error", Cause: err.Error()}
	}
	state, _ := f.Status()
	return reading{failure: failure, source: &state}
}
