package app

import (
	"context"
	"io"
	"log/slog"
	"testing"
)

// stuck is an output whose reader does not read: a write ends only when it is released.
type stuck struct{ entered, released chan struct{} }

func (s *stuck) Write(p []byte) (int, error) {
	close(s.entered) // there is no second write
	<-s.released
	return len(p), nil
}

// TestExportIntoAStuckReader: a reader that does not read cannot keep the program from ending.
func TestExportIntoAStuckReader(t *testing.T) {
	t.Parallel()
	opts, err := parse([]string{"--backend=replay", "--poll=0.1", "--export"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	out := &stuck{make(chan struct{}), make(chan struct{})}
	defer close(out.released)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- stream(ctx, opts, out, slog.New(slog.DiscardHandler)) }()
	<-out.entered
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
