package recording

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// fetching is a scripted source.Fetcher. Its Scan refuses the body "nonsense".
type fetching struct{ scripted }

var errNonsense = &source.Error{Failure: source.NotMetrics, Cause: "nonsense"}

func (f *fetching) Fetch(ctx context.Context, b *raw.Batch) error { return f.Read(ctx, b) }

func (f *fetching) Scan(b *raw.Batch) error {
	if string(b.Body) == "nonsense" {
		b.Reset()
		return errNonsense
	}
	return nil
}

// Requests of a recorded Fetcher may overlap. The outcome of each is recorded once,
// in the order of outcomes.
func TestFetched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recording")
	src := &fetching{}
	recorded, err := Record(src, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, is := recorded.(source.Fetcher)
	if inner, found := source.As[*Recorder](recorded); !is || !found || inner.Source != source.Source(src) {
		t.Fatalf("%T: a Fetcher: %t", recorded, is)
	}
	ask := func(a said) (*raw.Batch, error) {
		src.answers = []said{a}
		var b raw.Batch
		return &b, r.Fetch(t.Context(), &b)
	}
	early, err := ask(said{body: "up 1\n"})
	if err != nil {
		t.Fatal(err)
	}
	later, err := ask(said{at: time.Minute, took: time.Second, body: "nonsense"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Scan(later); !errors.Is(err, errNonsense) {
		t.Errorf("scanned: %v", err)
	}
	if err := r.Scan(early); err != nil || string(early.Body) != "up 1\n" {
		t.Errorf("scanned: %v, %q", err, early.Body)
	}
	for _, failure := range []error{context.Canceled, os.ErrClosed, context.DeadlineExceeded} {
		if _, err := ask(said{err: failure}); !errors.Is(err, failure) {
			t.Errorf("asked: %v", err)
		}
	}
	if err := recorded.Close(); err == nil {
		t.Error("the source's error is lost")
	}
	rec, all := play(t, load(t, path))
	if len(all) != 3 || rec.Failed != 2 || all[0].Failure != source.NotMetrics || all[0].Took != time.Second || all[2].Failure != source.Timeout {
		t.Fatalf("%+v", all)
	}
	if all[0].Asked != 0 || all[1].Asked != -time.Minute || string(all[1].Body) != "up 1\n" {
		t.Errorf("an older request: %+v after %+v", all[1], all[0])
	}
}

// A Recorder of a source without Fetch is no Fetcher.
func TestReadIsNotFetched(t *testing.T) {
	r, err := Record(&scripted{}, filepath.Join(t.TempDir(), "recording"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	if _, is := source.As[source.Fetcher](r); is {
		t.Error("a source that reads is a Fetcher")
	}
}
