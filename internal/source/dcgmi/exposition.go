package dcgmi

import (
	"log/slog"
	"os"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/identity"
	"github.com/kpulse/kpulse-proxy/internal/source/page"
)

// oddFor is how long entities must look odd before somebody wonders: as long as
// streams that start need to be all there.
const oddFor = time.Second

// exposition makes of a joined tick what an exporter would have answered. It
// belongs to the goroutine that reads the source.
type exposition struct {
	page    *page.Page
	dict    *raw.Dict
	scanner raw.Scanner
	jobs    *identity.Mapping // nil for none
	failed  bool              // the jobs could not be read last time
	logger  *slog.Logger

	entities int       // how many had a value, as far as that is nothing odd
	odd      time.Time // since when it is, zero if it is not
}

// newExposition serves hostname, "" for none, and the jobs in a directory, "" for
// none.
func newExposition(hostname, jobs string, logger *slog.Logger) *exposition {
	e := &exposition{page: page.New(hostname), dict: raw.NewDict(), logger: logger}
	if jobs != "" {
		e.jobs = identity.NewMapping(os.DirFS(jobs), jobs)
	}
	return e
}

// write writes a tick into the emptied b, and tells whether the node should be
// surveyed: for a while now, entities that it has not, or that it should have,
// came or went.
func (e *exposition) write(b, tick *raw.Batch) (odd bool) {
	e.refresh(tick.At)
	b.Dict, b.At = e.dict, tick.At
	b.Body = e.page.Append(b.Body[:0], tick)
	e.scanner.Scan(b)
	b.Skipped += tick.Skipped
	return e.wonders(tick)
}

// refresh takes over the jobs as they are now.
func (e *exposition) refresh(now time.Time) {
	if e.jobs == nil {
		return
	}
	changed, err := e.jobs.Refresh(now)
	if changed {
		e.page.SetJobs(e.jobs.Jobs())
	}
	if err != nil && !e.failed {
		e.logger.Warn("GPUs are shown without their jobs", "cause", err)
	}
	e.failed = err != nil
}

// wonders tells whether a tick is the first that has been odd for oddFor. Then
// its number of entities is odd no more.
func (e *exposition) wonders(tick *raw.Batch) bool {
	n := entities(tick)
	switch {
	case n == e.entities && !e.page.Strangers():
		e.odd = time.Time{}
	case e.odd.IsZero():
		e.odd = tick.At
	case tick.At.Sub(e.odd) >= oddFor:
		e.odd, e.entities = time.Time{}, n
		return true
	}
	return false
}

// entities counts the runs of samples of one entity: those with a value, once for
// each stream.
func entities(tick *raw.Batch) int {
	n := 0
	for i := range tick.Samples {
		if i == 0 || tick.Samples[i].Labels != tick.Samples[i-1].Labels {
			n++
		}
	}
	return n
}
