package holders

import (
	"context"
	"log/slog"

	"k8s.io/klog/v2"
)

// LogTo writes the log of Kubernetes' own packages, which is global and verbose, at level
// debug. What matters is returned as an error, and logged by the caller.
func LogTo(logger *slog.Logger) {
	klog.SetSlogLogger(slog.New(debugging{logger.Handler()}))
}

// debugging is a handler that logs every record at level debug.
type debugging struct{ slog.Handler }

// Enabled implements slog.Handler.
func (d debugging) Enabled(ctx context.Context, _ slog.Level) bool {
	return d.Handler.Enabled(ctx, slog.LevelDebug)
}

// Handle implements slog.Handler.
func (d debugging) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return d.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (d debugging) WithAttrs(attrs []slog.Attr) slog.Handler {
	return debugging{d.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (d debugging) WithGroup(name string) slog.Handler { return debugging{d.Handler.WithGroup(name)} }
