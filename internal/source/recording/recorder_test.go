package recording

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
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// said is one answer of a scripted source.
type said struct {
	at   time.Duration // after start
	took time.Duration
	body string
	err  error
}

// scripted is a source that returns its answers in order, then io.EOF.
type scripted struct {
	answers []said
	caps    source.Caps
	name    string
	closed  int
}

func (s *scripted) Name() string      { return s.name }
func (s *scripted) Caps() source.Caps { return s.caps }
func (s *scripted) Close() error      { s.closed++; return errors.New("close of the source") }

func (s *scripted) Read(_ context.Context, b *raw.Batch) error {
	b.Reset()
	if len(s.answers) == 0 {
		return io.EOF
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	if a.err != nil {
		return a.err
	}
	b.At, b.Took, b.Body = start.Add(a.at), a.took, append(b.Body, a.body...)
	return nil
}

// record records answers in a new file and returns its path.
func record(t testing.TB, opts Options, answers ...said) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "recording")
	src := &scripted{answers: answers, name: "a source", caps: source.Caps{Backend: "prometheus", Aggregation: source.Window, Host: "node 1"}}
	recordAll(t, src, path, opts)
	return path
}

func recordAll(t testing.TB, src *scripted, path string, opts Options) {
	t.Helper()
	r, err := newRecorder(src, path, opts)
	if err != nil {
		t.Fatal(err)
	}
	var b raw.Batch
	for len(src.answers) > 0 {
		want := src.answers[0]
		for len(r.free) == 0 && !r.ended.Load() { // a slow disk must not cause a miss
			time.Sleep(time.Microsecond)
		}
		if err := r.Read(t.Context(), &b); !errors.Is(err, want.err) || string(b.Body) != want.body {
			t.Fatalf("the reading changed on its way: %v, %q", err, b.Body)
		}
	}
	if err := r.Close(); err == nil || err.Error() != "close of the source" {
		t.Errorf("closed: %v", err)
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

// play returns all records of a recording.
func play(t testing.TB, text []byte) (*Recording, []Reading) {
	t.Helper()
	rec, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return rec, rest(t, rec.Play())
}

func rest(t testing.TB, p *Player) []Reading {
	t.Helper()
	var all []Reading
	for {
		var r Reading
		err := p.Next(&r)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

func TestWhatIsRecorded(t *testing.T) {
	refused := &source.Error{Failure: source.Unreachable, Cause: "http://n:9400/metrics: connection refused", Remedy: "start it"}
	answers := []said{
		{err: context.Canceled},
		{at: time.Second, took: 5 * time.Millisecond, body: "up 1\nb{x=\"1\"} 2\n"},
		{at: 3*time.Second + 1, took: 1, body: "b{x=\"1\"} 3\nup 1"},
		{err: refused},
		{err: fmt.Errorf("odd\n\"failure\": %w", context.DeadlineExceeded)},
		{at: 2 * time.Second, body: ""},
		{at: 100 * time.Hour, body: "up 1\n"},
		{err: io.EOF},
	}
	text := load(t, record(t, Options{}, answers...))
	rec, all := play(t, text)
	if rec.Source != "a source" || rec.Caps != (source.Caps{Backend: "prometheus", Aggregation: source.Window, Host: "node 1"}) {
		t.Errorf("source %q, %+v", rec.Source, rec.Caps)
	}
	if want := start.Add(time.Second); !rec.Start.Equal(want) || rec.Torn != 0 || rec.Failed != 2 || rec.Missed != 0 {
		t.Errorf("start %v, want %v; %+v", rec.Start, want, rec)
	}
	if want := []time.Duration{0, 2*time.Second + 1, time.Second, 100*time.Hour - time.Second}; !slices.Equal(rec.Asked, want) || rec.Begun != 0 || rec.Ended != want[3] {
		t.Errorf("asked at %v, want %v; from %v to %v", rec.Asked, want, rec.Begun, rec.Ended)
	}
	wants := []Reading{
		{Asked: 0, Took: 5 * time.Millisecond, Body: []byte(answers[1].body)},
		{Asked: 2*time.Second + 1, Took: 1, Body: []byte(answers[2].body)},
		{Failure: source.Unreachable, Cause: refused.Cause},
		{Failure: source.Timeout, Cause: answers[4].err.Error()},
		{Asked: time.Second, Body: nil},
		{Asked: 100*time.Hour - time.Second, Body: []byte("up 1\n")},
	}
	if len(all) != len(wants) {
		t.Fatalf("%d records, want %d:\n%s", len(all), len(wants), text)
	}
	for i, want := range wants {
		got := all[i]
		if want.Failure != "" { // at the actual time
			got.Asked, got.Took = 0, 0
		}
		if !bytes.Equal(got.Body, want.Body) || got.Asked != want.Asked || got.Took != want.Took || got.Failure != want.Failure || got.Cause != want.Cause {
			t.Errorf("record %d: %+v, want %+v", i, got, want)
		}
	}
}

// The file format is stable for other readers. The checksums were computed by a bitwise CRC-32C
// in another language.
func TestForm(t *testing.T) {
	body := "# HELP up u\nup{gpu=\"0\"} 1\nup{gpu=\"1\"} 1\nup{gpu=\"2\"} 1\nup{gpu=\"3\"} 1\n"
	changed := strings.Replace(strings.Replace(body, "\"3\"} 1", "\"3\"} = 5", 1), "\"0\"} 1", "\"0\"} +Inf", 1)
	text := string(load(t, record(t, Options{},
		said{took: 1500 * time.Millisecond, body: body},
		said{at: 15 * time.Second, body: body},
		said{at: 30 * time.Second, body: changed},
		said{at: 45 * time.Second, body: "new\tline é\nbell\a\r\nup{gpu=\"2\"} 2"},
	)))
	want := First + "\n" + comments + `source "a source" "prometheus" "window" "0s" "node 1" "2026-03-01T12:00:00.123456789Z"
end d30195d9
reading 0.000000000 1.500000000 68 full
+# HELP up u
+up{gpu="0"} 1
+up{gpu="1"} 1
+up{gpu="2"} 1
+up{gpu="3"} 1
end e7946a73
reading 15.000000000 0.000000000 68
@1 =5
end 2f772170
reading 30.000000000 0.000000000 73
@1 = +Inf =2 "= 5"
end 0ae58e0a
reading 45.000000000 0.000000000 32
+new	line é
"bell\a\r"
@4 2
end bb0ae25a
`
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestRotation(t *testing.T) {
	const size, keep = 30_000, 3
	var answers []said
	for i := range 200 {
		answers = append(answers, said{at: time.Duration(i) * time.Second, body: string(rawtest.Body(8, 6, uint64(i)))})
	}
	path := record(t, Options{FileSize: size, Keep: keep}, answers...)
	files, _ := filepath.Glob(path + "*")
	if want := []string{path, path + ".1", path + ".2", path + ".3"}; !slices.Equal(files, want) {
		t.Fatalf("files %v", files)
	}
	// From the newest file backwards: each file plays on its own, and the last
	// readings are there without a gap.
	left := answers
	for _, path := range files {
		text := load(t, path)
		if len(text) > size || path != files[0] && len(text) < size/2 {
			t.Errorf("%s has %d bytes", path, len(text))
		}
		rec, all := play(t, text)
		if len(all) < 2 {
			t.Fatalf("%s: %d readings", path, len(all))
		}
		mine := left[len(left)-len(all):]
		left = left[:len(left)-len(all)]
		for i, r := range all {
			if string(r.Body) != mine[i].body || !rec.Start.Add(r.Asked).Equal(start.Add(mine[i].at)) {
				t.Fatalf("%s: reading %d differs, or is at %v", path, i, r.Asked)
			}
		}
	}
	if len(left) == 0 {
		t.Error("nothing was dropped: the test needs more readings")
	}
}

func TestRotationKeepsNone(t *testing.T) {
	var answers []said
	for i := range 20 {
		answers = append(answers, said{body: string(rawtest.Body(8, 2, uint64(i)))})
	}
	path := record(t, Options{FileSize: 1, Keep: -1}, answers...)
	if files, _ := filepath.Glob(path + "*"); len(files) != 1 {
		t.Errorf("files %v", files)
	}
	if _, all := play(t, load(t, path)); len(all) != 1 || string(all[0].Body) != answers[19].body {
		t.Errorf("%d readings", len(all))
	}
}

// An existing recording is never overwritten.
func TestStartKeepsWhatIsThere(t *testing.T) {
	for keep, left := range map[int]string{-1: "second", 1: "second", 2: "second first"} {
		path := filepath.Join(t.TempDir(), "recording")
		for _, name := range []string{"first", "second", "third"} {
			recordAll(t, &scripted{name: name, answers: []said{{body: "up 1\n"}}}, path, Options{Keep: keep})
		}
		rec, _ := play(t, load(t, path))
		if rec.Source != "third" {
			t.Errorf("keep %d: %s", keep, rec.Source)
		}
		for n, want := range strings.Fields(left) {
			if rec, _ := play(t, load(t, fmt.Sprintf("%s.%d", path, n+1))); rec.Source != want {
				t.Errorf("keep %d: .%d is %s", keep, n+1, rec.Source)
			}
		}
		if files, _ := filepath.Glob(path + "*"); len(files) != 1+len(strings.Fields(left)) {
			t.Errorf("keep %d: %v", keep, files)
		}
	}
}

// A file may begin with failures; its first reading is still complete.
func TestFailureFirst(t *testing.T) {
	_, all := play(t, load(t, record(t, Options{}, said{err: context.DeadlineExceeded}, said{body: "up 1\n"})))
	if len(all) != 2 || all[0].Failure != source.Timeout || string(all[1].Body) != "up 1\n" {
		t.Errorf("%+v", all)
	}
}

func TestRecordRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		dir:                               "is a directory",
		filepath.Join(dir, "none", "x"):   "no such file",
		filepath.Join(dir, "file", "sub"): "not a directory",
		filepath.Join(dir, "pipe"):        "no such device", // has no reader
	} {
		src := &scripted{}
		r, err := newRecorder(src, path, Options{})
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "name a file") {
			t.Errorf("%s: %v, %v", path, r, err)
		}
		if src.closed > 0 {
			t.Error("the source was closed")
		}
	}
}

// Two recorders never write the same file: the second is refused until the first
// is closed, across rotations, and harms nothing.
func TestTwoRecorders(t *testing.T) {
	for name, opts := range map[string]Options{
		"one file": {}, "rotated": {FileSize: 1, Keep: 2}, "none kept": {FileSize: 1, Keep: -1},
	} {
		path := filepath.Join(t.TempDir(), "recording")
		first := &scripted{name: "first", answers: []said{{body: "up 1\n"}, {body: "up 2\n"}, {body: "up 3\n"}}}
		r, err := newRecorder(first, path, opts)
		if err != nil {
			t.Fatal(err)
		}
		var b raw.Batch
		for n := 1; len(first.answers) > 0; n++ {
			if err := r.Read(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			for len(r.free) < backlog { // until the reading is written
				time.Sleep(time.Microsecond)
			}
			_, err := newRecorder(&scripted{}, path, opts)
			if err == nil || !strings.Contains(err.Error(), path+": another process records in it; name another file") {
				t.Fatalf("%s: %v after %d readings", name, err, n)
			}
		}
		_ = r.Close()
		_, all := play(t, load(t, path))
		if last := all[len(all)-1]; string(last.Body) != "up 3\n" || opts.FileSize == 0 && len(all) != 3 {
			t.Errorf("%s: %d readings, the last %q", name, len(all), last.Body)
		}
		recordAll(t, &scripted{name: "second", answers: []said{{body: "up 4\n"}}}, path, opts)
		if rec, _ := play(t, load(t, path)); rec.Source != "second" {
			t.Errorf("%s: %s", name, rec.Source)
		}
	}
}

func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	var log bytes.Buffer
	src := &scripted{name: "s"}
	for i := range 50 {
		src.answers = append(src.answers, said{body: fmt.Sprintf("up %d\n", i)})
	}
	recordAll(t, src, "/dev/full", Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines are logged:\n%s", n, &log)
	}
	for _, want := range []string{"level=ERROR", "recording fails", "retried", "no space left", "/dev/full", "remedy="} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not contain %q: %s", want, &log)
		}
	}
}

// A rotation that fails loses readings, but keeps the recording.
func TestRotationFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recording")
	if err := os.MkdirAll(path+".1/in-the-way", 0o700); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	src := &scripted{answers: []said{{body: "up 1\n"}, {body: "up 2\n"}, {body: "up 3\n"}}}
	recordAll(t, src, path, Options{FileSize: 1, Keep: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if !strings.Contains(log.String(), "recording fails") || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("log: %s", &log)
	}
	if _, all := play(t, load(t, path)); len(all) != 1 || string(all[0].Body) != "up 1\n" {
		t.Errorf("%+v", all)
	}
}

// A source without text cannot be recorded: the log says so, and the file stays empty.
func TestNoText(t *testing.T) {
	var log bytes.Buffer
	path := filepath.Join(t.TempDir(), "recording")
	r, err := newRecorder(&samplesOnly{}, path, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	var b raw.Batch
	for range 3 {
		if err := r.Read(t.Context(), &b); err != nil || len(b.Samples) != 1 {
			t.Fatal(err)
		}
	}
	r.Close()
	if !strings.Contains(log.String(), "no text") || strings.Count(log.String(), "\n") != 1 || len(load(t, path)) > 0 {
		t.Errorf("log %s, file %q", &log, load(t, path))
	}
}

type samplesOnly struct{ scripted }

func (s *samplesOnly) Read(_ context.Context, b *raw.Batch) error {
	b.Reset()
	b.Samples = append(b.Samples, raw.Sample{Value: 1})
	return nil
}

// A Recorder passes on the stream totals of its source.
func TestStreams(t *testing.T) {
	for want, src := range []source.Source{&scripted{}, &streaming{}} {
		r, err := newRecorder(src, filepath.Join(t.TempDir(), "r"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Streams(make([]source.StreamTotals, 1)); len(got) != 1+want || want > 0 && got[1].Ticks != 7 {
			t.Errorf("%+v", got)
		}
		r.Close()
	}
}

type streaming struct{ scripted }

func (s *streaming) Streams(dst []source.StreamTotals) []source.StreamTotals {
	return append(dst, source.StreamTotals{Stream: "device", Ticks: 7})
}

// fifo returns the path of a pipe, which a large write fills, and its reading
// end.
func fifo(t *testing.T) (string, *os.File) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	end, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end.Close() })
	return path, end
}

// A disk that hangs delays nothing. The recording lacks the readings that were
// not written in time, counts them, and is otherwise correct.
func TestSlowDisk(t *testing.T) {
	path, end := fifo(t)
	src := &scripted{}
	const readings = 100
	for i := range readings {
		src.answers = append(src.answers, said{at: time.Duration(i) * time.Second, body: string(rawtest.Body(40, 20, uint64(i)))})
	}
	bodies := map[time.Duration]string{}
	for _, a := range src.answers {
		bodies[a.at] = a.body
	}
	last := said{at: readings * time.Second, body: "up 1\n"}
	bodies[last.at] = last.body
	r, err := newRecorder(src, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b raw.Batch
	for range readings {
		if err := r.Read(t.Context(), &b); err != nil { // nothing reads the pipe: a Read that waits for it never returns
			t.Fatal(err)
		}
	}
	text := make(chan []byte)
	go func() {
		all, err := io.ReadAll(end)
		if err != nil {
			t.Error(err)
		}
		text <- all
	}()
	r.free <- <-r.free // wait for the disk
	src.answers = []said{last}
	if err := r.Read(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	r.Close()
	rec, all := play(t, <-text)
	if rec.Missed != readings+1-len(all) || rec.Missed == 0 || all[len(all)-1].Missed != rec.Missed {
		t.Errorf("%d readings are there, %d missed, %d of them before the last", len(all), rec.Missed, all[len(all)-1].Missed)
	}
	for i, reading := range all {
		if string(reading.Body) != bodies[rec.Start.Add(reading.Asked).Sub(start)] {
			t.Errorf("reading %d differs", i)
		}
	}
}

func TestCloseDoesNotWaitForADiskThatHangs(t *testing.T) {
	path, end := fifo(t)
	var log bytes.Buffer
	src := &scripted{answers: []said{{body: string(rawtest.Body(400, 20, 1))}, {body: "up 1\n"}}}
	r, err := newRecorder(src, path, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	r.patience = 10 * time.Millisecond
	var b raw.Batch
	for range 2 {
		if err := r.Read(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := r.Close(); err == nil {
			t.Error("the source's error is lost")
		}
	}
	if !strings.Contains(log.String(), "too slow") || src.closed != 2 {
		t.Errorf("log %q, %d closed", &log, src.closed)
	}
	end.Close()
	<-r.written
	if strings.Count(log.String(), "\n") != 1 {
		t.Errorf("it is logged twice: %s", &log)
	}
}

func TestReadWhileClosing(t *testing.T) {
	for range 20 {
		r, err := newRecorder(shuffled(2, 3), filepath.Join(t.TempDir(), "r"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			var b raw.Batch
			for range 200 {
				if err := r.Read(t.Context(), &b); err != nil {
					t.Error(err)
				}
			}
		}()
		r.Close()
		<-done
		// A file that is closed before its first reading is empty.
		if _, err := Parse(append([]byte(First+"\n"), load(t, r.file.path)...)); err != nil {
			t.Error(err)
		}
	}
}

// endless returns its bodies in turn, over and over.
type endless struct {
	scripted
	bodies [][]byte
	n      int
}

func (s *endless) Close() error { return nil }

func (s *endless) Read(_ context.Context, b *raw.Batch) error {
	b.Reset()
	b.At = start.Add(time.Duration(s.n) * time.Second)
	b.Body = append(b.Body, s.bodies[s.n%len(s.bodies)]...)
	s.n++
	return nil
}

func shuffled(entities, families int) *endless {
	s := &endless{}
	for i := range 16 {
		s.bodies = append(s.bodies, rawtest.Body(entities, families, uint64(i)))
	}
	return s
}

func TestSteadyReadsAllocateNothing(t *testing.T) {
	r, err := newRecorder(shuffled(8, 30), filepath.Join(t.TempDir(), "r"), Options{FileSize: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b raw.Batch
	read := func() {
		buf := <-r.free // wait, so that no reading is missed
		r.free <- buf
		if err := r.Read(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
	}
	for range 300 { // including full ones
		read()
	}
	if n := testing.AllocsPerRun(300, read); n > 0 {
		t.Errorf("%v allocations a reading", n)
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, size := range [][2]int{{8, 60}, {112, 60}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			s := shuffled(size[0], size[1])
			w := newWriter(s, "")
			var batch raw.Batch
			var dst []byte
			total := 0
			b.ReportAllocs()
			for b.Loop() {
				_ = s.Read(b.Context(), &batch)
				dst = w.reading(dst[:0], &batch, 0)
				total += len(dst)
			}
			b.ReportMetric(float64(total)/float64(b.N), "bytes/reading")
			b.ReportMetric(float64(len(batch.Body)), "bytes/body")
		})
	}
}
