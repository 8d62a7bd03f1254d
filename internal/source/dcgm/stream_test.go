//go:build linux

package dcgm

import (
	"testing"
	"time"
)

// A dcgmi that does not keep up is reported once for each stream, with a remedy.
func TestSlowStreamIsToldOnce(t *testing.T) {
	s, log := asked(nil)
	for _, interval := range []time.Duration{1234567 * time.Microsecond, 2 * time.Second} {
		s.slow(s.streams[device], interval)
	}
	s.slow(s.streams[profiling], 300*time.Millisecond)
	for _, want := range [][]string{
		{"WARN", `"dcgmi needs 1.23s for a sample; raise --poll to at least 1.3s"`, "stream=device"},
		{"WARN", `"dcgmi needs 300ms for a sample; raise --poll to at least 300ms"`, "stream=profiling"},
	} {
		if log.count(want...) != 1 {
			t.Errorf("no %q in\n%s", want, &log.text)
		}
	}
	if n := log.count(""); n != 2 {
		t.Errorf("%d lines:\n%s", n, &log.text)
	}
}
