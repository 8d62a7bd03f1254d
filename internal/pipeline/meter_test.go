package pipeline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

func TestMeter(t *testing.T) {
	start := time.Unix(1_800_000_000, 123_456_789)
	m := meter{longest: 300 * time.Millisecond}
	for _, step := range []struct {
		at, want time.Duration // at is from start
	}{
		{0, 0}, // the first covers nothing
		{100 * time.Millisecond, 100 * time.Millisecond},
		{100 * time.Millisecond, 0},                                         // the same instant again
		{100*time.Millisecond + 900*time.Nanosecond, 0},                     // less than a microsecond later,
		{100*time.Millisecond + 1800*time.Nanosecond, 1 * time.Microsecond}, // but nothing is lost
		{time.Second, 300 * time.Millisecond},                               // the rest was not observed
		{500 * time.Millisecond, 0},                                         // the clock was set back
		{600 * time.Millisecond, 100 * time.Millisecond},                    // and continues from there
	} {
		if got := m.lap(start.Add(step.at)); got != step.want {
			t.Errorf("lap at %s = %s, want %s", step.at, got, step.want)
		}
	}
}

func TestMeterOfASlowStream(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	m := meter{period: 100 * time.Millisecond}
	at := start
	lap := func(since time.Duration) time.Duration { at = at.Add(since); return m.lap(at) }
	lap(0)
	for i := range 7 { // too few to know
		if got := lap(900 * time.Millisecond); got != 300*time.Millisecond {
			t.Errorf("lap %d is %s, want three periods", i, got)
		}
	}
	for i := range 3 {
		if got := lap(900 * time.Millisecond); got != 900*time.Millisecond {
			t.Errorf("lap %d is %s, want all of it: the stream is just slow", 7+i, got)
		}
	}
	if got := lap(time.Minute); got != 2700*time.Millisecond {
		t.Errorf("a gap counts %s, want three of the periods that it keeps", got)
	}
	if got := lap(100 * time.Millisecond); got != 100*time.Millisecond || m.usual() != 100*time.Millisecond {
		t.Errorf("on time again: %s of %s", got, m.usual())
	}
	if got := lap(time.Minute); got != 300*time.Millisecond {
		t.Errorf("a gap counts %s, want three periods", got)
	}
}

// observed reads p and returns the account of the first device.
func observed(t *testing.T, p *Pipeline) canonical.Account {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	snap, release, err := p.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	return snap.Ledger.Devices[0]
}

// idle returns a body of one idle GPU.
func idle(int) (string, error) {
	const labels = `{gpu="0",UUID="GPU-a"} `
	return "DCGM_FI_PROF_SM_ACTIVE" + labels + "0\nDCGM_FI_PROF_PIPE_TENSOR_ACTIVE" + labels + "0\nDCGM_FI_PROF_DRAM_ACTIVE" + labels + "0\nDCGM_FI_PROF_GR_ENGINE_ACTIVE" + labels + "0\n", nil
}

func TestTwoScrapersCountLikeOne(t *testing.T) {
	for _, c := range []struct {
		name  string
		every []time.Duration // of each scraper
	}{
		{"one scraper", []time.Duration{15 * time.Second}},
		{"two in step", []time.Duration{15 * time.Second, 15 * time.Second}},
		{"two out of step", []time.Duration{15 * time.Second, 7 * time.Second}},
		{"no scraper, only the poll", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, stop := start(t, &scripted{say: idle}, 15*time.Second)
				defer stop()
				synctest.Wait() // the first reading
				for _, every := range c.every {
					go func() {
						for range 10 * time.Minute / every {
							time.Sleep(every)
							ctx, cancel := context.WithTimeout(t.Context(), time.Second)
							if _, release, err := p.Read(ctx); err == nil {
								release()
							}
							cancel()
						}
					}()
				}
				time.Sleep(10*time.Minute + 5*time.Second)
				synctest.Wait()
				got := observed(t, p)
				if want := 10*time.Minute + 5*time.Second; got.Observed != want || got.Classes[canonical.Idle] != want || got.Known != want {
					t.Errorf("observed %s, idle %s, known %s; want %s each", got.Observed, got.Classes[canonical.Idle], got.Known, want)
				}
			})
		})
	}
}

func TestWhatNobodyReadIsNotObserved(t *testing.T) {
	down := errors.New("down")
	for _, c := range []struct {
		name string
		kind source.Kind
		gone time.Duration
		want time.Duration // observed by the first reading after it
	}{
		{"a scraped source, up to 5 min", source.Scraped, 4 * time.Minute, 4 * time.Minute},
		{"a scraped source, beyond", source.Scraped, time.Hour, 5 * time.Minute},
		{"a stream, beyond 3 periods", source.Streamed, time.Hour, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				s := &scripted{kind: c.kind, takes: time.Second, say: func(n int) (string, error) {
					if n > 0 && time.Since(begun) < c.gone {
						return "", down
					}
					return idle(n)
				}}
				p, stop := start(t, s, 0)
				defer stop()
				observe := func() canonical.Account { return observed(t, p) }
				if c.kind == source.Scraped {
					observe()
					time.Sleep(c.gone - time.Since(begun))
				} else {
					time.Sleep(c.gone + 500*time.Millisecond)
				}
				if got := observe(); got.Observed != c.want {
					t.Errorf("observed %s after a gap of %s, want %s", got.Observed, c.gone, c.want)
				}
			})
		})
	}
}

func TestSourceTellsSinceWhenNothingChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const a, b = "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} 40\n", "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\"} 70\n"
		const still = "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\"} 0\nDCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\"} 0\n"
		bodies := []string{a + b, a + b, b + a, a, a, a + "x 1\n", still, still, "x 1\n", a, a}
		const none = -1 // nothing in it changes by itself: an idle vGPU guest, an exporter without GPUs
		want := []time.Duration{0, 10 * time.Second, 20 * time.Second, 0, 10 * time.Second, 0, none, none, none, 0, 10 * time.Second}
		p, stop := start(t, &scripted{say: func(n int) (string, error) { return bodies[n], nil }}, 0)
		defer stop()
		for i, want := range want {
			snap, release, err := p.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := snap.Source.At.Sub(snap.Source.ChangedAt)
			if snap.Source.ChangedAt.IsZero() {
				got = none
			}
			if got != want {
				t.Errorf("reading %d: unchanged for %s, want %s", i, got, want)
			}
			release()
			time.Sleep(10 * time.Second)
		}
	})
}
