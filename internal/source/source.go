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
	// Scraped sources answer when they are asked.
	Scraped Kind = iota
	// Streamed sources give readings by themselves, once a period.
	Streamed
)

// Aggregation is what one reading of a rate or ratio stands for.
type Aggregation string

const (
	// Point is a short sample (about 100 ms).
	Point Aggregation = "point"
	// Window is an average over the source's collection interval.
	Window Aggregation = "window"
)

// Caps are the static properties of a source.
type Caps struct {
	Backend     string // the word of --backend: prometheus, replay, …
	Kind        Kind
	Aggregation Aggregation
	Period      time.Duration // of a stream; 0 if the reader sets the pace
	Local       bool          // the source reads this machine
	Host        string        // the host name that the source gives, "" if none
}

// Source is one upstream. Read blocks until a reading is ready or ctx ends, and
// then fills b, which it empties first; after an error b is empty. A source that
// has ended returns io.EOF. Read is called from one goroutine at a
// time; Close may be called from another and makes a blocked Read return.
//
// All Batches handed to one source share a Dict: Read sets b.Dict.
type Source interface {
	// Name identifies the source to people and in the label `source`. It never
	// holds credentials.
	Name() string
	Caps() Caps
	Read(ctx context.Context, b *raw.Batch) error
	Close() error
}
