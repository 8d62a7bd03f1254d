// Package source defines the Source interface, the capabilities of a source, and
// the errors that it returns. The sources themselves are the packages below this
// one.
package source

import (
	"context"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Kind is whether the reader or the source sets the pace.
type Kind int

const (
	// Scraped sources answer when asked.
	Scraped Kind = iota
	// Streamed sources deliver readings on their own, once per period.
	Streamed
)

// Aggregation is what one reading of a rate or ratio represents.
type Aggregation string

const (
	// Point is a short sample (about 100 ms).
	Point Aggregation = "point"
	// Window is an average over the source's collection interval.
	Window Aggregation = "window"
)

// Caps are the static properties of a source.
type Caps struct {
	Backend     string // the value of --backend: prometheus, replay, …
	Kind        Kind
	Aggregation Aggregation
	Period      time.Duration // of a stream; 0 if the reader sets the pace
	Local       bool          // the source reads this machine
	Host        string        // the host name that the source reports, "" if none
}

// Source is one upstream. Read empties b, blocks until a reading is ready or ctx
// ends, and fills b; after an error b is empty. A source that has ended returns
// io.EOF. Read is called from one goroutine at a time; Close may be called from
// another and makes a blocked Read return.
//
// All Batches handed to one source share a Dict: Read sets b.Dict.
type Source interface {
	// Name identifies the source to people and in the label `source`. It never
	// contains credentials.
	Name() string
	Caps() Caps
	Read(ctx context.Context, b *raw.Batch) error
	Close() error
}
