//go:build cgo && linux

package nvml

import (
	"context"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/nvml/nvmltest"
)

// rounds returns a function that reads that many boards through a library that
// is loaded like the driver's, one board after another.
func rounds(t testing.TB, boards int) func() *raw.Batch {
	scenario := filepath.Join(t.TempDir(), "scenario")
	nvmltest.H100(boards).Write(t, scenario)
	t.Setenv(nvmltest.ScenarioEnv, scenario)
	path := nvmltest.Build(t)
	s := newSource(Options{LibraryPath: path}, nvml.New(nvml.WithLibraryPath(path)))
	n, err := s.open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, w := range n.workers {
			w.free()
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	b, at := &raw.Batch{}, time.Now()
	return func() *raw.Batch {
		b.Reset()
		at = at.Add(time.Second)
		for i, w := range n.workers {
			w.instances.listed = at // they are not listed again
			n.states[i].result = w.round(at)
		}
		s.watch(n, at)
		if err := n.batcher.follow(n.states); err != nil {
			t.Fatal(err)
		}
		n.batcher.fill(b, n.states, at, time.Minute)
		return b
	}
}

// A steady reading allocates only what go-nvml does for each board: a few bytes for
// each number that a call returns, and the averages of GPM twice.
func TestAllocations(t *testing.T) {
	next := rounds(t, 1)
	for range 4 {
		next()
	}
	const most = 26      // calls
	least := math.Inf(1) // other goroutines' allocations count too
	for range 5 {
		least = min(least, testing.AllocsPerRun(20, func() { next() }))
	}
	if least > most {
		t.Errorf("%v allocations a reading", least)
	}
	if samples := len(next().Samples); samples < 15 {
		t.Errorf("%d samples", samples)
	}
}

func BenchmarkReading(b *testing.B) {
	next := rounds(b, 8)
	next()
	b.ReportAllocs()
	for b.Loop() {
		next()
	}
}
