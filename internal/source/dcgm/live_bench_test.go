//go:build linux

package dcgm

import (
	"syscall"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// BenchmarkLive reads two running fakes with 8 GPUs and all fields at 10 ms,
// and reports the CPU time of this process only.
func BenchmarkLive(b *testing.B) {
	exe := dcgmtest.Install(b, dcgmtest.Scenario{GPUs: dcgmtest.Boards(8)})
	s := New(Options{Path: exe, Period: 10 * time.Millisecond, probes: noProbes, Hostname: "gpu07"})
	defer s.Close()
	var batch raw.Batch
	read := func() {
		if err := s.Read(b.Context(), &batch); err != nil {
			b.Fatal(err)
		}
	}
	for !has(&batch, "SMACT") {
		read()
	}
	begun := processorTime(b)
	n := 0
	for b.Loop() {
		read()
		n++
	}
	b.ReportMetric((processorTime(b)-begun).Seconds()*1000/float64(n), "cpu-s/1000ticks")
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
