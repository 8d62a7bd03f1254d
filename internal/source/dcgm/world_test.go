//go:build linux

package dcgm

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(proxyEnv); path != "" {
		beProxy(path)
	}
	slow.Parallel()
	goleak.VerifyTestMain(m)
}

// world is a fake dcgmi and a source that drives it.
type world struct {
	*Source
	t        *testing.T
	scenario dcgmtest.Scenario
	exe      string
	log      *logged
	last     raw.Batch
}

// logged collects log lines.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// count returns the number of log lines that contain all words.
func (l *logged) count(words ...string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for line := range strings.Lines(l.text.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			n++
		}
	}
	return n
}

// unprobed completes options so that dcgmi is found, but no nvidia-smi and no exporter.
func unprobed(o Options) Options {
	o.exporter = func() bool { return false }
	o.lookPath = func(name string) (string, error) {
		if name == "nvidia-smi" {
			return "", exec.ErrNotFound
		}
		return exec.LookPath(name)
	}
	return o
}

// newWorld returns a world with two GPUs, unless s has others, and a period of
// 10 ms. A child that ends is restarted after a millisecond.
func newWorld(t *testing.T, s dcgmtest.Scenario, adapt ...func(o *Options)) *world {
	t.Helper()
	if s.GPUs == nil {
		s.GPUs = dcgmtest.Boards(2)
	}
	if s.Seed == 0 {
		s.Seed = 7
	}
	s.StartLog = filepath.Join(t.TempDir(), "starts")
	w := &world{t: t, scenario: s, log: &logged{}, exe: dcgmtest.Install(t, s)}
	opts := unprobed(Options{Path: w.exe, Period: 10 * time.Millisecond, Logger: w.log.logger()})
	for _, f := range adapt {
		f(&opts)
	}
	w.Source = New(opts)
	w.backoff = func(int) time.Duration { return time.Millisecond }
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(w.log.text.String())
		}
	})
	return w
}

// set changes the scenario, also of running children.
func (w *world) set(failures ...dcgmtest.Failure) {
	w.t.Helper()
	w.scenario.Failures = failures
	w.scenario.Write(w.t, dcgmtest.Beside(w.exe))
}

// renew makes all streams start again, after a survey.
func (w *world) renew() {
	w.stale.Store(true)
	if old := w.view.Load(); old != nil {
		v := *old
		v.epoch++
		v.life, v.end = context.WithCancel(w.life)
		w.view.Store(&v)
		old.end()
	}
}

// starts lists the streams that were started with word in their arguments.
func (w *world) starts(word string) []dcgmtest.Start {
	return slices.DeleteFunc(w.ran("dmon", word), func(s dcgmtest.Start) bool { return !isStream(s) })
}

// isStream reports whether s is a dmon of more than a single sample, which -c 1 takes.
func isStream(s dcgmtest.Start) bool { return s.Args[0] == "dmon" && !slices.Contains(s.Args, "1") }

// ran lists the starts of a subsystem with word in its arguments.
func (w *world) ran(subsystem, word string) []dcgmtest.Start {
	return slices.DeleteFunc(dcgmtest.Starts(w.t, w.scenario.StartLog), func(s dcgmtest.Start) bool {
		return s.Args[0] != subsystem || !strings.Contains(strings.Join(s.Args, " "), word)
	})
}

// discoveries lists the starts of discovery with word in its arguments, before the first stream:
// how many follow depends on when the rows of the streams arrive .
func (w *world) discoveries(word string) []dcgmtest.Start {
	list := slices.DeleteFunc(dcgmtest.Starts(w.t, w.scenario.StartLog), func(s dcgmtest.Start) bool {
		return !isStream(s) && (s.Args[0] != "discovery" || !strings.Contains(strings.Join(s.Args, " "), word))
	})
	if i := slices.IndexFunc(list, isStream); i >= 0 {
		list = list[:i]
	}
	return list
}

// until reads until a reading or an error satisfies is. It fails the test after a
// minute.
func (w *world) until(what string, is func(b *raw.Batch, err error) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	for {
		err := w.Read(ctx, &w.last)
		if is(&w.last, err) {
			return
		}
		if ctx.Err() != nil {
			w.t.Fatalf("timed out waiting for %s; streams %+v", what, w.Streams(nil))
		}
	}
}

// has reports whether a reading has the family of a dmon column.
func has(b *raw.Batch, column string) bool {
	return slices.ContainsFunc(b.Samples, func(s raw.Sample) bool { return columnOf(b, s) == column })
}

// columnOf returns the dmon column of a sample.
func columnOf(b *raw.Batch, s raw.Sample) string {
	i := slices.IndexFunc(Fields[:], func(f Field) bool { return f.Family == b.Dict.Family(s.Family).Name })
	return Fields[i].Column
}

// label returns a label of a sample, "" for none.
func label(b *raw.Batch, s raw.Sample, name string) string {
	for _, l := range b.Dict.Labels(s.Labels, nil) {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// devices lists the devices with a value of a column, as `gpu` or `gpu/instance`
// and, with uuids, the UUID after it.
func devices(b *raw.Batch, column string, uuids bool) string {
	var list []string
	for _, s := range b.Samples {
		if columnOf(b, s) != column {
			continue
		}
		name := label(b, s, "gpu")
		if cut := label(b, s, "GPU_I_ID"); cut != "" {
			name += "/" + cut
		}
		if uuids {
			name += "=" + label(b, s, "UUID")
		}
		list = append(list, name)
	}
	return strings.Join(list, " ")
}

func (w *world) untilWhole() {
	w.t.Helper()
	w.until("a whole reading", func(b *raw.Batch, _ error) bool { return has(b, "POWER") && has(b, "SMACT") })
}

// untilFailure reads until Read fails with a *source.Error, which it returns.
func (w *world) untilFailure() (e *source.Error) {
	w.t.Helper()
	w.until("a failure", func(_ *raw.Batch, err error) (ok bool) {
		e, ok = errors.AsType[*source.Error](err)
		return ok
	})
	return e
}

// stream returns the totals of one stream.
func (w *world) stream(index int) source.StreamTotals { return w.Streams(nil)[index] }

// eventually waits until is reports true, for what another process or goroutine does.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// runs reports whether a process exists and is not a zombie.
func runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest != "" && rest[0] != 'Z' && rest[0] != 'X'
}

// exists reports whether a process exists, even as a zombie.
func exists(pid int) bool { return syscall.Kill(pid, 0) == nil }
