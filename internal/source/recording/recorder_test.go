package recording

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// heard is one answer of a recorded source.
type heard struct {
	after time.Duration // since the previous answer
	body  string
	err   error
}

// answering is a source.Fetcher with a script.
type answering struct {
	caps    source.Caps
	answers []heard
	at      time.Time
}

var errClosing = errors.New("close of the source")

func (s *answering) Name() string          { return "answering" }
func (s *answering) Caps() source.Caps     { return s.caps }
func (s *answering) Close() error          { return errClosing }
func (s *answering) Scan(*raw.Batch) error { return nil }

func (s *answering) Fetch(ctx context.Context, b *raw.Batch) error { return s.Read(ctx, b) }

func (s *answering) Read(_ context.Context, b *raw.Batch) error {
	b.Reset()
	if len(s.answers) == 0 {
		return io.EOF
	}
	a := s.answers[0]
	s.answers, s.at = s.answers[1:], s.at.Add(a.after)
	b.At, b.Took, b.Body = s.at, 30*time.Millisecond, append(b.Body, a.body...)
	return a.err
}

// sixAnswers returns a source of readings 1 s apart, except for a failure and the gap after it.
func sixAnswers() *answering {
	return &answering{
		caps: source.Caps{Backend: "prometheus", Aggregation: source.Window, Host: "node-7"},
		at:   start,
		answers: []heard{
			{0, "up 1\n", nil}, {time.Second, "up 2 1772366400500\n", nil}, {time.Second, "up 3\n", nil},
			{err: &source.Error{Failure: source.Unreachable, Cause: "down"}}, {7 * time.Second, "up 4\n", nil}, {time.Second, "up 5", nil},
		},
	}
}

// record records n readings of src and returns the path of the file.
func record(t testing.TB, src source.Source, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "recording")
	recordIn(t, path, src, n)
	return path
}

func recordIn(t testing.TB, path string, src source.Source, n int) {
	t.Helper()
	r, err := Record(src, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	recorder, _ := source.As[*Recorder](r)
	var b raw.Batch
	for range n {
		_ = r.Read(t.Context(), &b) // some fail on purpose
		settle(recorder)
	}
	if err := r.Close(); !errors.Is(err, errClosing) && err != nil {
		t.Fatal(err)
	}
	if state := recorder.State(); state.Missed > 0 || state.Failures > 0 {
		t.Fatalf("%+v", state)
	}
}

// settle waits until all readings are written.
func settle(r *Recorder) {
	var idle []*entry
	for range backlog {
		idle = append(idle, <-r.free)
	}
	for _, e := range idle {
		r.free <- e
	}
}

func load(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// bodies returns the bodies of all ticks of a recording.
func bodies(t testing.TB, text []byte) (all []string, broken string) {
	t.Helper()
	track, err := identify("recording", text)
	if err != nil {
		t.Fatal(err)
	}
	b := raw.Batch{Dict: raw.NewDict()}
	for n := range track.length {
		track.fill(n, &b)
		all = append(all, string(b.Body))
	}
	return all, track.broken
}

// TestForm: any gunzip shows a recording, with a header line before each exposition.
func TestForm(t *testing.T) {
	unpacked, err := gzip.NewReader(bytes.NewReader(load(t, record(t, sixAnswers(), 2))))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	const h = `# kpulse-proxy recording {"version":2,"at":"2026-03-01T12:00:0%dZ","took_ns":30000000,` +
		`"backend":"prometheus","aggregation":"window","period_ns":0,"host":"node-7"}` + "\n"
	if want := fmt.Sprintf(h+"up 1\n"+h+"up 2 1772366400500\n", 0, 1); string(text) != want {
		t.Errorf("got\n%swant\n%s", text, want)
	}
	if _, err := Open(fileOf(t, string(text)), Options{}); err == nil || !strings.Contains(err.Error(), "unpacked") {
		t.Error(err)
	}
}

// TestRoundTrip: what was read plays byte for byte, with its caps; another run is appended.
func TestRoundTrip(t *testing.T) {
	src := sixAnswers()
	var want []string
	for n := range 3 {
		for _, body := range []string{string(rawtest.Body(40, 20, uint64(n))), "no \xff exposition\x00\r\n\r\n\x1f\x8b\x08", "up 1"} {
			src.answers, want = append(src.answers, heard{body: body}), append(want, body)
		}
	}
	path := record(t, src, 15)
	want = append([]string{"up 1\n", "up 2 1772366400500\n", "up 3\n", "up 4\n", "up 5"}, want...)
	recordIn(t, path, sixAnswers(), 2)
	want = append(want, "up 1\n", "up 2 1772366400500\n")
	if got, broken := bodies(t, load(t, path)); !slices.Equal(got, want) || broken != "" {
		t.Errorf("got %q\nwant %q\nbroken %q", got, want, broken)
	}
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Caps(); got.Backend != "replay" || got.Aggregation != source.Window || got.Host != "node-7" || got.Kind != source.Streamed || got.Local {
		t.Errorf("%+v", got)
	}
}

// TestStampsMove: a sample is as old as it was when it was recorded.
func TestStampsMove(t *testing.T) {
	path := record(t, sixAnswers(), 6)
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var b raw.Batch
		for range 2 {
			if err := s.Read(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
		}
		// 1772366400500 is 500 ms after start, and the reading a second after it.
		if len(b.Stamps) != 1 || b.Stamps[0].Millis != b.At.UnixMilli()-500 || b.Took != 30*time.Millisecond {
			t.Errorf("%+v at %d, took %v", b.Stamps, b.At.UnixMilli(), b.Took)
		}
	})
}

// TestDamage: wherever a recording is cut, or one of its bytes is changed, the other readings play.
func TestDamage(t *testing.T) {
	whole := load(t, record(t, sixAnswers(), 3))
	all, _ := bodies(t, whole)
	ends := []int{}
	for at := 0; at < len(whole); {
		_, _, size, err := unpack(nil, whole[at:])
		if err != nil {
			t.Fatal(err)
		}
		at += size
		ends = append(ends, at)
	}
	for at := ends[0]; at < len(whole); at++ {
		member := slices.IndexFunc(ends, func(end int) bool { return end > at })
		got, broken := bodies(t, whole[:at])
		if !slices.Equal(got, all[:member]) || (broken == "") != slices.Contains(ends, at) {
			t.Fatalf("cut at %d of %v: %q, %s", at, ends, got, broken)
		}
		changed := slices.Clone(whole)
		changed[at] ^= 0x55
		begins := ends[member-1]
		if at < begins+3 || at >= begins+10 { // gzip does not check its time stamp, flags and system
			if got, broken = bodies(t, changed); !slices.Equal(got, slices.Delete(slices.Clone(all), member, member+1)) || broken == "" {
				t.Fatalf("changed at %d of %v: %q, %s", at, ends, got, broken)
			}
		}
		joined := append(slices.Clone(whole[:at]), whole...)
		if got, _ = bodies(t, joined); !slices.Equal(got, append(slices.Clone(all[:member]), all...)) {
			t.Fatalf("killed at %d of %v and started again: %q", at, ends, got)
		}
	}
	for _, text := range []string{string(whole[:ends[0]-1]), string(new(packer).pack(header{Version: 3}, []byte("up 1\n")))} {
		if _, err := Open(fileOf(t, text), Options{}); err == nil || !strings.Contains(err.Error(), "no complete reading") {
			t.Error(err)
		}
	}
}

func TestRecordRefuses(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	taken := record(t, sixAnswers(), 1)
	first, err := Record(sixAnswers(), taken, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	other := fileOf(t, "precious\n")
	for path, want := range map[string]string{
		filepath.Join(dir, "no", "folder"): "no such file", dir: "is a directory", pipe: "not a regular file",
		other: "is no recording", taken: "another process records in it",
	} {
		_, err := Record(sixAnswers(), path, nil)
		if e, ok := errors.AsType[*source.Error](err); !ok || !strings.Contains(e.Cause, want) || e.Remedy == "" {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if text := load(t, other); string(text) != "precious\n" {
		t.Errorf("%q", text)
	}
}

// disk is a file that tests control.
type disk struct {
	bytes.Buffer
	writes chan error // one for each write
}

func (d *disk) Close() error { return nil }

func (d *disk) Write(p []byte) (int, error) {
	if err := <-d.writes; err != nil {
		n, _ := d.Buffer.Write(p[:len(p)/2])
		return n, err
	}
	return d.Buffer.Write(p)
}

// TestFullDisk: what cannot be written is counted and logged once, and the rest plays.
func TestFullDisk(t *testing.T) {
	var log bytes.Buffer
	d := &disk{writes: make(chan error, 5)}
	src := sixAnswers()
	src.answers = slices.Delete(src.answers, 3, 4)
	r := newRecorder(src, d, "f", slog.New(slog.NewTextHandler(&log, nil)))
	full := errors.New("disk full")
	for i, err := range []error{nil, full, full, nil, nil} {
		d.writes <- err
		var b raw.Batch
		if err := r.Read(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		settle(r)
		if state := r.State(); (state.Failure == "disk full") != (err != nil) || state.Failures != min(i, 2) || state.Missed != min(i, 2) {
			t.Errorf("after reading %d: %+v", i, state)
		}
	}
	_ = r.Close()
	if got, broken := bodies(t, d.Bytes()); !slices.Equal(got, []string{"up 1\n", "up 4\n", "up 5"}) || broken == "" {
		t.Errorf("%q, %s", got, broken)
	}
	if strings.Count(log.String(), "recording fails") != 1 || strings.Count(log.String(), "recording continues") != 1 {
		t.Errorf("log %s", &log)
	}
}

// TestSlowDisk: a disk that hangs delays no reading, and Close waits only for a while.
func TestSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d, src := &disk{writes: make(chan error)}, &answering{answers: make([]heard, 100)}
		for i := range src.answers {
			src.answers[i].body = "up 1\n"
		}
		r := newRecorder(src, d, "f", slog.New(slog.NewTextHandler(&log, nil)))
		var b raw.Batch
		begun := time.Now()
		for range 100 {
			if err := r.Read(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := r.Close(); !errors.Is(err, errClosing) {
				t.Error(err)
			}
		}
		if time.Since(begun) != patience || r.State().Missed != 100-backlog || !strings.Contains(log.String(), "the disk does not respond") {
			t.Errorf("%v, %+v, log %s", time.Since(begun), r.State(), &log)
		}
		close(d.writes)
		<-r.written
		if err := r.Read(t.Context(), &b); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
}

// TestRendering: a source that writes its text only when asked is recorded.
func TestRendering(t *testing.T) {
	d := &disk{writes: make(chan error, 1)}
	d.writes <- nil
	r := newRecorder(&answering{}, d, "f", slog.New(slog.DiscardHandler))
	text := func(text string) func([]byte, *raw.Batch) []byte {
		return func(dst []byte, _ *raw.Batch) []byte { return append(dst, text...) }
	}
	r.record(&raw.Batch{Rendering: raw.Rendering{Exposition: text("up 1\n"), Own: text("own 2\n")}})
	_ = r.Close()
	<-r.written // Close waits for a while only
	if got, _ := bodies(t, d.Bytes()); !slices.Equal(got, []string{"up 1\nown 2\n"}) {
		t.Errorf("%q", got)
	}
}

// reading is a source that only reads, and has streams.
type reading struct{ source.Source }

func (reading) Streams(dst []source.StreamTotals) []source.StreamTotals {
	return append(dst, source.StreamTotals{Stream: "device", Ticks: 7})
}

// TestWrapping: a recorded source is a Fetcher if the source is one, records what it scans, and has its streams.
func TestWrapping(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recording")
	r, err := Record(sixAnswers(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := r.(source.Fetcher)
	early, later := &raw.Batch{}, &raw.Batch{}
	_ = f.Fetch(t.Context(), early)
	_ = f.Fetch(t.Context(), later)
	_ = f.Scan(later)
	_ = f.Scan(early)
	recorder, _ := source.As[*Recorder](r)
	settle(recorder) // Close waits for a while only
	_ = r.Close()
	if got, _ := bodies(t, load(t, path)); !slices.Equal(got, []string{"up 2 1772366400500\n", "up 1\n"}) {
		t.Errorf("%q", got)
	}
	r, err = Record(reading{sixAnswers()}, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	streams, _ := source.As[source.Streams](r)
	if _, is := source.As[source.Fetcher](r); is || len(streams.Streams(make([]source.StreamTotals, 1))) != 2 {
		t.Errorf("a Fetcher: %t", is)
	}
}
