package pipeline

import (
	"context"
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

// watching starts a pipeline that reads the host too.
func watching(t *testing.T, s source.Source, host func() canonical.Host) (*Pipeline, func()) {
	t.Helper()
	return startWith(t, Options{Source: s, Host: host})
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

// counting is a host whose number of CPUs is how often it was read.
func counting(reads *atomic.Int32) func() canonical.Host {
	return func() canonical.Host { return canonical.Host{CPUs: float64(reads.Add(1))} }
}

func TestHostIsReadOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		begun := time.Now()
		p, stop := watching(t, &onHost{scripted: scripted{kind: source.Streamed, takes: 100 * time.Millisecond, say: temperature}, local: true}, counting(&reads))
		defer stop()
		// Ticks end at 0.1 s, 0.2 s, …: the host is read at 0.1 s, 1.1 s, 2.1 s.
		for _, c := range []struct {
			at   int // ms
			want float64
		}{{150, 1}, {1050, 1}, {1150, 2}, {2050, 2}, {2150, 3}} {
			time.Sleep(time.Until(begun.Add(time.Duration(c.at) * time.Millisecond)))
			if got := cpus(t, p); got != c.want {
				t.Errorf("after %d ms: %g reads, want %g", c.at, got, c.want)
			}
		}
	})
}

func TestHostOfAnotherMachineIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		for _, c := range []struct {
			local bool
			host  func() canonical.Host
			want  float64
		}{{false, counting(&reads), -1}, {true, nil, -1}, {true, counting(&reads), 1}} {
			p, stop := watching(t, &onHost{scripted: scripted{kind: source.Scraped, say: temperature}, local: c.local}, c.host)
			if got := cpus(t, p); got != c.want {
				t.Errorf("local %v: %g, want %g", c.local, got, c.want)
			}
			stop()
		}
	})
}

// TestHostThatHangs: one read of the host takes 3.5 s. Readings go on without it, delayed briefly
// and only once, and the host is read again afterwards.
func TestHostThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		host := func() canonical.Host {
			n := reads.Add(1)
			if n == 2 {
				time.Sleep(3500 * time.Millisecond)
			}
			return canonical.Host{CPUs: float64(n)}
		}
		s := &onHost{scripted: scripted{kind: source.Scraped, say: temperature}, local: true}
		p, stop := watching(t, s, host)
		defer stop()
		for i, c := range []struct {
			want  float64
			takes time.Duration
		}{{1, 0}, {-1, 50 * time.Millisecond}, {-1, 0}, {-1, 0}, {-1, 0}, {3, 0}, {4, 0}} {
			begun := time.Now()
			if got := cpus(t, p); got != c.want {
				t.Errorf("reading %d: %g, want %g", i, got, c.want)
			}
			if took := time.Since(begun); took != c.takes {
				t.Errorf("reading %d took %s, want %s", i, took, c.takes)
			}
			time.Sleep(time.Second)
		}
		if got := reads.Load(); got != 4 {
			t.Errorf("the host was read %d times, want 4", got)
		}
	})
}

// TestHostAllocatesNothing looks at a host that is read every time.
func TestHostAllocatesNothing(t *testing.T) {
	life, end := context.WithCancel(context.Background())
	defer end()
	w := hostWatch{read: func() canonical.Host { return canonical.Host{} }}
	var dst canonical.Host
	if n := testing.AllocsPerRun(100, func() {
		w.asked = time.Time{}
		w.look(life, &dst)
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
