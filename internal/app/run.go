// Package app is the program: a file for each of its modes, and what wires sources to pipelines.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/common/version"

	"github.com/kpulse/kpulse-proxy/internal/checks"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/host"
	"github.com/kpulse/kpulse-proxy/internal/selection"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// gcPercent is GOGC. It halves the default, as there is little garbage and a sidecar's memory
	// counts on every node. TestTargets saw no difference in CPU beyond its noise.
	gcPercent = 50
	// dashboardGC is GOGC of the dashboard. It is even lower, as the dashboard's six hours of
	// history are large and cause little garbage.
	dashboardGC = 15
	// healthGC is GOGC of check health, which ends before there is much garbage: collecting it was a sixth of its CPU time.
	healthGC = 400
	// maxProcs bounds the threads that run Go code at a time, as in node_exporter, to leave the
	// cores to the jobs. A scrape uses several goroutines, and waking a thread for each took a
	// fifth of its CPU.
	maxProcs = 1
	// memoryShare is the share of the cgroup's memory in GOMEMLIMIT, near which the garbage
	// collector works harder. The rest is for memory that Go does not count, such as the
	// program file.
	memoryShare = 0.85
)

// spoken are words that users type first, with what they mean.
var spoken = map[string][]string{"help": {"--help"}, "version": {"--version"}, "tui": {"--tui"}, "health": {"check", "health"}}

// Run runs the program and returns the exit code.
func Run(args []string, stdout, stderr io.Writer) int {
	if version.Version == "" {
		version.Version = "(devel)" // built without make
	}
	stderr = diag.Writer(stderr)
	switch {
	case len(args) > 1 && args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
		if spoken[args[0]] != nil {
			args = slices.Concat(spoken[args[0]], args[1:])
		}
	case len(args) > 0 && spoken[args[0]] != nil:
		args = slices.Concat(spoken[args[0]], args[1:])
	}
	switch out := diag.Writer(stdout); {
	case len(args) == 0:
	case args[0] == "check" && len(args) > 1 && args[1] == "health" && !slices.Contains(args, "--help") && !slices.Contains(args, "-h"):
		return checkHealth(args[2:], out, stderr)
	case args[0] == "check":
		return checks.Check(args[1:], out, stderr)
	case args[0] == "explain":
		return checks.Explain(args[1:], out, stderr)
	case args[0] == "report":
		ctx, stop := newOptions(settings.NewOptions()).begin()
		defer stop()
		return checks.Report(ctx, args[1:], out, stderr, func(o *settings.Options) (*http.Client, error) { return newOptions(o).tuiClient() })
	case args[0] == "doctor":
		ctx, stop := newOptions(settings.NewOptions()).begin()
		defer stop()
		return checks.Doctor(ctx, args[1:], out, stderr, readForDoctor)
	}
	opts, err := parse(args, stdout)
	_, inFile := errors.AsType[*settings.FileError](err)
	switch {
	case errors.Is(err, settings.ErrAnswered):
		return settings.ExitDone
	case inFile:
		fmt.Fprintf(stderr, "kpulse-proxy: %v\n", err)
		return settings.ExitFailed
	case err != nil:
		fmt.Fprintf(stderr, "kpulse-proxy: %v\n(kpulse-proxy --help-all explains every flag)\n", err)
		return settings.ExitUsage
	}
	logger := opts.warningsTo(stderr)
	if opts.Mode() == settings.ModeServe && !opts.ConfigShow {
		defer catchPipeSignal()() // the log's reader may end
		logger = opts.logTo(stderr)
	}
	settings.WarnOfUnknown(os.Environ(), logger.Warn)
	ctx, stop := opts.begin()
	defer stop()
	switch {
	case opts.ConfigShow:
		err = opts.ShowConfig(stdout)
	case opts.Once:
		defer catchPipeSignal()()
		err = quiet(once(ctx, opts, stdout, logger))
	case opts.Columns != nil:
		defer catchPipeSignal()()
		err = stream(ctx, opts, stdout, logger)
	case opts.TUI:
		err = dashboard(ctx, opts, stderr)
	default:
		err = serve(ctx, opts, logger)
	}
	if err != nil {
		fmt.Fprintf(stderr, "kpulse-proxy: %v\n", err)
		return settings.ExitFailed
	}
	return settings.ExitDone
}

// begin prepares for a mode, and returns a context that ends with the first SIGINT or SIGTERM. A
// second one ends the program at once.
func (o *options) begin() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	o.limitResources()
	o.visible = sync.OnceValue(func() []selection.Visible { return visibleBoards(ctx) })
	return ctx, stop
}

// logTo returns the logger of a server. Logfmt quotes control characters itself; JSON does not quote
// all of them.
func (o *options) logTo(stderr io.Writer) *slog.Logger {
	if o.Log.Writer = stderr; o.Log.Format.String() == "json" {
		o.Log.Writer = diag.JSONWriter(stderr)
	}
	return promslog.New(&o.Log)
}

// limitResources sets GOGC, GOMEMLIMIT and GOMAXPROCS, unless the environment does.
func (o *options) limitResources() {
	if os.Getenv("GOGC") == "" {
		percent := gcPercent
		switch {
		case o.TUI:
			percent = dashboardGC
		case o.Health:
			percent = healthGC
		}
		debug.SetGCPercent(percent)
	}
	if limit := cmp.Or(int64(o.Limits.Memory), host.MemoryLimit("/")); limit > 0 {
		o.memory = &source.Memory{Limit: limit}
		if os.Getenv("GOMEMLIMIT") == "" {
			debug.SetMemoryLimit(int64(memoryShare * float64(limit)))
		}
	}
	// Go ignores a value that is not a number above 0, and uses all processors.
	if n, err := strconv.Atoi(os.Getenv("GOMAXPROCS")); err != nil || n < 1 {
		runtime.GOMAXPROCS(maxProcs)
	}
}
