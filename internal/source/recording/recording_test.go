package recording

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const twoBodies = `# HELP DCGM_FI_DEV_GPU_UTIL u
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0"} 10
# EOF
DCGM_FI_DEV_GPU_UTIL{gpu="0"} 20
this is not a sample line !
# EOF
`

const threeSamples = `root@n:~$ dcgmi dmon -e 1002,155
#Entity    SMACT        POWER             
ID                       W                
GPU 0      0.100        100.000           
GPU 1      0.200        200.000           
GPU 0      0.110        110.000           
Error: something happened
GPU 1      0.210        210.000           
#Entity    SMACT        POWER             
ID                       W                
GPU 0      0.120        120.000           
`

// fileOf writes text to a new file and returns its path.
func fileOf(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, text string, opts Options) *Source {
	t.Helper()
	s, err := Open(fileOf(t, text), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// values lists a Batch's values in order.
func values(b *raw.Batch) []float64 {
	var vs []float64
	for _, s := range b.Samples {
		vs = append(vs, s.Value)
	}
	return vs
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestTicks(t *testing.T) {
	type tick struct {
		values  []float64
		body    string
		skipped int
	}
	tests := []struct {
		name, text  string
		aggregation source.Aggregation
		want        []tick
	}{
		{"two expositions", twoBodies, source.Window, []tick{
			{[]float64{10}, strings.Split(twoBodies, "# EOF")[0], 0},
			{[]float64{20}, "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 20\nthis is not a sample line !\n", 1},
		}},
		{"one exposition, no header, no final line end", `up{gpu="0"} 7`, source.Window, []tick{{[]float64{7}, `up{gpu="0"} 7`, 0}}},
		{"OpenMetrics' end mark, blank lines after it", "up 7\n# EOF\n\n", source.Window, []tick{{[]float64{7}, "up 7\n", 0}}},
		{"an exposition with a comment like a header", "# HELP up x\n# Entity of a kind\nup 7\n", source.Window,
			[]tick{{[]float64{7}, "# HELP up x\n# Entity of a kind\nup 7\n", 0}}},
		{"dmon", threeSamples, source.Point, []tick{
			{[]float64{.1, 100, .2, 200}, "", 1}, {[]float64{.11, 110, .21, 210}, "", 1}, {[]float64{.12, 120}, "", 0},
		}},
		{"dmon that ends in an error", "#Entity    SMACT        \nGPU 0      0.100        \nError: connection lost\n", source.Point,
			[]tick{{[]float64{.1}, "", 1}}},
		{"dmon that was cut", "#Entity    SMACT        RPCTR        \nGPU 0      0.100        1234         \nGPU 0      0.100        12", source.Point,
			[]tick{{[]float64{.1, 1234}, "", 0}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, tt.text, Options{Period: time.Nanosecond, Start: start})
			if got := s.Caps(); got.Aggregation != tt.aggregation || got.Kind != source.Streamed || got.Backend != "replay" || got.Local {
				t.Errorf("caps %+v", got)
			}
			var b raw.Batch
			for i, want := range tt.want {
				if err := s.Read(t.Context(), &b); err != nil {
					t.Fatalf("tick %d: %v", i, err)
				}
				if !slices.Equal(values(&b), want.values) || string(b.Body) != want.body {
					t.Errorf("tick %d: %v %q, want %v", i, values(&b), b.Body, want)
				}
				if b.Skipped != want.skipped {
					t.Errorf("tick %d: %d skipped, want %d", i, b.Skipped, want.skipped)
				}
				if !b.At.Equal(start.Add(time.Duration(i))) {
					t.Errorf("tick %d at %v", i, b.At)
				}
			}
			for range 2 {
				if err := s.Read(t.Context(), &b); !errors.Is(err, io.EOF) || len(b.Samples)+len(b.Body)+b.Skipped > 0 {
					t.Fatalf("at the end: %v, %+v", err, b)
				}
			}
		})
	}
}

// A reader may write to its Batch without changing the capture.
func TestLoop(t *testing.T) {
	for text, ticks := range map[string][]float64{twoBodies: {10, 20}, threeSamples: {.1, .11, .12}} {
		s := open(t, text, Options{Period: time.Nanosecond, Loop: true, Start: start})
		var b raw.Batch
		for i := range 3 * len(ticks) {
			if err := s.Read(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			if got := b.Samples[0].Value; got != ticks[i%len(ticks)] {
				t.Errorf("tick %d begins with %v", i, got)
			}
			if !b.At.Equal(start.Add(time.Duration(i))) {
				t.Errorf("tick %d at %v", i, b.At)
			}
			clear(b.Body[:cap(b.Body)])
		}
	}
}

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Demo(Options{})
		defer s.Close()
		begun := time.Now()
		var b raw.Batch
		// busy is how long the reader is busy before Read, and at the time
		// after begun when Read returns.
		steps := []struct{ busy, at time.Duration }{
			{0, 0},
			{0, time.Second},
			{300 * time.Millisecond, 2 * time.Second},
			{3500 * time.Millisecond, 5500 * time.Millisecond}, // late: at once
			{0, 6500 * time.Millisecond},                       // no burst
			{0, 7500 * time.Millisecond},
		}
		for i, step := range steps {
			time.Sleep(step.busy)
			if err := s.Read(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(begun); got != step.at {
				t.Errorf("tick %d came after %v, want %v", i, got, step.at)
			}
			if got := b.At.Sub(begun); got != time.Duration(i)*time.Second {
				t.Errorf("tick %d is stamped %v", i, got)
			}
		}
	})
}

func TestEndAfterAPeriod(t *testing.T) {
	path := fileOf(t, "up 7\n")
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(path, Options{Period: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		var b raw.Batch
		if err := s.Read(t.Context(), &b); err != nil || time.Since(begun) != 0 {
			t.Fatal(err, time.Since(begun))
		}
		if err := s.Read(t.Context(), &b); !errors.Is(err, io.EOF) || time.Since(begun) != time.Minute {
			t.Fatal(err, time.Since(begun))
		}
	})
}

func TestCancelAndClose(t *testing.T) {
	path := fileOf(t, twoBodies)
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var b raw.Batch
		if err := s.Read(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		defer cancel()
		if err := s.Read(ctx, &b); !errors.Is(err, context.DeadlineExceeded) || len(b.Samples)+len(b.Body) > 0 {
			t.Errorf("cancelled: %v, %d samples", err, len(b.Samples))
		}
		if err := s.Read(t.Context(), &b); err != nil || b.Samples[0].Value != 20 || time.Since(begun) != time.Second {
			t.Errorf("the tick was lost or late: %v %v after %v", err, values(&b), time.Since(begun))
		}
		time.AfterFunc(100*time.Millisecond, func() { s.Close() })
		begun = time.Now()
		if err := s.Read(t.Context(), &b); !errors.Is(err, os.ErrClosed) || time.Since(begun) != 100*time.Millisecond {
			t.Errorf("closed: %v after %v", err, time.Since(begun))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		name, path string
		failure    source.Failure
		says       []string
	}{
		{"missing", filepath.Join(dir, "nothing.dmon"), source.Unreachable, []string{"no such file", "--source"}},
		{"directory", dir, source.Unreachable, []string{"is not a regular file", "saved /metrics"}},
		{"device", os.DevNull, source.Unreachable, []string{"not a regular file"}},
		{"empty", fileOf(t, " \n\n"), source.NotMetrics, []string{"line 1: the file is empty", "dcgmi dmon"}},
		{"gzip", fileOf(t, "\x1f\x8b\x08\x00"), source.NotMetrics, []string{"gunzip"}},
		{"HTML", fileOf(t, "\n<html>\n<body>x</body>\n"), source.NotMetrics, []string{`line 2: "<html>"`, "/metrics", "dcgmi dmon"}},
		{"garbage in the second body", fileOf(t, "up 1\n# EOF\n\n{}}\n"), source.NotMetrics, []string{`line 4: "{}}"`}},
		{"an exposition in CRLF", fileOf(t, "\r\nup 1\r\n"), source.NotMetrics, []string{"line 2", "CRLF", "sed"}},
		{"comments", fileOf(t, "# one\n# two\n"), source.NotMetrics, []string{"line 2", "no metric"}},
		{"end marks", fileOf(t, "# EOF\n# EOF\n"), source.NotMetrics, []string{"end marks"}},
		{"dmon that failed", fileOf(t, "# Entity  GRACT  TENSO  DRAMA  TMPTR\n      Id                           C\nError setting watches. Result: The third-party Profiling module returned an unrecoverable error\n"),
			source.NotMetrics, []string{"line 3", `"Error setting watches. Result: The third-party Profiling module returned an unrecoverable error"`, "capture it again"}},
		{"dmon that failed at once", fileOf(t, "#Entity   GRACT        \nID                     \n"), source.NotMetrics, []string{"without a row", "capture it again"}},
		{"dmon of switches", fileOf(t, "#Entity   GRACT        \nSwitch 0  1            \n"), source.NotMetrics, []string{"without a row of a GPU"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Open(tt.path, Options{})
			e, ok := errors.AsType[*source.Error](err)
			if !ok {
				t.Fatalf("opened %v, error %v", s, err)
			}
			if e.Failure != tt.failure || e.Remedy == "" || strings.Contains(e.Error(), "\n") {
				t.Errorf("%s: %q, remedy %q", e.Failure, e.Cause, e.Remedy)
			}
			for _, want := range append(tt.says, tt.path) {
				if !strings.Contains(e.Error(), want) {
					t.Errorf("%q does not contain %q", e, want)
				}
			}
		})
	}
}

// Every capture plays, or is refused with the error that it contains.
func TestCaptures(t *testing.T) {
	paths, err := filepath.Glob("../../../testdata/captures/*")
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d captures (%v)", len(paths), err)
	}
	for _, path := range paths {
		s, err := Open(path, Options{Period: time.Millisecond})
		if strings.Contains(path, "refused") {
			if err == nil || !strings.Contains(err.Error(), "third-party Profiling module") {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		var b raw.Batch
		samples := 0
		for range 2 { // the first tick of profiling has no samples
			if err := s.Read(t.Context(), &b); err != nil {
				break // the end of a capture of one reading
			}
			samples += len(b.Samples)
		}
		if samples == 0 {
			t.Errorf("%s: no sample", path)
		}
	}
}

// TestLead: the ticks of the past come one by one when they are asked for, the others in their time.
func TestLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lead := make(chan struct{})
		s := Demo(Options{Lead: lead, Start: start})
		begun := time.Now()
		go func() {
			for range 3 {
				time.Sleep(10 * time.Millisecond)
				lead <- struct{}{}
			}
			close(lead)
		}()
		var b raw.Batch
		for i, want := range []time.Duration{10, 20, 30, 1030, 2030} {
			if err := s.Read(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(begun); got != want*time.Millisecond || b.At != start.Add(time.Duration(i)*time.Second) {
				t.Errorf("tick %d after %v, of %v", i, got, b.At)
			}
		}
	})
}
