//go:build !cgo || !linux

package nvml

import (
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

func TestWithoutCgoNewSaysWhatToDo(t *testing.T) {
	s, err := New(Options{})
	if e := source.AsError(err); s != nil || e.Failure != source.Unsupported ||
		!strings.Contains(e.Remedy, "CGO_ENABLED=1") || !strings.Contains(e.Remedy, "--backend=prometheus") {
		t.Errorf("%v, %v", s, err)
	}
}
