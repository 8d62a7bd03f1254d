package pipeline

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// onHost is a source that reads this machine, or another one.
type onHost struct {
	scripted
	local bool
}

func (s *onHost) Caps() source.Caps {
	caps := s.scripted.Caps()
	caps.Local = s.local
	return caps
}

// cpus returns the CPUs of the host in a scrape, -1 if there is no host.
func cpus(t *testing.T, p *Pipeline) float64 {
	t.Helper()
	snap, release, err := p.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if snap.Host == nil {
		return -1
	}
	return snap.Host.CPUs
}

// TestHost: the host of a local source is read once a second, and the first reading has it. While
// a read of it hangs, readings go on: with its last load for 3 s, then without.
func TestHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		host := func() canonical.Host {
			n := reads.Add(1)
			time.Sleep(10 * time.Millisecond)
			if n == 3 {
				time.Sleep(10 * time.Second)
			}
			return canonical.Host{CPUs: float64(n)}
		}
		begun := time.Now()
		p, stop := startWith(t, Options{Source: &onHost{scripted: scripted{say: temperature}, local: true}, Host: host})
		defer stop()
		for _, c := range []struct{ at, took, want int }{ // ms, ms, reads of the host
			{0, 10, 1}, {1000, 0, 1}, {1100, 0, 2}, {4000, 0, 2}, {4100, 0, -1}, {12000, 0, -1}, {12100, 0, 3}, {13100, 0, 4},
		} {
			time.Sleep(time.Until(begun.Add(time.Duration(c.at) * time.Millisecond)))
			asked := time.Now()
			if got := cpus(t, p); got != float64(c.want) || time.Since(asked) != time.Duration(c.took)*time.Millisecond {
				t.Errorf("after %d ms: %g after %s, want %d after %d ms", c.at, got, time.Since(asked), c.want, c.took)
			}
		}
	})
}

// TestHostThatHangsAtOnce delays the first reading briefly, and no other.
func TestHostThatHangsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		host := func() canonical.Host { <-hang; return canonical.Host{} }
		p, stop := startWith(t, Options{Source: &onHost{scripted: scripted{say: temperature}, local: true}, Host: host})
		for _, want := range []time.Duration{hostPatience, 0} {
			asked := time.Now()
			if got := cpus(t, p); got != -1 || time.Since(asked) != want {
				t.Errorf("%g after %s, want none after %s", got, time.Since(asked), want)
			}
		}
		stop()
		close(hang)
	})
}

func TestHostOfAnotherMachineIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := func() canonical.Host { t.Error("the host is read"); return canonical.Host{} }
		p, stop := startWith(t, Options{Source: &onHost{scripted: scripted{say: temperature}}, Host: host})
		defer stop()
		if got := cpus(t, p); got != -1 {
			t.Errorf("%g, want none", got)
		}
	})
}
