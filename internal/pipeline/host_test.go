package pipeline

import (
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

// TestHost: the host of a local source is read with a reading, at most once a second.
func TestHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		host := func() canonical.Host { reads++; return canonical.Host{CPUs: float64(reads)} }
		begun := time.Now()
		p, stop := startWith(t, Options{Source: &onHost{scripted: scripted{say: temperature}, local: true}, Host: host})
		defer stop()
		for _, c := range []struct{ at, want int }{{0, 1}, {900, 1}, {1000, 2}, {1900, 2}, {9000, 3}} { // ms, reads of the host
			time.Sleep(time.Until(begun.Add(time.Duration(c.at) * time.Millisecond)))
			if got := cpus(t, p); got != float64(c.want) {
				t.Errorf("after %d ms: %g, want %d", c.at, got, c.want)
			}
		}
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
