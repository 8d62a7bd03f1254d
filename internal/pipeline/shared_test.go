package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// fetching is a scripted source that can be asked while a request hangs.
type fetching struct {
	scripted
	scanning sync.Mutex
}

func (s *fetching) Fetch(ctx context.Context, b *raw.Batch) error {
	n := int(s.reads.Add(1)) - 1
	takes := s.takes
	if n < s.hangs {
		takes = 24 * time.Hour
	}
	b.Reset()
	b.At = time.Now()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(takes):
	}
	body, err := s.say(n)
	b.Body = append(b.Body, body...)
	return err
}

func (s *fetching) Scan(b *raw.Batch) error {
	if !s.scanning.TryLock() {
		return errors.New("scanned by two at a time")
	}
	defer s.scanning.Unlock()
	if s.dict == nil {
		s.dict = raw.NewDict()
	}
	b.Dict = s.dict
	s.scanner.Scan(b)
	return nil
}

// underWay returns how many reads are under way.
func underWay(p *Pipeline) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.reads)
}

// scrape is one client: when it comes, how long it waits, what it gets and when.
type scrape struct {
	comes, waits time.Duration
	// gets is the number of the reading, -1 for a timeout.
	gets int
	at   time.Duration
}

// meet lets clients scrape, and compares what they get.
func meet(t *testing.T, p *Pipeline, want []scrape) {
	t.Helper()
	begun := time.Now()
	got := make([]scrape, len(want))
	var all sync.WaitGroup
	for i, s := range want {
		all.Go(func() {
			time.Sleep(s.comes)
			n, err := read(p, s.waits)
			if err != nil {
				n = -1
				if f := failure(t, err); !f.Timeout {
					t.Errorf("scrape %d: %v", i, f)
				}
			}
			got[i] = scrape{s.comes, s.waits, n, time.Since(begun)}
		})
	}
	all.Wait()
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("scrape %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

// TestSharedReads: the read of a client delays only clients that joined while it was younger than
// they could wait, and no client can postpone its end.
func TestSharedReads(t *testing.T) {
	const second = time.Second
	for _, test := range []struct {
		name    string
		bound   time.Duration // --source.timeout
		takes   time.Duration
		hangs   int // requests, from the first on
		scrapes []scrape
		reads   int32
	}{
		{"overlapping scrapes share one read", 20 * second, second, 0, []scrape{
			{0, 5 * second, 0, second}, {second / 5, 5 * second, 0, second}, {second / 2, 5 * second, 0, second},
		}, 1},
		{"each keeps its own deadline", 20 * second, 2 * second, 0, []scrape{
			{0, second, -1, second}, {second * 9 / 10, second * 3 / 2, 0, 2 * second},
		}, 1},
		{"the last to leave ends it", 20 * second, 0, 1, []scrape{
			{0, second / 2, -1, second / 2}, {second, 10 * second, 1, second},
		}, 2},
		{"nobody waits for longer than a read may take", 5 * second, 0, 1, []scrape{
			{0, time.Hour, -1, 5 * second}, {6 * second, second, 1, 6 * second},
		}, 2},
		{"a later client asks again when it ends", 5 * second, 0, 1, []scrape{
			{0, time.Hour, -1, 5 * second}, {3 * second, 10 * second, 1, 5 * second},
		}, 2},
		{"older than the other client can wait: its own read answers both", 20 * second, 0, 1, []scrape{
			{0, time.Hour, 1, 10 * second}, {10 * second, 9 * second, 1, 10 * second},
		}, 2},
		{"then nobody joins the old one", 20 * second, second, 1, []scrape{
			{0, time.Hour, 1, 11 * second}, {10 * second, 9 * second, 1, 11 * second},
			{10*second + second/2, 9 * second, 1, 11 * second},
		}, 2},
		{"no more than four at a time: the fifth client joins the fourth read", 20 * second, 0, 5, []scrape{
			{0, time.Hour, -1, 20 * second}, {8 * second, 7 * second, -1, 15 * second},
			{11 * second, second * 5 / 2, -1, second * 27 / 2}, {second * 25 / 2, second, -1, second * 27 / 2},
			{second * 53 / 4, second / 4, -1, second * 27 / 2},
		}, 4},
		{"impatient clients do not harm patient ones", 20 * second, 6 * second, 0, []scrape{
			{0, 10 * second, 0, 6 * second}, {3 * second, second, -1, 4 * second},
			{5 * second, second / 2, -1, 5*second + second/2},
		}, 3},
		{"a late answer also serves those who asked again", 20 * second, 6 * second, 0, []scrape{
			{0, 10 * second, 0, 6 * second}, {4 * second, 3 * second, 0, 6 * second},
		}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fetching{scripted: scripted{takes: test.takes, hangs: test.hangs, say: temperature}}
				p, stop := startWith(t, Options{Source: s, MinInterval: time.Second, Timeout: test.bound})
				defer stop()
				meet(t, p, test.scrapes)
				synctest.Wait()
				if got := s.reads.Load(); got != test.reads || underWay(p) != 0 {
					t.Errorf("%d reads, %d of them under way; want %d and none", got, underWay(p), test.reads)
				}
			})
		})
	}
}

// TestSourceThatCannotBeAskedTwice: its reads are sequential, and the next one starts as soon as
// no client waits for one that hangs.
func TestSourceThatCannotBeAskedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{hangs: 1, say: temperature}
		p, stop := startWith(t, Options{Source: s, MinInterval: time.Second, Timeout: 8 * time.Second})
		defer stop()
		meet(t, p, []scrape{{0, time.Hour, -1, 8 * time.Second}, {6 * time.Second, 5 * time.Second, 1, 8 * time.Second}})
	})
}

// TestClientThatLeavesIsNoFailure: the source is not slow, and a read that a leaving client ended
// does not stop the polling.
func TestClientThatLeavesIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &fetching{scripted: scripted{takes: time.Second, say: temperature}}
		p, stop := startWith(t, Options{Source: s, MinInterval: time.Second, Poll: 15 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		defer stop()
		time.Sleep(2 * time.Second) // the first poll is done
		for range 20 {
			time.Sleep(time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second/2, cancel)
			if _, _, err := p.Read(ctx); err == nil && s.reads.Load() < 10 {
				t.Error("a reading within half a second")
			}
		}
		synctest.Wait()
		state, ready := p.Status()
		if state.Failure != nil || state.Late != nil || ready != nil || log.Len() > 0 {
			t.Errorf("failure %v, late %v, ready %v\n%s", state.Failure, state.Late, ready, &log)
		}
		if age := time.Since(state.At); age > 17*time.Second {
			t.Errorf("the last reading is %s old: clients that leave keep us from polling", age)
		}
	})
}

// TestWaitersTimeoutsShow: timeouts show while others still wait for the read, and until a
// reading that no client missed; they are logged once.
func TestWaitersTimeoutsShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &fetching{scripted: scripted{takes: 3 * time.Second, say: temperature}}
		p, stop := startWith(t, Options{Source: s, Timeout: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		defer stop()
		for range 3 {
			patient := make(chan error, 1)
			go func() { _, err := read(p, 10*time.Second); patient <- err }()
			synctest.Wait()
			if _, err := read(p, 2*time.Second); failure(t, err).Kind != "timeout" {
				t.Error(err)
			}
			state, _ := p.Status()
			if underWay(p) != 1 || state.Late == nil || state.Failure != nil || !strings.Contains(state.Late.Error(), "did not answer within 2s; raise scrape_timeout") {
				t.Errorf("%d reads under way; late %v, failure %v", underWay(p), state.Late, state.Failure)
			}
			if err := <-patient; err != nil {
				t.Error(err)
			}
			if state, _ := p.Status(); state.Late == nil {
				t.Error("forgotten after a reading that one client missed")
			}
			time.Sleep(time.Second)
		}
		if _, err := read(p, 10*time.Second); err != nil {
			t.Error(err)
		}
		if state, _ := p.Status(); state.Late != nil {
			t.Errorf("still late: %v", state.Late)
		}
		synctest.Wait()
		if n, m := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(), "answered in time again"); n != 1 || m != 1 {
			t.Errorf("%d warnings, %d ends\n%s", n, m, &log)
		}
	})
}

// TestTimeoutNamesTheTimeThatWasGiven: not what was left of it once we got to read, nor how
// long it took to notice that it was over.
func TestTimeoutNamesTheTimeThatWasGiven(t *testing.T) {
	for _, kind := range []source.Kind{source.Scraped, source.Streamed} {
		synctest.Test(t, func(t *testing.T) {
			p, stop := startWith(t, Options{Source: &scripted{kind: kind, hangs: 9}})
			defer stop()
			const given = 750 * time.Millisecond
			ctx, cancel := context.WithTimeoutCause(t.Context(), given, canonical.TimedOut(given))
			defer cancel()
			time.Sleep(40 * time.Millisecond)
			_, _, err := p.Read(ctx)
			if f := failure(t, err); !f.Timeout || !strings.Contains(f.Cause, "did not answer within 750ms") {
				t.Errorf("%v: %v", kind, f)
			}
		})
	}
}

// TestNotReadyOfTimeouts: if no reading ever came, the timeout is the reason.
func TestNotReadyOfTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := startWith(t, Options{Source: &fetching{scripted: scripted{hangs: 9}}})
		defer stop()
		if _, err := read(p, 2*time.Second); err == nil {
			t.Error("an answer")
		}
		if _, ready := p.Status(); ready == nil || !strings.Contains(ready.Error(), "within 2s") {
			t.Errorf("not ready for: %v", ready)
		}
	})
}

// TestOverdueReadSaysWhichFlag: a read that --source.timeout ends names that flag, not the
// scraper's timeout.
func TestOverdueReadSaysWhichFlag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := startWith(t, Options{Source: &fetching{scripted: scripted{hangs: 9}}})
		defer stop()
		_, err := read(p, time.Hour)
		if f := failure(t, err); !f.Timeout || !strings.Contains(f.Cause, "within 10s") || !strings.Contains(f.Remedy, "--source.timeout") {
			t.Errorf("got %+v", f)
		}
		if state, _ := p.Status(); state.Failure == nil {
			t.Error("the state does not say so")
		}
	})
}

// TestErrorIsForItsOwnWaiters: the waiters of another read get that one's answer.
func TestErrorIsForItsOwnWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fetching{scripted: scripted{takes: 4 * time.Second, say: func(n int) (string, error) {
			if n == 0 {
				return "", errors.New("broken")
			}
			return temperature(n)
		}}}
		p, stop := startWith(t, Options{Source: s})
		defer stop()
		second := make(chan string, 1)
		go func() {
			time.Sleep(3 * time.Second)
			n, err := read(p, 2500*time.Millisecond) // does not join a read of 3 s
			second <- fmt.Sprint(n, err)
		}()
		if _, err := read(p, 8*time.Second); failure(t, err).Cause != "broken" {
			t.Error(err)
		}
		if got := <-second; !strings.Contains(got, "within 2.5s") {
			t.Errorf("the other got %s", got)
		}
	})
}

// TestReadingOfTheFutureIsNotFresh: a time without a monotonic clock may seem to be in the future
// after the clock is set back.
func TestReadingOfTheFutureIsNotFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fetching{scripted: scripted{say: temperature}}
		p, stop := startWith(t, Options{Source: s, MinInterval: time.Second})
		defer stop()
		if _, err := read(p, time.Second); err != nil {
			t.Fatal(err)
		}
		p.status.good = time.Now().Add(time.Hour)
		if _, ready := p.Status(); ready == nil {
			t.Error("ready with a reading of the future")
		}
		if n, err := read(p, time.Second); n != 1 || err != nil {
			t.Errorf("served reading %d (%v)", n, err)
		}
	})
}
