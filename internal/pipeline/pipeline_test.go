package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// scripted is a source whose reads each take a while and then return what say does.
type scripted struct {
	kind  source.Kind
	takes time.Duration
	deaf  bool // does not notice that ctx ends
	hangs int  // how many reads, from the first on, get no answer
	// say returns the n-th body, counting from 0.
	say     func(n int) (string, error)
	backend string // "" means test
	reads   atomic.Int32
	closed  atomic.Bool
	scanner raw.Scanner
	dict    *raw.Dict
}

func (s *scripted) Name() string { return "scripted" }
func (s *scripted) Close() error { s.closed.Store(true); return nil }

func (s *scripted) Caps() source.Caps {
	return source.Caps{Backend: cmp.Or(s.backend, "test"), Kind: s.kind, Aggregation: source.Window, Period: time.Second}
}

func (s *scripted) Read(ctx context.Context, b *raw.Batch) error {
	n := int(s.reads.Add(1)) - 1
	if s.dict == nil {
		s.dict = raw.NewDict()
	}
	b.Reset()
	b.Dict = s.dict
	b.At = time.Now()
	if s.deaf {
		ctx = context.Background()
	}
	takes := s.takes
	if n < s.hangs {
		takes = 24 * time.Hour
	}
	if takes > 0 { // a timer allocates
		select {
		case <-ctx.Done():
		case <-time.After(takes):
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	body, err := s.say(n)
	if err != nil {
		return err
	}
	b.Body = append(b.Body, body...)
	s.scanner.Scan(b)
	b.Took = time.Since(b.At)
	return nil
}

// temperature is a body of one GPU whose temperature is the number of the reading.
func temperature(n int) (string, error) {
	return fmt.Sprintf("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} %d\n", n), nil
}

func start(t *testing.T, s source.Source, poll time.Duration) (*Pipeline, func()) {
	t.Helper()
	return startWith(t, Options{Source: s, MinInterval: time.Second, Poll: poll})
}

// startWith runs a pipeline, with the usual options filled in.
func startWith(t *testing.T, opts Options) (*Pipeline, func()) {
	t.Helper()
	translator, err := translate.New(translate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	judge, err := compute.New(compute.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	opts.Translator, opts.Judge = translator, judge
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	opts.Timeout = cmp.Or(opts.Timeout, 10*time.Second)
	p := New(opts)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	return p, func() { cancel(); <-done }
}

// read returns which reading a scrape got, by its temperature.
func read(p *Pipeline, timeout time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	snap, release, err := p.Read(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	return int(snap.Frame.Row(0)[canonical.Temperature]), nil
}

func failure(t *testing.T, err error) *canonical.Failure {
	t.Helper()
	f, ok := errors.AsType[*canonical.Failure](err)
	if !ok {
		t.Fatalf("got %v, want a failure", err)
	}
	return f
}

func TestYoungReadingIsReusedAndOldOneIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{say: temperature}
		p, stop := start(t, s, 0)
		defer stop()
		for _, step := range []struct {
			wait time.Duration
			want int
		}{{0, 0}, {999 * time.Millisecond, 0}, {time.Millisecond, 1}, {time.Minute, 2}} {
			time.Sleep(step.wait)
			if n, err := read(p, time.Second); err != nil || n != step.want {
				t.Errorf("after %s: reading %d (%v), want %d", step.wait, n, err, step.want)
			}
		}
	})
}

// TestNobodyJoinsAReadThatIsOver: a source may take a while to notice that its time is up, and
// a scrape that comes meanwhile must not get that failure.
func TestNobodyJoinsAReadThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{takes: 3 * time.Second, deaf: true, say: temperature}
		p, stop := start(t, s, 0)
		defer stop()
		if _, err := read(p, time.Second); err == nil {
			t.Error("a read of 3s within 1s")
		}
		time.Sleep(time.Millisecond)
		begun := time.Now()
		n, err := read(p, 10*time.Second) // 2s until the first read ends, 3s for its own
		if err != nil || n != 1 || time.Since(begun).Round(time.Second) != 5*time.Second {
			t.Errorf("reading %d (%v) after %s, want 1 after 5s", n, err, time.Since(begun))
		}
	})
}

func TestSourceErrorsReachTheScraperAndAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{say: func(n int) (string, error) {
			if n == 0 {
				return "", &source.Error{Failure: source.BadStatus, Cause: "HTTP 500", Remedy: "look there"}
			}
			return temperature(n)
		}}
		p, stop := start(t, s, 0)
		defer stop()
		_, err := read(p, time.Second)
		if f := failure(t, err); f.Kind != "bad_status" || f.Timeout || f.Error() != "HTTP 500; look there" {
			t.Errorf("got %+v", f)
		}
		if state, ready := p.Status(); ready == nil || state.Failure == nil {
			t.Errorf("ready %v, failure %v; want not ready", ready, state.Failure)
		}
		if n, err := read(p, time.Second); err != nil || n != 1 {
			t.Errorf("reading %d (%v), want 1 at once", n, err)
		}
		if state, ready := p.Status(); ready != nil || state.Failure != nil {
			t.Errorf("ready %v, failure %v; want ready", ready, state.Failure)
		}
	})
}

func TestNothingOldIsServedAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := false
		s := &scripted{say: func(n int) (string, error) {
			if broken {
				return "", errors.New("gone")
			}
			return temperature(n)
		}}
		p, stop := start(t, s, 0)
		defer stop()
		if _, err := read(p, time.Second); err != nil {
			t.Fatal(err)
		}
		broken = true
		time.Sleep(2 * time.Second)
		for range 2 {
			if n, err := read(p, time.Second); err == nil {
				t.Errorf("served reading %d of a source that is gone", n)
			}
		}
	})
}

func TestPollReadsWhenNobodyElseDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		begun := time.Now()
		s := &scripted{say: func(n int) (string, error) {
			at = append(at, time.Since(begun))
			return temperature(n)
		}}
		p, stop := start(t, s, 15*time.Second)
		time.Sleep(20 * time.Second)
		if _, err := read(p, time.Second); err != nil {
			t.Error(err)
		}
		time.Sleep(16 * time.Second)
		stop()
		want := []time.Duration{0, 15 * time.Second, 20 * time.Second, 35 * time.Second}
		if fmt.Sprint(at) != fmt.Sprint(want) {
			t.Errorf("read at %v, want %v", at, want)
		}
		if !s.closed.Load() {
			t.Error("the source was not closed")
		}
	})
}

func TestPollTriesEverySecondUntilTheFirstGoodReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		begun := time.Now()
		s := &scripted{say: func(n int) (string, error) {
			at = append(at, time.Since(begun))
			if n == 2 || n > 3 {
				return temperature(n)
			}
			return "", errors.New("not yet, or not any more")
		}}
		_, stop := start(t, s, 15*time.Second)
		time.Sleep(40 * time.Second)
		stop()
		want := []time.Duration{0, time.Second, 2 * time.Second, 17 * time.Second, 32 * time.Second}
		if fmt.Sprint(at) != fmt.Sprint(want) {
			t.Errorf("read at %v, want %v", at, want)
		}
	})
}

// TestPollBelowTheMinimumIntervalDoesNotSpin: a young reading is reused, so that
// no read begins and the source stays due.
func TestPollBelowTheMinimumIntervalDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{say: temperature}
		_, stop := start(t, s, 100*time.Millisecond) // the minimum interval is 1 s
		time.Sleep(10*time.Second + time.Millisecond)
		stop()
		if got := s.reads.Load(); got < 9 || got > 11 {
			t.Errorf("%d reads in 10 s, want one a second", got)
		}
	})
}

func TestScrapedSourceIsReadyForFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := start(t, &scripted{say: temperature}, 0)
		defer stop()
		if _, ready := p.Status(); ready == nil {
			t.Error("ready before the first reading")
		}
		if _, err := read(p, time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if _, ready := p.Status(); ready != nil {
			t.Errorf("after 5m: %v, want ready", ready)
		}
		time.Sleep(time.Second)
		_, ready := p.Status()
		if f := failure(t, ready); f.Kind != "stale" || !strings.Contains(f.Cause, "5m1s") || !strings.Contains(f.Remedy, "scrape") {
			t.Errorf("after 5m1s: %+v, want that nobody has scraped", f)
		}
	})
}

func TestStreamServesItsLatestTickUntilItIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{kind: source.Streamed, takes: time.Second, say: func(n int) (string, error) {
			if n == 3 {
				return "", io.EOF
			}
			return temperature(n)
		}}
		p, stop := start(t, s, 0)
		defer stop()
		if n, err := read(p, 2*time.Second); err != nil || n != 0 {
			t.Errorf("reading %d (%v), want to wait for tick 0", n, err)
		}
		time.Sleep(2500 * time.Millisecond)
		if n, err := read(p, time.Second); err != nil || n != 2 {
			t.Errorf("reading %d (%v), want tick 2", n, err)
		}
		time.Sleep(10 * time.Second) // ten periods
		_, err := read(p, time.Second)
		if f := failure(t, err); f.Kind != "ended" {
			t.Errorf("got %+v, want that the stream has ended", f)
		}
	})
}

func TestHeldSnapshotIsNotOverwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{say: temperature}
		p, stop := start(t, s, 0)
		defer stop()
		snap, release, err := p.Read(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		body := string(snap.Body)
		for range 20 {
			time.Sleep(2 * time.Second)
			if _, err := read(p, time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if string(snap.Body) != body || snap.Frame.Row(0)[canonical.Temperature] != 0 {
			t.Errorf("a snapshot in use changed to %q", snap.Body)
		}
		release()
		if n := len(p.memory.free); n != 1 {
			t.Errorf("%d readings are free, want only the one that was released", n)
		}
	})
}

func TestTotalsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{say: func(int) (string, error) {
			return "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} 40\n" +
				"garbage\nDCGM_FI_DEV_SM_CLOCK{gpu=\"0\",UUID=\"GPU-a\"} 9223372036854775794\n" +
				"kpulse_x 1\nDCGM_FI_DEV_NEW{gpu=\"0\",UUID=\"GPU-a\"} 1", nil
		}}
		p, stop := start(t, s, 0)
		defer stop()
		for range 2 {
			if _, err := read(p, time.Second); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		snap, release, err := p.Read(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		got := snap.Source
		if got.SkippedLines != 3 || got.DroppedFamilies != 3 || got.DroppedValues[canonical.DropBlank] != 3 {
			t.Errorf("totals after three readings: %+v", got)
		}
		if got.Drops != (canonical.Births{Born: 1 << canonical.DropBlank, Young: 1 << canonical.DropBlank}) {
			t.Errorf("births of the reasons: %+v", got.Drops)
		}
		time.Sleep(time.Minute)
		later, releaseLater, err := p.Read(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer releaseLater()
		if later.Source.Drops.Young != 0 {
			t.Errorf("births of the reasons after a minute: %+v", later.Source.Drops)
		}
		if fmt.Sprint(got.UnknownFamilies) != "[DCGM_FI_DEV_NEW]" {
			t.Errorf("unknown families: %v", got.UnknownFamilies)
		}
		want := "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} 40\n" +
			"|DCGM_FI_DEV_SM_CLOCK{gpu=\"0\",UUID=\"GPU-a\"} 9223372036854775794\n" +
			"|DCGM_FI_DEV_NEW{gpu=\"0\",UUID=\"GPU-a\"} 1"
		var parts []string
		for _, v := range snap.Valid {
			parts = append(parts, string(v))
		}
		if got := strings.Join(parts, "|"); got != want {
			t.Errorf("valid parts:\n%s\nwant\n%s", got, want)
		}
	})
}

func TestSteadyReadingAllocatesNothing(t *testing.T) {
	body := string(rawtest.Body(112, 60, 1))
	s := &scripted{say: func(int) (string, error) { return body, nil }}
	p, stop := start(t, s, 0)
	defer stop()
	again := func() {
		r, err := p.read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
	}
	again()
	if n := testing.AllocsPerRun(20, again); n != 0 {
		t.Errorf("%v allocations per reading, want 0", n)
	}
}

func TestHugeReadingIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		huge := strings.Repeat("a 1\n", 1<<20)
		s := &scripted{say: func(n int) (string, error) {
			if n == 0 {
				return huge, nil
			}
			return temperature(n)
		}}
		p, stop := start(t, s, 0)
		defer stop()
		for range 3 {
			if _, release, err := p.Read(context.Background()); err != nil {
				t.Fatal(err)
			} else {
				release()
			}
			time.Sleep(2 * time.Second)
		}
		for _, r := range append(p.memory.free, p.memory.latest) {
			if n := cap(r.batch.Samples); n > 1<<16 {
				t.Errorf("memory for %d samples is kept for readings of one", n)
			}
		}
	})
}

// TestEverythingAtOnce is for the race detector: scrapes, status, events and resolving while
// readings come and go.
func TestEverythingAtOnce(t *testing.T) {
	s := &scripted{takes: time.Millisecond, say: temperature}
	p, stop := startWith(t, Options{Source: s, MinInterval: time.Second, Timeout: time.Minute})
	defer stop()
	p.opts.MinInterval = 0 // nothing reads before the first scrape
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if _, err := read(p, time.Minute); err != nil {
					t.Error(err)
				}
				if _, err := read(p, time.Microsecond); err != nil {
					failure(t, err)
				}
			}
		})
		wg.Go(func() {
			for range 200 {
				if state, _ := p.Status(); state.Name != p.Name() {
					t.Errorf("state of %q", state.Name)
				}
				p.Resolve("GPU-a")
				p.Events(nil)
				time.Sleep(100 * time.Microsecond)
			}
		})
	}
	wg.Wait()
}
