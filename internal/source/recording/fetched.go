package recording

import (
	"context"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// fetched is a Recorder of a source.Fetcher, whose requests may overlap. The order of records
// may differ from that of requests: a request that failed late is older than the records before
// it.
type fetched struct {
	*Recorder
	fetcher source.Fetcher
}

var _ source.Fetcher = (*fetched)(nil)

// Unwrap returns the Recorder.
func (f *fetched) Unwrap() source.Source { return f.Recorder }

// Fetch implements source.Fetcher, and records a failed request.
func (f *fetched) Fetch(ctx context.Context, b *raw.Batch) error {
	asked := time.Now()
	err := f.fetcher.Fetch(ctx, b)
	if err != nil {
		f.recordFailure(asked, time.Since(asked), err)
	}
	return err
}

// Scan implements source.Fetcher, and records the reading or the failure.
func (f *fetched) Scan(b *raw.Batch) error {
	asked, took := b.At, b.Took // Scan empties a Batch that it refuses
	if err := f.fetcher.Scan(b); err != nil {
		f.recordFailure(asked, took, err)
		return err
	}
	f.record(b)
	return nil
}
