package expose

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Options configures the handler that New returns.
type Options struct {
	// Sources are the sources, in the order of the exposition. Names must differ.
	Sources *Set
	// Absent returns why there is no source, nil if having none is correct. It
	// is called while there is none. With a nil Absent, New refuses an empty set.
	Absent      func() *canonical.Failure
	Passthrough Passthrough
	// Form is served to clients that ask for none by ?series=.
	Form Form
	// Scrapers learns who scrapes; nil learns nothing.
	Scrapers *Scrapers
	// MaxRequests is how many requests are answered at a time, except those for health and
	// readiness; more get 503, but for a few that wait for no source.
	MaxRequests int
	// MinReadRate is how many bytes a client must read per second; 0 means no limit.
	MinReadRate int
	// Fits reports whether an answer of so many bytes fits into memory; nil says that all do.
	Fits func(bytes int64) bool
	// Logger gets warnings that requests are turned away, and what operators resolve; nil discards them.
	Logger *slog.Logger
	// Timeout bounds the reading for a scraper that sends no timeout.
	Timeout time.Duration
	// FailureKinds are the kinds of canonical.Failure that the telemetry counts from 0.
	FailureKinds []string
	// Self is the User-Agent of the proxy's own sources, whose scrapes would wait for themselves.
	Self string
	// Results passes the latest results of rules, served after the series of all sources, in pieces
	// of whole lines that no longer change. Nil means no rules.
	Results func(now time.Time, pass func([]byte))
	// Collectors are served among the proxy's own telemetry.
	Collectors []prometheus.Collector

	Page
	Machine
	Operations
}

// Page is what the landing page shows besides the sources.
type Page struct {
	// Notes returns problems that exist although all sources are read; nil means none.
	Notes func() []canonical.Note
	// Lines returns the lines that an exporter's list of counters needs for fields; nil means none.
	Lines func([]canonical.Field) []string
	// Recording returns the state of the recording of the readings; nil means none.
	Recording func() Recording
}

// Machine is what is known of this machine besides its sources.
type Machine struct {
	// Events appends, in order, the events of this machine that no source reports; nil means none.
	Events func(dst []canonical.Event) []canonical.Event
	// Switches appends the error counts of this machine's NVSwitches; nil means none.
	Switches func(dst []canonical.SXIDCount) []canonical.SXIDCount
	// SwitchFaults appends the fatal SXIDs of these that nothing resolved; nil means none.
	SwitchFaults func(dst []canonical.SwitchFault) []canonical.SwitchFault
	// Processes lists what /api/v1/processes shows; nil turns it off.
	Processes ProcessLister
	// ExposeProcesses shows processes to other machines too, also those in events.
	ExposeProcesses bool
}

// Operations is what clients may do besides reading.
type Operations struct {
	// Hosts are the names by which requests that change something may call the proxy, besides addresses and localhost.
	Hosts []string
	// Reload reads config and rules again, or fails and changes nothing. Nil refuses it over HTTP.
	Reload func() error
	// MayResolve reports whether a request may mark fatal XIDs as resolved; nil means that none may.
	MayResolve func(*http.Request) bool
	// ResolveSwitch resolves the fatal SXIDs of a switch, and reports whether it had any; nil means none has.
	ResolveSwitch func(address string) bool
	// EnablePprof serves Go profiles at /debug/pprof.
	EnablePprof bool
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
