package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/export"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/host"
	"github.com/kpulse/kpulse-proxy/internal/selection"
	"github.com/kpulse/kpulse-proxy/internal/settings"
)

// once reads the source once and presents the reading as text, JSON or CSV. It logs problems to
// warnings, and returns an error if it cannot read.
func once(ctx context.Context, opts *options, stdout io.Writer, warnings *slog.Logger) error {
	meter := host.NewMeter(procfs)
	meter.Read() // utilization counts from here on
	src, err := open(opts, &opts.Upstreams[0], warnings)
	if err != nil {
		return err
	}
	caps := src.Caps()
	p, err := wire(src, opts, &opts.Upstreams[0], parts{attribute: opts.users(ctx, warnings), logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer inBackground(ctx, p.Run)()
	timeout := firstPatience * time.Duration(opts.Timeout)
	bounded, cancel := context.WithTimeoutCause(ctx, timeout, canonical.TimedOut(timeout))
	defer cancel()
	snapshot, release, err := p.Read(bounded)
	if err != nil {
		return err
	}
	defer release()
	shown := *snapshot
	if shown.Frame.Len() == 0 {
		if notes := shown.Source.Notes; len(notes) > 0 {
			return fmt.Errorf("no GPU in the reading of %s: %s; %s", p.Name(), notes[0].Cause, notes[0].Remedy)
		}
		return fmt.Errorf("no GPU in the reading of %s; check that it sees the node's GPUs, and that it is the right source", p.Name())
	}
	if caps.Local {
		load := meter.Read()
		shown.Host = &load
	}
	devices, err := newSelector(opts, caps, warnings).choose(shown.Frame.Topology)
	if err != nil {
		return err
	}
	v := &export.View{Snapshot: &shown, Devices: devices, Job: job()}
	if file, is := stdout.(*os.File); is && !opts.Wide {
		v.Width, _, _ = term.GetSize(int(file.Fd())) // 0 if it is no terminal
	}
	switch {
	case opts.Columns != nil:
		return export.NewCSV(stdout, opts.Columns).Write(v)
	case opts.JSON:
		return export.JSON(stdout, v)
	default:
		return export.Frame(stdout, v)
	}
}

// users returns what adds the users of jobs to a reading of --once or --export, nil without
// --hpc-job-info-dir. The directory has been read once, and is read again until ctx ends.
func (o *options) users(ctx context.Context, warnings *slog.Logger) func(*canonical.Frame) {
	if o.JobInfoDir == "" {
		return nil
	}
	jobs := holders.NewJobs(diag.Directory(o.JobInfoDir), o.JobInfoDir, warnings)
	jobs.Look()
	go jobs.Run(ctx)
	return jobs.Feed().Complete
}

// inBackground runs a source or the program until end, which waits. Who reads it sees why it fails.
func inBackground(ctx context.Context, run func(context.Context) error) (end func()) {
	life, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = run(life)
	}()
	return func() { cancel(); <-ended }
}

// warningsTo logs problems, for modes whose output is not a log: warnings, unless --log.level
// says otherwise.
func (o *options) warningsTo(stderr io.Writer) *slog.Logger {
	level := slog.LevelWarn
	if o.Origin("log.level") > settings.FromFile {
		_ = level.UnmarshalText([]byte(o.Log.Level.String())) // it was parsed
	}
	handler := &slog.HandlerOptions{Level: level}
	if o.Log.Format.String() == "json" {
		return slog.New(slog.NewJSONHandler(diag.JSONWriter(stderr), handler))
	}
	return slog.New(slog.NewTextHandler(stderr, handler))
}

// job returns the variables of the batch job that we run in.
func job() []canonical.Variable {
	return selection.Job(os.LookupEnv)
}
