package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
)

// heard is one answer of a recorded source.
type heard struct {
	after time.Duration // since the previous answer
	body  string
	err   error
}

// answering is a source with a script.
type answering struct {
	caps    source.Caps
	answers []heard
	at      time.Time
}

func (s *answering) Name() string      { return "answering" }
func (s *answering) Caps() source.Caps { return s.caps }
func (s *answering) Close() error      { return nil }

func (s *answering) Read(_ context.Context, b *raw.Batch) error {
	b.Reset()
	a := s.answers[0]
	s.answers, s.at = s.answers[1:], s.at.Add(a.after)
	b.At, b.Took, b.Body = s.at, 30*time.Millisecond, append(b.Body, a.body...)
	return a.err
}

// recorded records n readings of src and returns the path of the file. Each
// reading is on disk before the next.
func recorded(t testing.TB, src source.Source, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "recording")
	r, err := recording.Record(src, path, recording.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b raw.Batch
	size := int64(-1)
	for range n {
		_ = r.Read(t.Context(), &b) // some fail on purpose
		for {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() > size {
				size = info.Size()
				break
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// sixAnswers returns a source of readings 1 s apart, except for a failure and the gap after it.
func sixAnswers() *answering {
	down := heard{err: &source.Error{Failure: source.Unreachable, Cause: "down"}}
	return &answering{
		caps: source.Caps{Backend: "prometheus", Aggregation: source.Window, Host: "node-7"},
		at:   start,
		answers: []heard{
			{0, "up 1\n", nil}, {time.Second, "up 2 1772366400500\n", nil}, {time.Second, "up 3\n", nil},
			down, {7 * time.Second, "up 4\n", nil}, {time.Second, "up 5", nil},
		},
	}
}

func inSeconds(n int) time.Duration { return time.Duration(n) * time.Second }

func TestRecordingKeepsItsTime(t *testing.T) {
	path := recorded(t, sixAnswers(), 6)
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(path, Options{Loop: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if want := (source.Caps{Backend: "replay", Kind: source.Streamed, Aggregation: source.Window, Host: "node-7", Period: time.Second}); s.Caps() != want {
			t.Errorf("caps %+v, want %+v", s.Caps(), want)
		}
		begun := time.Now()
		var b raw.Batch
		for i, want := range []struct {
			busy, read, at int // seconds after begun
			body           string
		}{
			{0, 0, 0, "up 1\n"},
			{0, 1, 1, "up 2 1772366400500\n"},
			{0, 2, 2, "up 3\n"},
			{0, 9, 9, "up 4\n"}, // the failure and the gap around it
			{0, 10, 10, "up 5"},
			{0, 11, 11, "up 1\n"},               // from the last to the first: a period
			{3, 14, 12, "up 2 1772366400500\n"}, // late, as are all that follow
			{0, 15, 13, "up 3\n"},
			{0, 22, 20, "up 4\n"},
		} {
			time.Sleep(inSeconds(want.busy))
			if err := s.Read(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(begun); got != inSeconds(want.read) || b.At.Sub(begun) != inSeconds(want.at) {
				t.Errorf("tick %d came after %v, stamped %v; want %d and %d s", i, got, b.At.Sub(begun), want.read, want.at)
			}
			if string(b.Body) != want.body || len(b.Samples) != 1 || b.Took != 30*time.Millisecond {
				t.Errorf("tick %d: %q, want %q; %d samples, took %v", i, b.Body, want.body, len(b.Samples), b.Took)
			}
			if i == 1 && !slices.Equal(b.Stamps, []raw.Stamp{{Sample: 0, Millis: b.At.UnixMilli() - 500}}) {
				t.Errorf("stamps %v at %d: the sample was half a second old", b.Stamps, b.At.UnixMilli())
			}
			clear(b.Body[:cap(b.Body)]) // the reader may write to it
		}
	})
}

// A loop keeps the time before the first and after the last reading too.
func TestRecordingLoopsAroundFailures(t *testing.T) {
	text := `# kpulse-proxy recording 1
source "s" "dcgm" "point" "100ms" "" "2026-03-01T12:00:00Z"
end CRC
failed 0.000000000 1.000000000 timeout "x"
end CRC
reading 2.000000000 0.000000000 5 full
+up 1
end CRC
reading 2.200000000 0.000000000 5
@1 2
end CRC
failed 5.000000000 1.000000000 timeout "x"
end CRC
`
	path := file(t, checksums(text))
	synctest.Test(t, func(t *testing.T) {
		for _, loop := range []bool{true, false} {
			s, err := Open(path, Options{Loop: loop})
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			var b raw.Batch
			for i, want := range []int{0, 200, 5100, 5300, 10200} { // ms: 2.8 s and 2 s of failures, and a period
				err := s.Read(t.Context(), &b)
				if !loop && i == 2 {
					if got := time.Since(begun); !errors.Is(err, io.EOF) || got != 5100*time.Millisecond {
						t.Errorf("the end came after %v: %v", got, err)
					}
					break
				}
				if got := time.Since(begun); err != nil || got.Milliseconds() != int64(want) {
					t.Errorf("tick %d came after %v, want %v ms: %v", i, got, want, err)
				}
			}
		}
	})
}

// checksums fills in the checksums, which it takes from the errors of Parse.
func checksums(text string) string {
	lines := strings.SplitAfter(strings.ReplaceAll(text, "end CRC", "end 00000000"), "\n")
	for {
		_, err := recording.Parse([]byte(strings.Join(lines, "")))
		damage, ok := errors.AsType[*recording.Damage](err)
		if !ok {
			return strings.Join(lines, "")
		}
		_, crc, ok := strings.Cut(damage.What, "its checksum is ")
		if !ok {
			panic(err)
		}
		lines[damage.Line-1] = "end " + crc + "\n"
	}
}

func TestRecordingWithAPeriod(t *testing.T) {
	s, err := Open(recorded(t, sixAnswers(), 6), Options{Period: time.Nanosecond, Start: start})
	if err != nil {
		t.Fatal(err)
	}
	var b raw.Batch
	for i := range 5 {
		if err := s.Read(t.Context(), &b); err != nil || b.Samples[0].Value != float64(i+1) || !b.At.Equal(start.Add(time.Duration(i))) {
			t.Errorf("tick %d: %v %v at %v", i, err, values(&b), b.At)
		}
	}
	if err := s.Read(t.Context(), &b); !errors.Is(err, io.EOF) || len(b.Body)+len(b.Samples) > 0 {
		t.Errorf("at the end: %v", err)
	}
}

func TestRecordingOfOneReading(t *testing.T) {
	s, err := Open(recorded(t, sixAnswers(), 1), Options{})
	if err != nil || s.Caps().Period != time.Second {
		t.Errorf("%v, %+v", err, s.Caps())
	}
}

// The recording of a replay plays like the replay, reading by reading.
func TestRecordingOfTheDemo(t *testing.T) {
	const ticks = 700 // almost three times the script
	opts := Options{Period: time.Nanosecond, Start: start}
	path := recorded(t, Demo(opts), ticks)
	again, err := Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	demo := Demo(opts)
	var a, b raw.Batch
	bodies := 0
	for i := range ticks {
		if err := errors.Join(demo.Read(t.Context(), &a), again.Read(t.Context(), &b)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Body, b.Body) || !slices.Equal(a.Samples, b.Samples) || !a.At.Equal(b.At) || a.Skipped != b.Skipped || a.Meaningful != b.Meaningful {
			t.Fatalf("tick %d differs", i)
		}
		bodies += len(a.Body)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > int64(bodies)/20 {
		t.Errorf("%d bytes a reading for bodies of %d", info.Size()/ticks, bodies/ticks)
	}
	t.Logf("%d bytes a reading for bodies of %d", info.Size()/ticks, bodies/ticks)
}

func TestRecordingRefused(t *testing.T) {
	whole, err := os.ReadFile(recorded(t, sixAnswers(), 6))
	if err != nil {
		t.Fatal(err)
	}
	text := string(whole)
	only, _, _ := strings.Cut(text, "\nreading ")
	only += "\n"
	down := recorded(t, &answering{answers: []heard{{0, "", context.DeadlineExceeded}}}, 1)
	for name, tt := range map[string]struct {
		path string
		says []string
	}{
		"a damaged middle": {file(t, strings.Replace(text, "@1 3\n", "@1 9\n", 1)), []string{"line 17", "was changed", "head -n 16"}},
		"another version":  {file(t, strings.Replace(text, "recording 1", "recording 2", 1)), []string{"line 1", "another version"}},
		"no reading":       {file(t, only), []string{"no complete reading", "record for longer"}},
		"a torn first one": {file(t, text[:len(only)+50]), []string{"no complete reading", "line 9"}},
		"failures only":    {down, []string{"only 1 that failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(tt.path, Options{})
			e, ok := errors.AsType[*source.Error](err)
			if !ok || e.Failure != source.NotMetrics || e.Remedy == "" {
				t.Fatalf("%v", err)
			}
			for _, want := range append(tt.says, tt.path) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not contain %q", err, want)
				}
			}
		})
	}
}

// A torn end is logged once, however often the recording plays.
func TestRecordingTorn(t *testing.T) {
	text, err := os.ReadFile(recorded(t, sixAnswers(), 6))
	if err != nil {
		t.Fatal(err)
	}
	path := file(t, string(text[:len(text)-3]))
	var log bytes.Buffer
	s, err := Open(path, Options{Period: time.Nanosecond, Loop: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	var b raw.Batch
	for i := range 12 {
		if err := s.Read(t.Context(), &b); err != nil || b.Samples[0].Value != float64(1+i%4) {
			t.Fatalf("tick %d: %v, %v", i, values(&b), err)
		}
	}
	line := 1 + strings.Count(string(text[:bytes.LastIndex(text, []byte("reading "))]), "\n")
	if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), fmt.Sprintf("line=%d", line)) || !strings.Contains(log.String(), path) {
		t.Errorf("line %d; log: %s", line, &log)
	}
}

func TestRecordingPlaysWithFewAllocations(t *testing.T) {
	s, err := Open(recorded(t, Demo(Options{Period: time.Nanosecond}), 400), Options{Period: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	var b raw.Batch
	read := func() {
		if err := s.Read(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
	}
	for range 50 {
		read()
	}
	if n := testing.AllocsPerRun(300, read); n > 4 { // a full reading numbers the lines again, and some are longer than those before
		t.Errorf("%v allocations a tick", n)
	}
}
