package engine

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
	"github.com/kpulse/kpulse-proxy/internal/rules"
)

// thirtyRules returns rules typical of a node with 112 MIG instances.
func thirtyRules() []rules.Group {
	var list [][2]string
	for i, family := range []string{"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_POWER_USAGE"} {
		for j, expr := range []string{"%s > 0", "avg_over_time(%s[1m])", "rate(%s[1m])", "sum by (Hostname) (%s)", "max_over_time(%s[5m])", "%s * on (UUID, GPU_I_ID) group_left (modelName) DCGM_FI_DEV_GPU_TEMP"} {
			list = append(list, [2]string{fmt.Sprintf("r:%d:%d", i, j), fmt.Sprintf(expr, family)})
		}
	}
	groups := group15(list...)
	groups[0].Interval = time.Second
	return groups
}

// BenchmarkSecond measures the cost of rules per second on a node of 112 MIG instances
// with 60 families, read every second, when 5 minutes of samples are stored.
func BenchmarkSecond(b *testing.B) {
	e, at := fiveMinutes()
	second := func() {
		at = at.Add(time.Second)
		e.inbox.put(outcome{source: "s", at: at.Add(-time.Millisecond), snapshot: &canonical.Snapshot{}})
		e.step(b.Context(), at)
	}
	second()
	b.ReportAllocs()
	defer reportCPU(b, cpu())
	for b.Loop() {
		second()
	}
	b.Logf("%d series, %d samples", e.store.series.Load(), e.store.samples.Load())
}

// cpu returns the CPU time of this process, including the garbage collector's.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func reportCPU(b *testing.B, begun time.Duration) {
	b.ReportMetric((cpu()-begun).Seconds()*1e3/float64(b.N), "cpu-ms/op")
}

// fiveMinutes returns an engine with 5 minutes of samples, and their end.
func fiveMinutes() (*Engine, time.Time) {
	bodies := [][]byte{rawtest.Body(112, 60, 1), rawtest.Body(112, 60, 2), rawtest.Body(112, 60, 3)}
	next := 0
	e := New(Options{
		Logger: discard(),
		Limits: Limits{Series: 100_000, Samples: 2_000_000},
		Render: func(*canonical.Snapshot) [][]byte { next++; return bodies[next%3 : next%3+1] },
	})
	at := time.Unix(1_700_000_000, 0)
	e.Replace(thirtyRules(), at)
	for range 301 {
		e.inbox.put(outcome{source: "s", at: at, snapshot: &canonical.Snapshot{}})
		e.storeReadings(at)
		at = at.Add(time.Second)
	}
	(*e.groups.Load())[0].due = at
	return e, at.Add(-time.Second)
}
