package pipeline

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// counted is a source that counts, with others, how many are read at a time.
type counted struct {
	fetching
	name      string
	now, most *atomic.Int32
}

func (s *counted) Name() string { return s.name }

func (s *counted) Fetch(ctx context.Context, b *raw.Batch) error {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	return s.fetching.Fetch(ctx, b)
}

// scrapeAll reads many sources at the same time: the first ones hang and the others take 50 ms
// each. It returns how many were read, when the last was, and the most at a time.
func scrapeAll(t *testing.T, sources, hang int, within time.Duration) (good int, last time.Duration, most int32) {
	t.Helper()
	return scrapeSlow(t, sources, hang, 24*time.Hour, within)
}

// scrapeSlow is scrapeAll with first ones that take the given time.
func scrapeSlow(t *testing.T, sources, hang int, takes, within time.Duration) (good int, last time.Duration, most int32) {
	t.Helper()
	var now, peak, read atomic.Int32
	var latest atomic.Int64
	turns := NewTurns()
	turns.Share(sources, within)
	begun := time.Now()
	var all sync.WaitGroup
	for i := range sources {
		s := &counted{fetching: fetching{scripted: scripted{takes: 50 * time.Millisecond, say: temperature}}, name: fmt.Sprintf("s%d", i), now: &now, most: &peak}
		if i < hang {
			s.takes = takes
		}
		p, stop := startWith(t, Options{Source: s, Turns: turns, Timeout: time.Minute})
		defer stop()
		all.Go(func() {
			if i >= hang {
				time.Sleep(time.Millisecond) // after those that hang
			}
			ctx, cancel := context.WithTimeout(context.Background(), within)
			defer cancel()
			if _, release, err := p.Read(ctx); err == nil {
				release()
				read.Add(1)
				latest.Store(int64(time.Since(begun)))
			}
		})
	}
	all.Wait()
	return int(read.Load()), time.Duration(latest.Load()), peak.Load()
}

// TestReadsAtATime: all of many sources are read, MaxReads at a time.
func TestReadsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, last, most := scrapeAll(t, 200, 0, 9500*time.Millisecond)
		// 14 rounds of 50 ms.
		if good != 200 || most != MaxReads || last > time.Second {
			t.Errorf("%d of 200 were read, the last after %s; %d at a time, want %d", good, last, most, MaxReads)
		}
	})
}

// TestSourcesThatHangStarveNone: even if more sources hang than are read at a time, all others
// are read within one scrape.
func TestSourcesThatHangStarveNone(t *testing.T) {
	for _, c := range []struct{ sources, hang int }{{200, 14}, {200, 40}, {200, 190}, {16, 15}} {
		synctest.Test(t, func(t *testing.T) {
			good, last, most := scrapeAll(t, c.sources, c.hang, 9500*time.Millisecond)
			if good != c.sources-c.hang || most != MaxReads {
				t.Errorf("%d of %d that hang: %d were read, the last after %s; %d at a time", c.hang, c.sources, good, last, most)
			}
		})
	}
}

// TestSlowSourcesAreReadAfterTheOthers: those that had to give way have their turn again.
func TestSlowSourcesAreReadAfterTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if good, last, most := scrapeSlow(t, 200, 15, 3*time.Second, 9500*time.Millisecond); good != 200 || most != MaxReads {
			t.Errorf("%d of 200 were read, the last after %s; %d at a time", good, last, most)
		}
	})
}

// TestWaitingInVainIsNoFaultOfTheSource: a scrape without a turn is told why.
func TestWaitingInVainIsNoFaultOfTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		for range MaxReads {
			end, err := turns.begin(t.Context(), func() {})
			if err != nil {
				t.Fatal(err)
			}
			defer end()
		}
		p, stop := startWith(t, Options{Source: &fetching{scripted: scripted{say: temperature}}, Turns: turns, Timeout: time.Minute})
		defer stop()
		if _, err := read(p, 9*time.Second); err == nil || !strings.Contains(err.Error(), "15 sources are read at a time") {
			t.Errorf("late for the scrape: %v", err)
		}
		if _, err := read(p, 2*time.Minute); err == nil || !strings.Contains(err.Error(), "--source.timeout, which it shared with others: 15 sources are read at a time") {
			t.Errorf("overdue: %v", err)
		}
	})
}

func TestASlowReadKeepsItsTurnWhileNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		turns.Share(200, 9*time.Second)
		p, stop := startWith(t, Options{Source: &fetching{scripted: scripted{takes: 8 * time.Second, say: temperature}}, Turns: turns})
		defer stop()
		if _, err := read(p, 9*time.Second); err != nil {
			t.Error(err)
		}
	})
}

// TestResume: a pipeline of the same devices continues health, accounts and events.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		say := func(n int) (string, error) {
			errors := 1
			if n > 0 {
				errors = 2
			}
			return fmt.Sprintf("DCGM_FI_DEV_PCIE_REPLAY_COUNTER{gpu=\"0\",UUID=\"GPU-a\",modelName=\"H100\"} %d\n", errors), nil
		}
		look := func(p *Pipeline) (canonical.Health, time.Duration) {
			snap, release, err := p.Read(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			return snap.Verdicts[0].Health, snap.Ledger.Devices[0].Observed
		}
		one, stop := start(t, &scripted{say: say}, 0)
		look(one)
		time.Sleep(10 * time.Second)
		look(one)
		stop()
		time.Sleep(30 * time.Second)
		other := &scripted{say: say}
		other.reads.Store(1)
		two, stop := startWith(t, Options{Source: other})
		defer stop()
		two.Resume(one.Leave())
		if health, observed := look(two); health != canonical.HealthWarn || observed != 10*time.Second {
			t.Errorf("health %v, observed %s; want warn, 10s", health, observed)
		}
		time.Sleep(10 * time.Second)
		if _, observed := look(two); observed != 20*time.Second {
			t.Errorf("observed %s, want 20s", observed)
		}
		if n := len(two.Events(nil)); n != 1 {
			t.Errorf("%d events, want 1", n)
		}
		if known, _ := one.Resolve("GPU-a"); known {
			t.Error("the first still answers for the board")
		}
	})
}
