package expose

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Options are what to serve.
type Options struct {
	// Sources are the sources, in the order of the exposition. Names must differ.
	Sources *Set
	// Absent returns why there is no source, nil where none is what there is to serve. It
	// is asked while there is none. A nil Absent refuses to begin with none.
	Absent      func() *canonical.Failure
	Passthrough Passthrough
	// Form is which series of ours are served.
	Form Form
	// Birth is for how long a counter that begins where another source takes a device over
	// is shown as 0.
	Birth time.Duration
	// MaxRequests is how many requests are answered at a time, those for health and
	// readiness aside; more get 503. A few more of those that wait for no source are
	// answered, so that an operator can see what the others wait for.
	MaxRequests int
	// MinReadRate is how many bytes a client must read each second; 0 is none.
	MinReadRate int
	// Logger, unless nil, warns that requests are turned away.
	Logger *slog.Logger
	// Timeout bounds the reading for a scraper that names no timeout of its own.
	Timeout time.Duration
	// FailureKinds are the kinds of canonical.Failure that the telemetry counts
	// from 0; others are counted from their first.
	FailureKinds []string
	// Self is the User-Agent with which our own sources read: a scrape that comes
	// with it is ours, and would wait for itself. "" is none.
	Self string
	// EnablePprof serves Go profiles at /debug/pprof.
	EnablePprof bool
	// Results passes what rules gave last on in pieces, as an exposition of whole
	// lines that no longer change: it is served after the series of all
	// sources. Nil is no rules.
	Results func(now time.Time, pass func([]byte))
	// Collectors are served among the proxy's own telemetry.
	Collectors []prometheus.Collector
	// Reload reads config and rules again. Its error is the reason why all stays as it was, and
	// what to do. Nil refuses reloads over HTTP.
	Reload func() error
	// Events appends to dst, in their order, what happened on this machine that no source
	// tells; nil is nothing.
	Events func(dst []canonical.Event) []canonical.Event
	// Switches appends to dst how often NVSwitches of this machine had errors; nil is none.
	Switches func(dst []canonical.SXIDCount) []canonical.SXIDCount
	// Notes returns what is amiss though all sources are read; nil is nothing.
	Notes func() []canonical.Note
	// Lines returns what to add to an exporter's list of counters for it to give readings; nil
	// is nothing.
	Lines func([]canonical.Field) []string
	// EnableResolve lets clients take fatal XIDs for dealt with.
	EnableResolve bool
	// Recording returns how the recording of the readings goes; nil is none.
	Recording func() Recording
	// Processes lists what /api/v1/processes shows; nil is nothing.
	Processes ProcessLister
	// ExposeProcesses shows that to other machines too, and so the processes in events.
	ExposeProcesses bool
}

func (o *Options) validate() error {
	switch {
	case o.Sources == nil || len(o.Sources.now()) == 0 && o.Absent == nil:
		return errors.New("there is no source to serve; give at least one")
	case o.MaxRequests < 1:
		return fmt.Errorf("a limit of %d requests at a time admits none; allow at least 1", o.MaxRequests)
	case o.Timeout <= 0:
		return fmt.Errorf("a timeout of %s leaves no time to read; make it more than 0, such as 10s", o.Timeout)
	}
	return duplicate(o.Sources.now())
}
