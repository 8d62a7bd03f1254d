package pipeline

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// streaming is a source with two streams.
type streaming struct {
	scripted
	ticks atomic.Uint64 // Streams is called from other goroutines too
}

func (f *streaming) Streams(dst []source.StreamTotals) []source.StreamTotals {
	return append(dst,
		source.StreamTotals{Stream: "device", Ticks: f.ticks.Load(), Evicted: 2, Restarts: 1},
		source.StreamTotals{Stream: "profiling", Failure: &source.Error{Failure: source.Broken, Cause: "lock held", Remedy: "resume"}})
}

func TestStreamTotalsReachTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &streaming{scripted: scripted{kind: source.Streamed, takes: time.Second}}
		f.say = func(n int) (string, error) {
			f.ticks.Store(uint64(10 * (n + 1)))
			if n == 1 {
				return "", &source.Error{Failure: source.Broken, Cause: "gone"}
			}
			return temperature(n)
		}
		p, stop := start(t, f, 0)
		defer stop()
		for _, want := range []uint64{10, 20} { // of a good reading, and of a failed one
			time.Sleep(1100 * time.Millisecond)
			state, _ := p.Status()
			device, profiling := state.Streams[0], state.Streams[1]
			if (device != canonical.Stream{Name: "device", Ticks: want, Evicted: 2, Restarts: 1}) {
				t.Errorf("device stream %+v, want %d ticks", device, want)
			}
			if profiling.Name != "profiling" || profiling.Failure == nil || profiling.Failure.Cause != "lock held" || profiling.Failure.Remedy != "resume" {
				t.Errorf("profiling stream %+v", profiling)
			}
		}
	})
}

// TestSilenceIsLoggedOnce: each time that scrapes find a stream silent without a failure, the log says so once, and as gravely that it
// returned; nothing of a capture, which pauses when its recording did.
func TestSilenceIsLoggedOnce(t *testing.T) {
	down := `"source cannot be read" reads=scripted cause="scripted has been silent for 11s" remedy="see the log and the landing page for the errors of its streams"`
	again := `"source can be read again" reads=scripted`
	t.Run("stream", func(t *testing.T) { silenceIsLogged(t, "test", down, again, down, again) })
	t.Run("capture", func(t *testing.T) { silenceIsLogged(t, "replay") })
}

func silenceIsLogged(t *testing.T, backend string, want ...string) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := &scripted{kind: source.Streamed, takes: time.Second, backend: backend, say: func(n int) (string, error) {
			if n == 2 || n == 4 {
				time.Sleep(20 * time.Second)
			}
			return temperature(n)
		}}
		p, stop := startWith(t, Options{Source: s, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		refused := 0
		for range 100 {
			if _, err := read(p, 2*time.Second); err != nil {
				refused++
			}
			time.Sleep(500 * time.Millisecond)
		}
		stop()
		var lines []string
		for line := range strings.Lines(log.String()) {
			_, line, _ = strings.Cut(strings.TrimSpace(line), "msg=")
			lines = append(lines, line)
		}
		if !slices.Equal(lines, want) || refused < 30 {
			t.Errorf("%d scrapes were refused, and logged was\n%s", refused, strings.Join(lines, "\n"))
		}
	})
}
