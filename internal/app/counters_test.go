package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/settings"
)

// TestCountersOf49: names of 4.9 are served in their units, except for one whose unit the file
// does not give; --compat serves that one, and the log says so.
func TestCountersOf49(t *testing.T) {
	file := filepath.Join(t.TempDir(), "4.9.csv")
	if err := os.WriteFile(file, []byte("DCGM_FI_DEV_SM_CLOCK_HERTZ, gauge, x\nDCGM_FI_DEV_GPU_UTIL_RATIO, gauge, x\nDCGM_EXP_P2P_STATUS, gauge, y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		compat   []string
		notGiven []string
		says     string
	}{
		{nil, []string{"DCGM_FI_DEV_GPU_UTIL_RATIO", "DCGM_EXP_P2P_STATUS"}, "get it from --compat=4.9: DCGM_FI_DEV_GPU_UTIL_RATIO\""},
		{[]string{"4.9"}, []string{"DCGM_EXP_P2P_STATUS"}, "take them out of the file"},
	} {
		var log strings.Builder
		o, s := &options{Options: &settings.Options{}}, &settings.Upstream{Backend: &settings.Backends[0]}
		s.Counters = file
		o.Compat = test.compat
		if _, err := o.page(s, func(int) bool { return true }, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.NotGiven, test.notGiven) || !strings.Contains(log.String(), test.says) {
			t.Errorf("compat %v: %v and %s, want %v and %s", test.compat, s.NotGiven, log.String(), test.notGiven, test.says)
		}
	}
}
