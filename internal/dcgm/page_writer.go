package dcgm

import (
	"log/slog"
	"os"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Writer makes of ticks the readings that a scrape of an exporter would have given:
// each is written as its Page has it, with the jobs as they are by then, and scanned.
// It belongs to one goroutine.
type Writer struct {
	*Page

	dict    *raw.Dict
	scanner raw.Scanner
	jobs    *Mapping // nil for none
	failed  bool     // the jobs could not be read last time
	logger  *slog.Logger
}

// NewWriter writes hostname, "" for none, and the jobs in a directory, "" for none.
// The logger is told when they cannot be read.
func NewWriter(hostname, jobs string, logger *slog.Logger) *Writer {
	w := &Writer{Page: New(hostname), dict: raw.NewDict(), logger: logger}
	if jobs != "" {
		w.jobs = NewMapping(os.DirFS(jobs), jobs)
	}
	return w
}

// Write writes a tick into the emptied b, with what the tick has skipped.
func (w *Writer) Write(b, tick *raw.Batch) {
	w.refresh(tick.At)
	b.Dict, b.At = w.dict, tick.At
	b.Body = w.Append(b.Body[:0], tick)
	w.scanner.Scan(b)
	b.Skipped += tick.Skipped
}

// refresh takes over the jobs as they are now.
func (w *Writer) refresh(now time.Time) {
	if w.jobs == nil {
		return
	}
	changed, err := w.jobs.Refresh(now)
	if changed {
		w.SetJobs(w.jobs.Jobs())
	}
	if err != nil && !w.failed {
		w.logger.Warn("GPUs are shown without their jobs", "cause", err)
	}
	w.failed = err != nil
}
