package pipeline

import (
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// keeper observes readings and keeps the first of them.
type keeper struct {
	seen     []float64 // their temperatures
	failures []time.Time
	first    *canonical.Snapshot
	lease    interface{ Release() }
}

func (k *keeper) Observe(s *canonical.Snapshot, lease interface{ Release() }) bool {
	k.seen = append(k.seen, s.Frame.Row(0)[canonical.Temperature])
	if k.first != nil {
		return false
	}
	k.first, k.lease = s, lease
	return true
}

func (k *keeper) Failed(_ string, at time.Time) { k.failures = append(k.failures, at) }

// TestObserverSeesEveryReading: in order, and one that it holds is not written to.
func TestObserverSeesEveryReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observer := &keeper{}
		s := &scripted{say: func(n int) (string, error) {
			if n == 2 {
				return "", errors.New("out of order")
			}
			return temperature(n)
		}}
		p, stop := startWith(t, Options{Source: s, MinInterval: time.Second, Observer: observer})
		defer stop()
		var failed time.Time
		for n := range 6 {
			if n == 2 {
				failed = time.Now()
			}
			if _, err := read(p, time.Second); (err != nil) != (n == 2) {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		synctest.Wait()
		if got := observer.first.Frame.Row(0)[canonical.Temperature]; got != 0 {
			t.Errorf("the kept reading became number %v", got)
		}
		if want := []float64{0, 1, 3, 4, 5}; !slices.Equal(observer.seen, want) {
			t.Errorf("it saw %v, want %v", observer.seen, want)
		}
		if len(observer.failures) != 1 || !observer.failures[0].Equal(failed) {
			t.Errorf("failures at %v, want %v", observer.failures, failed)
		}
		before := len(p.memory.free)
		observer.lease.Release()
		if len(p.memory.free) != before+1 {
			t.Error("the released reading is not reused")
		}
	})
}

// TestObserverIsNotToldThatAStreamFailed: its latest tick is served until it is stale.
func TestObserverIsNotToldThatAStreamFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observer := &keeper{}
		s := &scripted{kind: source.Streamed, takes: time.Second, say: func(n int) (string, error) {
			if n == 1 {
				return "", io.EOF
			}
			return temperature(n)
		}}
		_, stop := startWith(t, Options{Source: s, Observer: observer})
		time.Sleep(10 * time.Second)
		stop()
		if len(observer.seen) != 1 || len(observer.failures) != 0 {
			t.Errorf("it saw %v and %d failures", observer.seen, len(observer.failures))
		}
	})
}

// slow is an observer that takes its time.
type slow struct{ takes time.Duration }

func (s slow) Observe(*canonical.Snapshot, interface{ Release() }) bool {
	time.Sleep(s.takes)
	return false
}

func (slow) Failed(string, time.Time) {}

// TestASlowObserverIsNoFailure: the source is read again once its observer is done.
func TestASlowObserverIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{say: temperature}
		p, stop := startWith(t, Options{Source: s, Poll: time.Second, Observer: slow{25 * time.Second}})
		time.Sleep(73 * time.Second)
		if state, _ := p.Status(); state.Failure != nil || s.reads.Load() != 3 {
			t.Errorf("after %d reads, want 3: %v", s.reads.Load(), state.Failure)
		}
		stop()
	})
}

// TestReadingGoesAtThePaceOfItsObserver: a reading is served while it is observed, but before the
// observer returns the source is not read again, and stop does not return.
func TestReadingGoesAtThePaceOfItsObserver(t *testing.T) {
	for _, test := range []struct {
		kind source.Kind
		asks []time.Duration // when it is read from the pipeline,
		gets []int           // which reading that gives,
		at   []time.Duration // and when
	}{
		{source.Scraped, []time.Duration{0, time.Second}, []int{0, 1}, []time.Duration{time.Second, 5 * time.Second}},
		{source.Streamed, []time.Duration{0, 4500 * time.Millisecond, 5 * time.Second}, []int{0, 0, 1}, []time.Duration{time.Second, 4500 * time.Millisecond, 5 * time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			s := &scripted{kind: test.kind, takes: time.Second, say: temperature}
			p, stop := startWith(t, Options{Source: s, Observer: slow{3 * time.Second}})
			for i, ask := range test.asks {
				time.Sleep(time.Until(begun.Add(ask)))
				synctest.Wait()
				if got, err := read(p, 10*time.Second); got != test.gets[i] || err != nil || time.Since(begun) != test.at[i] {
					t.Errorf("%v: asked at %s, got reading %d at %s (%v); want %d at %s", test.kind, ask, got, time.Since(begun), err, test.gets[i], test.at[i])
				}
			}
			stop()
			if took := time.Since(begun); took != 8*time.Second || s.reads.Load() != 2 {
				t.Errorf("%v: ended after %s and %d reads, want 8s and 2", test.kind, took, s.reads.Load())
			}
		})
	}
}
