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

// asking is a log handler that reads the notices while it handles a record.
type asking struct {
	slog.Handler
	s      *notices
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

// A blocked log does not block access to the notices. Each cause is logged once.
func TestNoticesLogUnlocked(t *testing.T) {
	log := &asking{}
	log.s = newNotices(slog.New(log))
	for range 2 {
		log.s.withoutXIDs(3, "nvmlDeviceRegisterEvents", nvml.ERROR_NOT_SUPPORTED)
	}
	log.s.withoutXIDs(ofLibrary, "nvmlEventSetCreate", nvml.ERROR_UNKNOWN)
	if len(log.logged) != 2 {
		t.Fatalf("%d lines", len(log.logged))
	}
	for i, e := range log.logged {
		if e == nil {
			t.Fatal("the notices are locked while they log")
		}
		if !strings.Contains(e.Cause, "GPU 3") || strings.Contains(e.Cause, "nvmlEventSetCreate") != (i == 1) {
			t.Errorf("line %d: %s", i, e.Cause)
		}
	}
}
