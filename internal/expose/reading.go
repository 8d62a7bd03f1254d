package expose

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// Source is one source as the exposition needs it, for any goroutine.
type Source interface {
	// Name is unique among the sources. It never changes and holds no credentials.
	Name() string
	// Read returns a snapshot to serve now, at the latest when ctx ends: of a scraped source a fresh
	// one, or one shared with overlapping scrapes; of a stream the latest that is not stale. The
	// caller must call release once. The error is a *canonical.Failure.
	Read(ctx context.Context) (snap *canonical.Snapshot, release func(), err error)
	// Status returns the state of the source after its last reading. ready is nil once a reading
	// younger than the staleness limit exists, else the reason why there is none.
	Status() (state canonical.Source, ready error)
	// Events appends to dst the latest events of the source's devices, newest last.
	Events(dst []canonical.Event) []canonical.Event
	// Resolve marks the fatal XIDs of the board with this UUID as resolved. It reports whether
	// the source knows the board, and whether there were any.
	Resolve(uuid string) (known, resolved bool)
}

// outcome is the result of reading one source for one scrape. Exactly one of
// snapshot and failure is set.
type outcome struct {
	snapshot *canonical.Snapshot
	failure  *canonical.Failure
	// source is the snapshot's, or the state after the failure.
	source  *canonical.Source
	release func() // nil after a failure
	// shared is how many devices of the snapshot an earlier reading has too. It is
	// known once the labels are laid out.
	shared int
}

// readAll reads the sources concurrently. The caller must release the readings.
func readAll(ctx context.Context, sources []Source) []outcome {
	readings := make([]outcome, len(sources))
	read := func(i int) {
		snap, release, err := sources[i].Read(ctx)
		if err != nil {
			readings[i] = failedReading(sources[i], err)
			return
		}
		readings[i] = outcome{snapshot: snap, source: &snap.Source, release: release}
	}
	var others sync.WaitGroup
	for i := 1; i < len(sources); i++ {
		others.Go(func() { read(i) })
	}
	if len(sources) > 0 {
		read(0)
	}
	others.Wait()
	return readings
}

// failedReading is the reading of a source that could not be read.
func failedReading(f Source, err error) outcome {
	failure, ok := errors.AsType[*canonical.Failure](err)
	if !ok {
		failure = &canonical.Failure{Kind: "stream_error", Cause: err.Error()}
	}
	state, _ := f.Status()
	return outcome{failure: failure, source: &state}
}

func releaseAll(readings []outcome) {
	for i := range readings {
		if readings[i].release != nil {
			readings[i].release()
		}
	}
}

// statusOf returns 200 if any of readings is good or there are none, 504 if all sources
// were too slow, and else 502.
func statusOf(readings []outcome) int {
	if len(readings) == 0 {
		return http.StatusOK
	}
	status := http.StatusGatewayTimeout
	for i := range readings {
		switch {
		case readings[i].failure == nil:
			return http.StatusOK
		case !readings[i].failure.Timeout:
			status = http.StatusBadGateway
		}
	}
	return status
}

// explain returns a line for each source with the reason why it could not be read.
func explain(sources []Source, readings []outcome) string {
	lines := make([]string, len(sources))
	for i, f := range sources {
		lines[i] = reason(f, readings[i].failure)
	}
	return strings.Join(lines, "\n")
}

// reason returns a line that says why f gives no reading. It adds the source's name unless the
// error begins with it, as most do.
func reason(f Source, err error) string {
	text := err.Error()
	if !strings.HasPrefix(text, f.Name()) {
		text = f.Name() + ": " + text
	}
	return diag.Text("source " + text)
}
