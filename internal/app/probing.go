package app

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/settings"
)

// settling is how long doctor waits for inputs of our scores that the first reading of a source lacks,
// such as averages between two samples.
const settling = 5 * time.Second

// readForDoctor implements checks.ReadSource.
func readForDoctor(ctx context.Context, with *settings.Options, s *settings.Upstream) (name string, devices int, state *canonical.Source, err error) {
	o, logger := newOptions(new(*with)), slog.New(slog.DiscardHandler)
	o.Upstreams = []settings.Upstream{*s}
	src, err := open(o, s, logger)
	if err != nil {
		return s.Name, 0, nil, err
	}
	p, err := wire(src, o, s, parts{logger: logger})
	if err != nil {
		return src.Name(), 0, nil, err
	}
	defer inBackground(context.WithoutCancel(ctx), p.Run)() // ctx bounds only Read
	for begun := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		snapshot, release, err := p.Read(ctx)
		if err != nil {
			return src.Name(), 0, nil, err
		}
		got := snapshot.Source
		got.Missing, got.Unusable = slices.Clone(got.Missing), slices.Clone(got.Unusable)
		devices := snapshot.Frame.Len()
		release()
		if len(got.Missing) == 0 || time.Since(begun) > settling || !s.Backend.Selects {
			return src.Name(), devices, &got, nil
		}
	}
}
