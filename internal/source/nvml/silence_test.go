//go:build cgo && linux

package nvml

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// asking is a log handler that reads the silence while it handles a record.
type asking struct {
	slog.Handler
	s      *silence
	logged []*source.Error
}

func (a *asking) Enabled(context.Context, slog.Level) bool { return true }

func (a *asking) Handle(context.Context, slog.Record) error {
	if !a.s.mu.TryLock() {
		a.logged = append(a.logged, nil)
		return nil
	}
	a.s.mu.Unlock()
	a.logged = append(a.logged, a.s.with(nil))
	return nil
}

// TestSilenceLogsUnlocked: a blocked log does not block access to the silence. Each cause is
// logged once.
func TestSilenceLogsUnlocked(t *testing.T) {
	var s silence
	log := &asking{s: &s}
	for range 2 {
		s.add(slog.New(log), 3, "nvmlDeviceRegisterEvents", nvml.ERROR_NOT_SUPPORTED)
	}
	s.add(slog.New(log), ofLibrary, "nvmlEventSetCreate", nvml.ERROR_UNKNOWN)
	if len(log.logged) != 2 {
		t.Fatalf("%d lines", len(log.logged))
	}
	for i, e := range log.logged {
		if e == nil {
			t.Fatal("the silence is locked while it logs")
		}
		if !strings.Contains(e.Cause, "GPU 3") || strings.Contains(e.Cause, "nvmlEventSetCreate") != (i == 1) {
			t.Errorf("line %d: %s", i, e.Cause)
		}
	}
}
