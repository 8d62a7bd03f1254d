package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/kpulse/kpulse-proxy/internal/export"
	"github.com/kpulse/kpulse-proxy/internal/source/identity"
)

// once reads the source one time and writes what it said as a table. What went
// wrong beside it goes to stderr; what keeps it from reading is its error.
func once(ctx context.Context, opts *options, stdout, stderr io.Writer) error {
	warnings := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	src, err := open(ctx, opts, newUserAgent(), warnings)
	if err != nil {
		return err
	}
	p, err := wire(src, opts, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	life, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.Run(life) // how it ends does not matter once there is a reading
	}()
	defer func() { end(); <-ended }()

	ctx, cancel := context.WithTimeout(ctx, opts.timeout)
	defer cancel()
	snapshot, release, err := p.Read(ctx)
	if err != nil {
		return err
	}
	defer release()
	if snapshot.Frame.Len() == 0 {
		return fmt.Errorf("no GPU in the reading of %s; check that it sees the node's GPUs, and that --source is right where one is given", p.Name())
	}
	if err := export.Table(stdout, snapshot); err != nil {
		return err
	}
	return writeJob(stdout, identity.Job(os.LookupEnv))
}

// writeJob writes what the environment tells of the batch job that we run in, on
// one line below the table; nothing outside of a job.
func writeJob(w io.Writer, job []identity.Variable) error {
	if len(job) == 0 {
		return nil
	}
	line := "\njob:"
	for _, v := range job {
		line += " " + v.Name + "=" + v.Value
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
